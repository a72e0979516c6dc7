import { quote } from '../contract/canonical-json.js';
import type { Entry, SealedEntry } from '../contract/run/entry.js';
import { sha256 } from '../contract/hash.js';
import { bodyText } from './entry-text.js';

/**
 * Gives an entry the text that is stored and hashed: its canonical JSON.
 * The envelope is a template, because its keys are known and in order already; the body stays nested in it, so nothing
 * in a body can stand for an envelope field.
 * @throws InvariantError if the entry holds what JSON cannot say
 */
export function sealEntry(entry: Entry): SealedEntry {
  // With the leaf's zero byte in front: the engine then puts the text together once, for the hash, and not twice.
  const leaf =
    `\0{"body":${bodyText(entry)},"prev":${quote(entry.prev)},"seq":${entry.seq},` +
    `"tree_id":${quote(entry.tree_id)},"type":"${entry.type}"}`;
  const leaf_hash = sha256(leaf);
  return { entry, text: leaf.slice(1), leaf_hash };
}

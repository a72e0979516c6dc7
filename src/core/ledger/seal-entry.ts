import { quote } from '../contract/canonical-json.js';
import type { Entry, SealedEntry } from '../contract/run/entry.js';
import { sha256 } from '../contract/hash.js';
import { bodyText } from './entry-text.js';

/**
 * Serializes an entry to the text that is stored and hashed: its canonical JSON. The envelope is a template, because
 * its keys are known and already in order. The body stays nested in it, so no member of a body can replace an envelope
 * field.
 * @throws InvariantError if the entry contains a value that JSON cannot represent
 */
export function sealEntry(entry: Entry): SealedEntry {
  // Includes the leaf's leading zero byte, so that the text is concatenated once, for the hash, and not twice.
  const leaf =
    `\0{"body":${bodyText(entry)},"prev":${quote(entry.prev)},"seq":${entry.seq},` +
    `"tree_id":${quote(entry.tree_id)},"type":"${entry.type}"}`;
  const leaf_hash = sha256(leaf);
  return { entry, text: leaf.slice(1), leaf_hash };
}

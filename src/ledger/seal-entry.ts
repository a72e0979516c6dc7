import { canonicalJson } from '../contract/canonical-json.js';
import type { Entry, SealedEntry } from '../contract/entry.js';
import { leafHash } from './merkle.js';

/**
 * Gives an entry the text that is stored and hashed: its canonical JSON.
 * The envelope is a template, because its keys are known and in order already; the body stays nested in it, so nothing
 * in a body can stand for an envelope field.
 * @throws InvariantError if the entry holds what JSON cannot say
 */
export function sealEntry(entry: Entry): SealedEntry {
  const { body, prev, seq, tree_id, type } = entry;
  const text =
    `{"body":${canonicalJson(body)},"prev":${canonicalJson(prev)},"seq":${canonicalJson(seq)},` +
    `"tree_id":${canonicalJson(tree_id)},"type":${canonicalJson(type)}}`;
  return { entry, text, leaf_hash: leafHash(text) };
}

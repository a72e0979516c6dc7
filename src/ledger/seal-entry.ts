import { quote } from '../contract/canonical-json.js';
import { canonicalWriter, type CanonicalWriter } from '../contract/canonical-writer.js';
import { ENTRY_BODIES, INPUT_SCHEMAS, type Entry, type SealedEntry } from '../contract/entry.js';
import { sha256 } from '../contract/hash.js';

/**
 * Gives an entry the text that is stored and hashed: its canonical JSON.
 * The envelope is a template, because its keys are known and in order already; the body stays nested in it, so nothing
 * in a body can stand for an envelope field.
 * @throws InvariantError if the entry holds what JSON cannot say
 */
export function sealEntry(entry: Entry): SealedEntry {
  const { body, prev, seq, tree_id, type } = entry;
  // With the leaf's zero byte in front: the engine then puts the text together once, for the hash, and not twice.
  const leaf =
    `\0{"body":${writerOf(entry)(body)},"prev":${quote(prev)},"seq":${seq},` +
    `"tree_id":${quote(tree_id)},"type":${quote(type)}}`;
  const leaf_hash = sha256(leaf);
  return { entry, text: leaf.slice(1), leaf_hash };
}

/** Inputs have their keys by kind: their common schema is a union, for which there is no template. */
const writerOf = (entry: Entry): CanonicalWriter =>
  canonicalWriter(entry.type === 'input' ? INPUT_SCHEMAS[entry.body.kind] : ENTRY_BODIES[entry.type]);

// What a service says of one entry, held against the row that the list shows and the proof has looked at: the text that
// is shown must be the one that was hashed, and not another one that comes when somebody looks closer.

import { rowOf } from '../../contract/event-row.js';
import type { EventDetails, EventRow } from '../../contract/inspection.js';
import { same } from '../worker/check.js';
import { hex, leafBytes, subtle, type Hash } from '../worker/merkle.js';

/**
 * Whether this text is that of the row.
 * @param leaf the hash of the entry that was proved; null where it has not come so far: then the first bits of it that
 *   the row has must do
 */
export async function isOfRow(
  { text, leaf_hash }: Pick<EventDetails, 'text' | 'leaf_hash'>,
  { row, leaf }: { readonly row: EventRow; readonly leaf: string | null },
  hash: Hash = subtle,
): Promise<boolean> {
  const own = hex(await hash(leafBytes(text)));
  const told = rowOf(text, row.log_index, own);
  const isProved = leaf === null ? told.hash === row.hash : own === leaf;
  return own === leaf_hash && isProved && same(told, row);
}

/** Whether an entry, by its canonical text, names content of this hash. */
export const namesContent = (text: string, sha256: string): boolean => text.includes(`"hash_sha256":"${sha256}"`);

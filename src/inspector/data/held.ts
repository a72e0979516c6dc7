// What a service says of one entry, held against the row that the list shows and the proof has looked at: the text that
// is shown must be the one that was hashed, and not another one that comes when somebody looks closer.

import { rowOf } from '../../contract/event-row.js';
import type { EventDetails, EventRow } from '../../contract/inspection.js';
import { same } from '../worker/check.js';
import { hex, leafBytes, subtle, type Hash } from '../worker/merkle.js';

/** Whether this text is that of the row. */
export async function isOfRow(
  { text, leaf_hash }: Pick<EventDetails, 'text' | 'leaf_hash'>,
  row: EventRow,
  hash: Hash = subtle,
): Promise<boolean> {
  const own = hex(await hash(leafBytes(text)));
  const told = rowOf(text, row.log_index, own);
  return own === leaf_hash && told.hash === row.hash && same(told, row);
}

/** Whether an entry, by its canonical text, names content of this hash. */
export const namesContent = (text: string, sha256: string): boolean => text.includes(`"hash_sha256":"${sha256}"`);

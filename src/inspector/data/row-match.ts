// What a service says of one entry, held against the row that the list shows and the proof has looked at: the text that
// is shown must be the one that was hashed, and not another one that comes when somebody looks closer.

import { toEventRow } from '../../contract/inspection/event-row.js';
import type { EventDetails, EventRow } from '../../contract/inspection/inspection.js';
import { isSameRow } from '../worker/ledger-proof.js';
import { hex, leafBytes, browserSha256, type Hash } from '../worker/merkle.js';

/**
 * Whether this text is that of the row.
 * @param leaf the hash of the entry that was proved; null where it has not come so far: then the first bits of it that
 *   the row has must do
 */
export async function isTextOfRow(
  { text, leaf_hash }: Pick<EventDetails, 'text' | 'leaf_hash'>,
  { row, leaf }: { readonly row: EventRow; readonly leaf: string | null },
  hash: Hash = browserSha256,
): Promise<boolean> {
  const computed = hex(await hash(leafBytes(text)));
  const rowOfText = toEventRow(text, row.log_index, computed);
  const isProved = leaf === null ? rowOfText.hash === row.hash : computed === leaf;
  return computed === leaf_hash && isProved && isSameRow(rowOfText, row);
}

/** Whether an entry, by its canonical text, names content of this hash. */
export const hasContentHash = (text: string, sha256: string): boolean => text.includes(`"hash_sha256":"${sha256}"`);

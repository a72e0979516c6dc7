// Compares an entry from the service with its row in the list, which the proof has verified. The displayed text must be
// the hashed one, not one that the service substitutes when a reader opens it.

import { toEventRow } from '../../contract/event-row.js';
import type { EventDetails, EventRow } from '../../../../core/contract/inspection/inspection.js';
import { isSameRow, type ChangedEntry } from '../worker/ledger-proof.js';
import { hex, leafBytes, browserSha256, type Hash } from '../worker/compact-range.js';

/** An entry; `changed` if its text is not the recorded one. */
export interface InspectedEvent {
  readonly details: EventDetails;
  readonly changed: ChangedEntry | null;
}

/**
 * Whether this text belongs to the row.
 * @param leaf the hash of the proved entry; null if the proof has not reached it: then only the first bits of the hash,
 *   in the row, are compared
 */
export async function isTextOfRow(
  { text, leaf_hash }: Pick<EventDetails, 'text' | 'leaf_hash'>,
  { row, leaf }: { readonly row: EventRow; readonly leaf: string | null },
  hash: Hash = browserSha256,
): Promise<boolean> {
  const computed = await leafHashOf(text, hash);
  const rowOfText = toEventRow(text, row.log_index, computed);
  const isProved = leaf === null ? rowOfText.hash === row.hash : computed === leaf;
  return computed === leaf_hash && isProved && isSameRow(rowOfText, row);
}

/** The leaf hash of a text. */
export const leafHashOf = async (text: string, hash: Hash = browserSha256): Promise<string> =>
  hex(await hash(leafBytes(text)));

/** Whether an entry, by its canonical text, names content of this hash. */
export const hasContentHash = (text: string, sha256: string): boolean => text.includes(`"hash_sha256":"${sha256}"`);

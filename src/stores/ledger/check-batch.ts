// What every store does with a batch before it writes it: it checks the batch, and gives the entries their log indexes.

import { InvariantError } from '../../core/errors.js';
import type { Batch, ProposalMark, TreeAppend, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import { extendHead } from '../../core/ledger/proof/merkle.js';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const SHA256 = /^[0-9a-f]{64}$/;
const CASE_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/;

/** Whether a case id can be the name of a folder. `_system` is not a valid case id. */
export const isCaseId = (case_id: string): boolean => CASE_ID.test(case_id);

/**
 * Checks that every store makes before it writes anything; only a bug of the caller can violate them.
 * @throws InvariantError
 */
export function checkBatch({ trees }: Batch): void {
  for (const append of trees) checkAppend(append);
  if (trees.length > 1 && new Set(trees.map(({ tree_id }) => tree_id)).size < trees.length) {
    throw new InvariantError('a batch has two appends of one tree');
  }
}

function checkAppend(append: TreeAppend): void {
  const { tree_id, from, entries, artifacts, proposals, inputs, opened } = append;
  if (entries.length === 0) throw new InvariantError(`an append of ${tree_id} has no entries`);
  if ((opened !== null) !== (from === 0)) {
    throw new InvariantError(`an append of ${tree_id} from ${from} ${opened === null ? 'opens no tree' : 'opens it'}`);
  }
  let seq = from;
  for (const { entry, text } of entries) {
    if (entry.tree_id !== tree_id || entry.seq !== seq) {
      throw new InvariantError(`entry ${entry.seq} of ${entry.tree_id} stands at ${seq} of an append of ${tree_id}`);
    }
    seq += 1;
    if (text.includes('\n'))
      throw new InvariantError('the text of an entry has a newline, which canonical JSON has not');
  }
  for (const { entry, artifact, sha256 } of artifacts) {
    if (entries[entry] === undefined) throw new InvariantError(`an artifact of entry ${entry}, which is not there`);
    if (artifact.case_id !== null && !isCaseId(artifact.case_id)) {
      throw new InvariantError(`not a case id: ${JSON.stringify(artifact.case_id)}`);
    }
    if (!SHA256.test(sha256)) throw new InvariantError(`not a hash in hex: ${JSON.stringify(sha256)}`);
  }
  for (const mark of proposals) checkProposalId(mark.proposal_id);
  for (const mark of inputs) {
    if (mark.tree_id !== tree_id) throw new InvariantError(`an append of ${tree_id} marks an input of ${mark.tree_id}`);
  }
}

/** @throws InvariantError if it is not a UUID in lower case: otherwise the same id could be marked twice */
export function checkProposalId(proposal_id: ProposalMark['proposal_id']): void {
  if (!UUID.test(proposal_id)) throw new InvariantError(`not a UUID in lower case: ${JSON.stringify(proposal_id)}`);
}

/** The log indexes of a batch, and the head of the log after it. */
export interface IntegratedBatch {
  /** The head of the log after the batch. */
  readonly head: LogHead;
  /** The log index of the first entry of each append. */
  readonly first_log_indexes: readonly number[];
}

/** Gives the appends of a batch the next log indexes, in their order. */
export function integrateBatch(head: LogHead, { trees }: Batch): IntegratedBatch {
  const first_log_indexes: number[] = [];
  const leaf_hashes: string[] = [];
  for (const { entries } of trees) {
    first_log_indexes.push(head.size + leaf_hashes.length);
    for (const { leaf_hash } of entries) leaf_hashes.push(leaf_hash);
  }
  return { head: extendHead(head, leaf_hashes), first_log_indexes };
}

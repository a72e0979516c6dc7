import { InvariantError } from '../errors.js';
import type { Batch, ProposalMark } from '../ports/ledger-store.js';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CASE_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/;

/** Whether a case id may become the name of a folder. `_system` may not. */
export const isCaseId = (case_id: string): boolean => CASE_ID.test(case_id);

/**
 * What every store refuses before it writes anything, because only a bug of the caller can bring it.
 * @throws InvariantError
 */
export function checkBatch({ from, entries, artifacts, proposals, head }: Batch): void {
  if (head.size !== from + entries.length) {
    throw new InvariantError(`a batch of ${entries.length} entries from ${from} cannot end at ${head.size}`);
  }
  for (const { entry, artifact } of artifacts) {
    if (entries[entry] === undefined) throw new InvariantError(`an artifact of entry ${entry}, which is not there`);
    if (artifact.case_id !== null && !isCaseId(artifact.case_id)) {
      throw new InvariantError(`not a case id: ${JSON.stringify(artifact.case_id)}`);
    }
  }
  for (const mark of proposals) uuidBytes(mark.proposal_id);
}

/** The 16 bytes of a proposal id. @throws InvariantError if it is no UUID in lower case */
export function uuidBytes(proposal_id: ProposalMark['proposal_id']): Buffer {
  if (!UUID.test(proposal_id)) throw new InvariantError(`not a UUID in lower case: ${JSON.stringify(proposal_id)}`);
  return Buffer.from(proposal_id.replaceAll('-', ''), 'hex');
}

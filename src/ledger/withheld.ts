import { atHand, type Artifact, type StoredArtifact, type WithheldArtifact } from '../contract/artifact-ref.js';
import { LedgerError } from '../errors.js';

/** The artifacts, all of which are needed. @throws LedgerError LEDGER_ERASED where one is not to be had */
export function needed(artifacts: readonly StoredArtifact[]): readonly Artifact[] {
  const present = atHand(artifacts);
  if ('withheld' in present) throw notToBeHad(present);
  return present;
}

export function notToBeHad({ case_id, withheld, sha256 }: WithheldArtifact): LedgerError {
  const why = withheld === 'erased' ? `was erased with case ${case_id ?? ''}` : 'was kept out by its lane';
  return new LedgerError({ code: 'LEDGER_ERASED', message: `content ${sha256}, which this needs, ${why}` });
}

import { checkAvailable, type Artifact, type StoredArtifact, type WithheldArtifact } from '../contract/artifact-ref.js';
import { LedgerError } from '../errors.js';

/** Requires all artifacts. @throws LedgerError LEDGER_ERASED if one is unavailable */
export function requireContent(artifacts: readonly StoredArtifact[]): readonly Artifact[] {
  const present = checkAvailable(artifacts);
  if ('withheld' in present) throw withheldContentError(present);
  return present;
}

export function withheldContentError({ case_id, withheld, sha256 }: WithheldArtifact): LedgerError {
  const why = withheld === 'erased' ? `was erased with case ${case_id ?? ''}` : 'was kept out by its lane';
  return new LedgerError({ code: 'LEDGER_ERASED', message: `content ${sha256}, which this needs, ${why}` });
}

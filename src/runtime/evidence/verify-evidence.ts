import type { LedgerVerdict } from '../../ledger/verification/ledger-verdict.js';
import { verifyLedger } from '../../ledger/verification/verify-ledger.js';
import { ReplayCheck } from '../../replay/check-replay.js';
import type { EvidenceBundle } from './open-evidence.js';

/** All that `LedgerReader.verify` looks at but marks and written records, which are beside the ledger. */
export const verifyEvidence = (
  evidence: EvidenceBundle,
  { replay: shouldReplay = true }: { readonly replay?: boolean } = {},
): Promise<LedgerVerdict> =>
  verifyLedger({
    log: evidence.log,
    artifactsOf: evidence.artifactsOf,
    head: evidence.head,
    begin: evidence.begin,
    externalHead: evidence.checkpoint,
    ...(shouldReplay ? { replay: new ReplayCheck(evidence) } : {}),
  });

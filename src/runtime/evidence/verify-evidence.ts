import type { LedgerVerdict } from '../../ledger/verdict.js';
import { verifyLedger } from '../../ledger/verify.js';
import { ReplayCheck } from '../../replay/check-replay.js';
import type { Evidence } from './open-evidence.js';

/** All that `LedgerReader.verify` looks at but marks and written records, which are beside the ledger. */
export const verifyEvidence = (
  evidence: Evidence,
  { replay: asks = true }: { readonly replay?: boolean } = {},
): Promise<LedgerVerdict> =>
  verifyLedger({
    log: evidence.log,
    artifactsOf: evidence.artifactsOf,
    head: evidence.head,
    begin: evidence.begin,
    anchor: evidence.checkpoint,
    ...(asks ? { replay: new ReplayCheck(evidence) } : {}),
  });

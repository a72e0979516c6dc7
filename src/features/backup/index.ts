// `turnpike/copies`: copies of home directories, and reports of their progress. The first call loads the code that
// copies, because most services copy nothing and use one store.

import type { LedgerLocation } from '../../home/ledger-location.js';
import { declareFeatures } from '../declare-features.js';
import type { CopyHomeOptions, CopyReport } from './copy/copy-home.js';

export type { CopyHomeOptions, CopyReport } from './copy/copy-home.js';
export type { CopyCounts, CopyProgress } from './copy/copy-ledger.js';
export type { ProgressPart, ProgressReporter, ProgressUnit } from '../../engine/ports/progress.js';

/**
 * Copies a closed ledger to an empty place: its log, contents, marks and run records, its keys and tokens, the head
 * file, the emergency overlay, exports and the sandbox. Then verifies the copy, and marks the source as copied: it is
 * not opened for writing any more until `reopenHome`.
 * @throws UsageError if the target is not empty, or an unfinished copy of another source
 * @throws LedgerError LEDGER_COPIED if the source was copied to another place
 * @throws LedgerError LEDGER_LOCKED if another process has the source open, or copies to the target; LEDGER_TAMPERED,
 * LEDGER_BELOW_HEAD if the source is not what its keys and its head file say; LEDGER_UNAVAILABLE
 */
export const copyHome = async (options: CopyHomeOptions): Promise<CopyReport> => {
  // The verification of the copy folds its trees.
  declareFeatures();
  return (await import('./copy/copy-home.js')).copyHome(options);
};

/** Lets the ledger of a place be written again that was copied. @returns the name of the copy, or null */
export const reopenHome = async (location: LedgerLocation): Promise<string | null> =>
  (await import('./copy/copy-home.js')).reopenHome(location);

// Erasure (D14): destroys the content of a case. What the ledger proves about the case stays.

import { CaseId } from '../../core/contract/shapes.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { usageError } from '../../core/errors.js';
import type { ArchiveTable } from '../../engine/ports/ledger/archives.js';
import type { HistoryCache } from '../../core/ledger/history-cache.js';
import type { ErasureResult } from '../../engine/ports/ledger/ledger-store.js';
import type { ReplayPointRecorder } from './replay-point-recorder.js';
import type { Operator } from '../operator-acts.js';
import { validateActor, validateField } from '../agents/caller-input.js';

/** What an erasure uses. Two parts cache tree states, and build them again from what can be folded. */
export interface EraseParts {
  readonly engine: Pick<TreeEngine, 'erase'>;
  readonly archives: Pick<ArchiveTable, 'hasCase'>;
  readonly history: Pick<HistoryCache, 'wipe'> | null;
  readonly replayPoints: Pick<ReplayPointRecorder, 'forget'> | null;
}

/** Who requests the erasure of which case. Its record contains the actor. */
export interface EraseOptions extends Operator {
  /** The case whose content is destroyed. All of its run trees must have ended. */
  readonly case: string;
}

export interface ErasureReport extends ErasureResult {
  /** Set if run trees of the case were moved to archive files, which still have their content. */
  readonly archived?: true;
}

/**
 * @throws RunError CASE_IN_USE
 * @throws UsageError
 * @throws LedgerError if it is incomplete or not done: then repeat it
 */
export async function eraseCase(
  { engine, archives, history, replayPoints }: EraseParts,
  options: EraseOptions,
): Promise<ErasureReport> {
  const case_id = validateField('case', CaseId, options.case);
  const actor = validateActor(options.actor);
  if (/\p{Cc}/u.test(actor)) throw usageError('actor: no control characters');
  const wipe = async (): Promise<void> => history?.wipe();
  const erased = await engine.erase(case_id, actor, wipe);
  // A pass that read the content before the erasure may have stored a replay point since.
  await replayPoints?.forget();
  await wipe();
  return (await archives.hasCase(case_id)) ? { ...erased, archived: true } : erased;
}

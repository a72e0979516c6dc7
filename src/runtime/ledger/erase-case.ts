// Erasure (D14): the content of a case is destroyed, and what the ledger proves of it stays.

import { CaseId } from '../../contract/shapes.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { usageError } from '../../errors.js';
import type { ArchiveTable } from '../../ports/ledger/archives.js';
import type { HistoryCache } from '../../ports/ledger/history-cache.js';
import type { ErasureResult } from '../../ports/ledger/ledger-store.js';
import type { ReplayPointRecorder } from './replay-point-recorder.js';
import { validateActor, validateField } from '../agents/open-input.js';

/** What an erasure is done with. Two of them remember trees as they stood, and make it again of what can be folded. */
export interface EraseParts {
  readonly engine: Pick<TreeEngine, 'erase'>;
  readonly archives: Pick<ArchiveTable, 'hasCase'>;
  readonly history: Pick<HistoryCache, 'wipe'> | null;
  readonly replayPoints: Pick<ReplayPointRecorder, 'forget'> | null;
}

export interface EraseOptions {
  /** The case whose content is destroyed. None of its run trees may live. */
  readonly case: string;
  /** Who wants it: 3 to 120 characters, which stand in the record of the erasure. */
  readonly actor: string;
}

export interface ErasureReport extends ErasureResult {
  /** Run trees of the case were moved to archive files, which have their content still. Absent where none was. */
  readonly archived?: true;
}

/** @throws RunError CASE_IN_USE; UsageError; LedgerError: then it is done in part, or not: ask again */
export async function eraseCase(
  { engine, archives, history, replayPoints }: EraseParts,
  options: EraseOptions,
): Promise<ErasureReport> {
  const case_id = validateField('case', CaseId, options.case);
  const actor = validateActor(options.actor);
  if (/\p{Cc}/u.test(actor)) throw usageError('actor: no control characters');
  const wipe = async (): Promise<void> => history?.wipe();
  const erased = await engine.erase(case_id, actor, wipe);
  // Who has read it before may have put it down since.
  await replayPoints?.forget();
  await wipe();
  return (await archives.hasCase(case_id)) ? { ...erased, archived: true } : erased;
}

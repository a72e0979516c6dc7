// The views of a ledger that features add to the inspector.

import type { CoverageReport, DecisionExplanation } from '../../core/contract/inspection/inspection.js';
import { LedgerError } from '../../core/errors.js';
import type { Pause } from '../../engine/ports/pace.js';
import { FEATURES } from '../../features/declare-features.js';
import type { ReplaySource } from '../../kernel/replay/replay.js';
import type { LedgerView } from './ledger-view.js';

/** What a feature adds. Each view is loaded when it is first needed. */
export interface AddedViews {
  readonly decisions?: () => Promise<DecisionViews>;
}

/** How policy decided. */
export interface DecisionViews {
  /**
   * Explains the decision that an entry records, or else the first decision on the same input.
   * @returns null if there is no decision
   * @throws LedgerError LEDGER_ERASED if required content is not available
   */
  explainDecisionAt(ledger: LedgerView, log_index: number, pause: Pause): Promise<DecisionExplanation | null>;
  /**
   * Explains every decision of a tree whose content is available. Folds the tree once, whereas each call of
   * `explainDecisionAt` folds it again.
   * @throws LedgerError LEDGER_TAMPERED if the state machines would have recorded something else
   */
  explainTreeDecisions(ledger: LedgerView, tree_id: string, pause: Pause): AsyncIterable<DecisionExplanation>;
  /**
   * Counts how often each element of the pinned policies decided in the entries with `from` <= index < `to`.
   * @throws LedgerError LEDGER_TAMPERED for a ledger that the machines would not have written
   */
  coverageOf(
    source: Pick<ReplaySource, 'log' | 'tree' | 'artifactsOf'>,
    range: Pick<CoverageReport, 'from' | 'to'>,
  ): Promise<Omit<CoverageReport, 'from' | 'to'>>;
}

/** @throws LedgerError LEDGER_UNSUPPORTED if no installed feature has the view */
export async function loadDecisionViews(): Promise<DecisionViews> {
  const [load] = FEATURES.flatMap(({ views }) => views?.decisions ?? []);
  if (load === undefined) throw missingViewError('explains decisions');
  return load();
}

const missingViewError = (what: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNSUPPORTED', message: `the feature that ${what} is not installed` });

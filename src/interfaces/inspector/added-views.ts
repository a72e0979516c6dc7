// The views of a ledger that features add to the inspector.

import type { CoverageReport, DecisionExplanation } from '../../core/contract/inspection/inspection.js';
import { LedgerError } from '../../core/errors.js';
import type { Pause, ReadControl } from '../../engine/ports/pace.js';
import { FEATURES } from '../../features/declare-features.js';
import type { CourseCache } from '../../kernel/replay/course-cache.js';
import type { ReplaySource } from '../../kernel/replay/replay.js';
import type { SessionView } from './contract/session-view.js';
import type { LedgerView } from './ledger-view.js';

/** What a feature adds. Each view is loaded when it is first needed. */
export interface AddedViews {
  readonly decisions?: () => Promise<DecisionViews>;
  readonly sessions?: () => Promise<OpenSessionViews>;
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

/** The sessions of one ledger. */
export interface ViewedSessions {
  /**
   * The session after the entry `at`; null: at present.
   * @returns null for a session that does not exist there
   * @throws LedgerError LEDGER_ERASED, LEDGER_ARCHIVED, or LEDGER_TAMPERED if it cannot be folded that far
   */
  view(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null>;
}

/** @param courses the folded trees of the ledger at present */
export type OpenSessionViews = (ledger: LedgerView, courses: CourseCache, pause: Pause) => ViewedSessions;

/** @throws LedgerError LEDGER_UNSUPPORTED if no installed feature has the view */
export async function loadDecisionViews(): Promise<DecisionViews> {
  const [load] = FEATURES.flatMap(({ views }) => views?.decisions ?? []);
  if (load === undefined) throw missingViewError('explains decisions');
  return load();
}

/** @throws LedgerError LEDGER_UNSUPPORTED if no installed feature has the views */
export async function loadSessionViews(): Promise<OpenSessionViews> {
  const [load] = FEATURES.flatMap(({ views }) => views?.sessions ?? []);
  if (load === undefined) throw missingViewError('shows sessions');
  return load();
}

const missingViewError = (what: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNSUPPORTED', message: `the feature that ${what} is not installed` });

import type { DecisionExplanation, ExplainedCheck } from '../../core/contract/inspection/inspection.js';
import { NEEDS_APPROVAL, needsApproval } from '../../core/contract/inspection/needs-approval.js';
import { UNDECIDABLE, type PolicyAnswer, type RecordedDecision } from '../../features/simulation/recorded-decision.js';
import { decisionsIn } from '../../features/simulation/decision-fold.js';
import { readDecisionsAt } from '../../features/simulation/entry-decisions.js';
import { explainWithPauses } from '../../features/simulation/explain.js';
import type { LedgerView } from './ledger-view.js';
import { entryAt } from './step-story.js';

const CHECK_RESULTS = { passed: true, decided: false, 'not reached': null } as const;

/**
 * Explains the decision that an entry records, or else the first decision on the same input.
 * @returns null if there is no decision
 * @throws LedgerError LEDGER_ERASED if required content is not available
 */
export async function explainDecisionAt(
  ledger: LedgerView,
  log_index: number,
  pause: () => Promise<void> | undefined,
): Promise<DecisionExplanation | null> {
  const entry = await entryAt(ledger, log_index);
  if (entry === null) return null;
  const { decisions } = await readDecisionsAt(ledger, entry.tree_id, (place) => place.log_index === log_index, pause);
  const [decision] = decisions;
  if (decision === undefined) return null;
  return toExplanation(decision, pause);
}

/**
 * Explains every decision of a tree whose content is available. Folds the tree once, whereas each call of
 * `explainDecisionAt` folds it again.
 * @throws LedgerError LEDGER_TAMPERED if the state machines would have recorded something else
 */
export async function* explainTreeDecisions(
  ledger: LedgerView,
  tree_id: string,
  pause: () => Promise<void> | undefined,
): AsyncIterable<DecisionExplanation> {
  const count = { trees: 0, entries: 0, not_recomputed: 0 };
  for await (const decision of decisionsIn(ledger, tree_id, count)) yield await toExplanation(decision, pause);
}

async function toExplanation(
  decision: RecordedDecision,
  pause: () => Promise<void> | undefined,
): Promise<DecisionExplanation> {
  const { checks, conditions, errors, places, changes } = await explainWithPauses(decision, pause);
  const lines = [...errors, ...[...conditions, ...places].map(({ file, line }) => `${file}:${line}`)].join(', ');
  return {
    log_index: decision.log_index,
    decision: decision.said.decision,
    rule_id: decision.said.rule_id ?? '',
    checks: checks.map(({ name, verdict, rule_id }): ExplainedCheck => ({
      check: name,
      passed: CHECK_RESULTS[verdict],
      detail: verdict === 'decided' && lines !== '' ? `${rule_id ?? ''} (${lines})` : (rule_id ?? ''),
    })),
    changes: changes.map(({ text, gives }) => ({ text, gives: answerText(gives) })),
  };
}

function answerText(gives: PolicyAnswer): string {
  if ('undecidable' in gives) return `open: ${UNDECIDABLE[gives.undecidable]}`;
  if (gives.rule_id === null) return gives.decision;
  return needsApproval(gives.rule_id) ? NEEDS_APPROVAL : `${gives.decision}: ${gives.rule_id}`;
}

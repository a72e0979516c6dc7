// How the inspector shows what policy decided.

import type { DecisionExplanation, ExplainedCheck } from '../../../core/contract/inspection/inspection.js';
import { NEEDS_APPROVAL, needsApproval } from '../../../core/contract/inspection/needs-approval.js';
import type { Pause } from '../../../engine/ports/pace.js';
import type { DecisionViews } from '../../../interfaces/inspector/added-views.js';
import type { LedgerView } from '../../../interfaces/inspector/ledger-view.js';
import { entryAt } from '../../../interfaces/inspector/step-story.js';
import { UNDECIDABLE, type PolicyAnswer, type RecordedDecision } from '../recorded-decision.js';
import { decisionsIn, readDecisionsAt } from '../decision-fold.js';
import { explain } from '../explain.js';
import { coverageOf } from '../policy-coverage.js';

const CHECK_RESULTS = { passed: true, decided: false, 'not reached': null } as const;

export async function explainDecisionAt(
  ledger: LedgerView,
  log_index: number,
  pause: Pause,
): Promise<DecisionExplanation | null> {
  const entry = await entryAt(ledger, log_index);
  if (entry === null) return null;
  const { decisions } = await readDecisionsAt(ledger, entry.tree_id, (place) => place.log_index === log_index, pause);
  const [decision] = decisions;
  if (decision === undefined) return null;
  return toExplanation(decision, pause);
}

export async function* explainTreeDecisions(
  ledger: LedgerView,
  tree_id: string,
  pause: Pause,
): AsyncIterable<DecisionExplanation> {
  const count = { trees: 0, entries: 0, not_recomputed: 0 };
  for await (const decision of decisionsIn(ledger, tree_id, count)) yield await toExplanation(decision, pause);
}

async function toExplanation(decision: RecordedDecision, pause: Pause): Promise<DecisionExplanation> {
  const { checks, conditions, errors, places, changes } = await explain(decision, pause);
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

export const DECISION_VIEWS: DecisionViews = { explainDecisionAt, explainTreeDecisions, coverageOf };

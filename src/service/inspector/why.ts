import type { Why, WhyCheck } from '../../contract/inspection.js';
import { UNDECIDABLE, type Answer, type RecordedDecision } from '../../replay/policy/decision.js';
import { decisionsIn } from '../../replay/policy/collect.js';
import { decisionsAt } from '../../replay/policy/decisions-at.js';
import { explainInTurns } from '../../replay/policy/explain.js';
import type { LookedAt } from './looked-at.js';
import { entryAt } from './step-story.js';

const PASSED = { passed: true, decided: false, 'not reached': null } as const;

/**
 * Why the decision of an entry came out as it did: that which it records, or the first that came of the same input.
 * @returns null where there is none @throws LedgerError LEDGER_ERASED where content is needed that is not to be had
 */
export async function whyAt(
  looked: LookedAt,
  log_index: number,
  pause: () => Promise<void> | undefined,
): Promise<Why | null> {
  const entry = await entryAt(looked, log_index);
  if (entry === null) return null;
  const { decisions } = await decisionsAt(looked, entry.tree_id, (place) => place.log_index === log_index, pause);
  const [decision] = decisions;
  if (decision === undefined) return null;
  return whyOf(decision, pause);
}

/**
 * Why each decision of a tree came out as it did, as far as the content is to be had that it rests on. The tree is
 * folded once, whereas each question for one of them folds it again.
 * @throws LedgerError LEDGER_TAMPERED where the machines would have written something else
 */
export async function* whysIn(
  looked: LookedAt,
  tree_id: string,
  pause: () => Promise<void> | undefined,
): AsyncIterable<Why> {
  const count = { trees: 0, entries: 0, not_recomputed: 0 };
  for await (const decision of decisionsIn(looked, tree_id, count)) yield await whyOf(decision, pause);
}

async function whyOf(decision: RecordedDecision, pause: () => Promise<void> | undefined): Promise<Why> {
  const { checks, changes } = await explainInTurns(decision, pause);
  return {
    log_index: decision.log_index,
    decision: decision.said.decision,
    rule_id: decision.said.rule_id ?? '',
    checks: checks.map(({ name, verdict, rule_id }): WhyCheck => ({
      check: name,
      passed: PASSED[verdict],
      detail: rule_id ?? '',
    })),
    changes: changes.map(({ text, gives }) => ({ text, gives: answerText(gives) })),
  };
}

function answerText(gives: Answer): string {
  if ('undecidable' in gives) return `open: ${UNDECIDABLE[gives.undecidable]}`;
  return gives.rule_id === null ? gives.decision : `${gives.decision}: ${gives.rule_id}`;
}

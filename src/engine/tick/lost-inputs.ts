import { caseChangedError } from '../engine-errors.js';
import type { InputOutcome, QueuedInput } from './input-outcome.js';

/**
 * The inputs of trees that another worker has extended: they are decided again. An input that contains the label of a
 * case is rejected with all inputs of its tree, because only the caller can make it again.
 */
export function lostInputs(outcomes: readonly InputOutcome[], overtaken: ReadonlySet<string>): readonly QueuedInput[] {
  const lost = outcomes.filter(({ tree_id }) => overtaken.has(tree_id));
  const stale = new Set(lost.flatMap(({ tree_id, item }) => (item.submission.caseLabel ? [tree_id] : [])));
  for (const { tree_id, item } of lost) if (stale.has(tree_id)) item.reject(caseChangedError());
  return lost.flatMap(({ tree_id, item }) => (stale.has(tree_id) ? [] : [item]));
}

import type { Entry } from '../contract/run/entry.js';
import { RunCheck } from '../ledger/verification/check-runs.js';

/**
 * Everything in which the runs of these entries broke the lifecycle of S4 §3 or lack an event of S4 §6, without asking
 * the machines, as `ledger verify` sees it; and every run that has not ended. Empty when they kept it.
 */
export function findLifecycleFaults(entries: readonly Entry[]): readonly string[] {
  const check = new RunCheck();
  const found = entries.flatMap((entry, index) => check.take(entry, index));
  const live = [...check.liveRuns()].map(({ run_id, state }) => `${run_id} is still ${state}`);
  const rest = [...check.finish(() => true)];
  const faults = [...found, ...rest].map(({ place, finding }) => {
    return `${place.tree_id ?? ''} seq ${place.seq ?? ''}: ${finding.rule}: ${finding.message}`;
  });
  return [...faults, ...live];
}

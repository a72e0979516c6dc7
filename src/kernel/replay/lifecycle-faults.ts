import type { Entry } from '../../core/contract/run/entry.js';
import { RunCheck } from '../../core/ledger/verification/check-runs.js';

/**
 * Reports every violation of the lifecycle of S4 §3 by these entries, every missing event of S4 §6, and every run that
 * has not ended, as `ledger verify` does. It does not use the machines.
 */
export function findLifecycleFaults(entries: readonly Entry[]): readonly string[] {
  const check = new RunCheck();
  const found = entries.flatMap((entry, index) => check.take(entry, index));
  const live = [...check.liveRuns()].map(({ run_id, state }) => `${run_id} is still ${state}`);
  const rest = [...check.finish(() => true)];
  const faults = [...found, ...rest].map(({ place, finding }) => {
    return `${place.tree_id ?? ''}#${place.seq ?? ''}: ${finding.rule}: ${finding.message}`;
  });
  return [...faults, ...live];
}

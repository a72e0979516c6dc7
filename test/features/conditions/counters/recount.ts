// Counts again what the decisions of a ledger have recorded of counters, without the code that counts. Commits
// have an order. Of what was committed together, the log has each tree as a whole, so there the time of each decision
// gives the order.

import type { Entry } from '../../../../src/core/contract/run/entry.js';

interface Step {
  readonly at: string;
  readonly run_id: string;
  readonly counters: readonly { readonly name: string; readonly key: string; readonly adds: number }[];
  state: 'open' | 'done' | 'unknown' | 'nothing';
  unknown: string | null;
}

/**
 * @param commits the entries of each commit, in the order of the commits
 * @returns the number of recorded values, and those that differ from the recount
 */
export function recount(commits: readonly (readonly Entry[])[]): {
  readonly values: number;
  readonly differences: readonly string[];
} {
  const steps: Step[] = [];
  const differences: string[] = [];
  let values = 0;
  const openOf = (run_id: string): Step | undefined =>
    steps.filter((step) => step.state === 'open' && step.run_id === run_id).at(-1);
  for (const { type, body } of commits.flatMap((entries) => entries.toSorted(byTime))) {
    if (type === 'input' && body.kind === 'facts' && body.counters !== undefined) {
      for (const { name, key, used, since } of body.counters) {
        values += 1;
        const expected = Math.max(0, sumOf(steps, name, key, since));
        if (used !== expected)
          differences.push(`${body.run_id} at ${body.time}: ${name} of ${key} is ${String(used)}, not ${expected}`);
      }
      steps.push({ at: body.time, run_id: body.run_id, counters: body.counters, state: 'open', unknown: null });
    } else if (type === 'input' && body.kind === 'result' && body.status === 'unknown') {
      const step = steps.filter(({ state, run_id }) => state === 'open' && body.run_id.startsWith(`${run_id}.`)).at(-1);
      if (step !== undefined) step.unknown = body.run_id;
    } else if (type === 'input' && body.kind === 'resolve') {
      const step = steps.find(({ state, unknown }) => state === 'unknown' && unknown === body.run_id);
      if (step !== undefined) step.state = body.outcome === 'done' ? 'done' : 'nothing';
    } else if (type === 'step_trace') {
      const step = openOf(body.run_id);
      if (step === undefined) continue;
      if (body.decision === 'DENY') step.state = 'nothing';
      else if (body.outcome === 'SUCCESS') step.state = body.result === null ? 'unknown' : 'done';
      else step.state = step.unknown !== null || body.cause === 'OUTCOME_UNKNOWN' ? 'unknown' : 'nothing';
      step.unknown ??= body.mediated_run_id;
    }
  }
  return { values, differences };
}

const byTime = (one: Entry, other: Entry): number => timeOf(one).localeCompare(timeOf(other));

/** Entries of one decision have one time, and keep their order. */
function timeOf({ type, body }: Entry): string {
  if (type === 'input') return body.time;
  return type === 'step_trace' ? body.completed_at : '';
}

function sumOf(steps: readonly Step[], name: string, key: string, since: string | null): number {
  let sum = 0;
  for (const { at, counters, state } of steps) {
    if (state === 'nothing' || (since !== null && at < since)) continue;
    for (const counter of counters)
      if (counter.name === name && counter.key === key && (counter.adds > 0 || state === 'done')) sum += counter.adds;
  }
  return sum;
}

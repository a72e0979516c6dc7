// Finds for each limit of a policy the nearest value that changes a decision.

import { AMOUNT_MAX, BUDGET_KINDS } from '../../core/contract/run/budget.js';
import type { Policy } from '../../core/policy/policy.js';
import { isValidPolicy, type PolicyEdit } from './policy-edits.js';

/** One numeric limit of a policy, with its current value and the range of valid values. */
export interface AdjustableLimit {
  readonly name: string;
  /** Null means unlimited. */
  readonly now: number | null;
  readonly least: number;
  readonly most: number;
  readonly set: (value: number) => Policy;
}

/** Yields the nearest higher and lower value for which `flips` holds. It must then also hold for larger changes. */
export function* limitEdits(
  { name, now, least, most, set }: AdjustableLimit,
  flips: (policy: Policy) => boolean,
): Generator<PolicyEdit> {
  const isFlipped = (value: number): boolean => {
    const changed = set(value);
    return isValidPolicy(changed) && flips(changed);
  };
  const raised = now === null ? null : findNearest(now, most, isFlipped);
  if (raised !== null && now !== null)
    yield { text: `${name} would have to be raised from ${now} to ${raised}`, policy: set(raised) };
  const lowered = findNearest(now ?? most, least, isFlipped);
  if (lowered !== null)
    yield {
      text: `${name} would have to be lowered ${now === null ? '' : `from ${now} `}to ${lowered}`,
      policy: set(lowered),
    };
}

/** Bisects for the value nearest to `from`, towards `end`, for which `isFlipped` holds; null if it fails at `end`. */
function findNearest(from: number, end: number, isFlipped: (value: number) => boolean): number | null {
  if (from === end || !isFlipped(end)) return null;
  let [failing, passing] = [from, end];
  while (Math.abs(passing - failing) > 1) {
    const middle = Math.floor(failing / 2 + passing / 2);
    if (middle === failing || middle === passing) break;
    if (isFlipped(middle)) passing = middle;
    else failing = middle;
  }
  return passing;
}

const LARGEST = {
  payload_bytes_max: 16_777_216,
  payload_depth_max: 64,
  path_bytes_max: 1_024,
  content_bytes_max: 16_777_216,
  steps_per_run_max: 10_000_000,
} as const;
const LARGEST_SANDBOX = { bytes_max: 1e12, files_max: 10_000_000, depth_max: 64 } as const;

export function* adjustableLimitsOf(policy: Policy): Generator<AdjustableLimit> {
  const { limits, sandbox, budgets } = policy;
  for (const name of Object.keys(LARGEST) as (keyof typeof LARGEST)[]) {
    const set = (value: number): Policy => ({ ...policy, limits: { ...limits, [name]: value } });
    yield { name, now: limits[name], least: 1, most: LARGEST[name], set };
  }
  for (const name of Object.keys(LARGEST_SANDBOX) as (keyof typeof LARGEST_SANDBOX)[]) {
    const set = (value: number): Policy => ({ ...policy, sandbox: { ...sandbox, [name]: value } });
    yield { name: `sandbox.${name}`, now: sandbox[name], least: 1, most: LARGEST_SANDBOX[name], set };
  }
  for (const kind of BUDGET_KINDS) {
    const set = (value: number): Policy => ({ ...policy, budgets: { ...budgets, [kind]: value } });
    yield { name: `budgets.${kind}`, now: budgets[kind] ?? null, least: 0, most: AMOUNT_MAX, set };
  }
}

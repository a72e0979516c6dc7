// The case of a run tree whose caller gives none. No case is invented for callers to share: where policy requires a
// case, the run has none and is denied; elsewhere it has a case of its own.

import type { RunContext } from '../../core/contract/run/run-context.js';
import { CaseId } from '../../core/contract/shapes.js';
import { usageError } from '../../core/errors.js';
import type { Policy } from '../../core/policy/policy.js';
import { isCaseRequired } from '../../core/policy/authorize-run.js';
import { AGENT_DEFAULTS, validateField } from './caller-input.js';

/** Followed by the id of the root run. No caller can name such a case for a new run. */
const OWN_CASE = 'case-of-';
const RESERVED = /^case-of-(?:run|ses)_/;

/**
 * The case of a new tree. Without one from the caller: null if a lane requires a case, so that policy denies the run
 * (S4-34); else a case of its own, so that no other caller reaches its files (S4-84).
 * @param lanes those of its agents; undefined: the default lane
 * @throws UsageError for an invalid case, and for the own case of another run
 */
export function chooseCase(
  root: string,
  given: string | undefined,
  lanes: readonly (string | undefined)[],
  { lanes: known }: Pick<Policy, 'lanes'>,
): string | null {
  if (given === undefined)
    return lanes.some((lane = AGENT_DEFAULTS.lane) => isCaseRequired(known.get(lane))) ? null : ownCaseOf(root);
  const case_id = validateField('case', CaseId, given);
  if (RESERVED.test(case_id)) throw usageError(`case: ${case_id} is the own case of a run: name another one`);
  return case_id;
}

/** Whether a run is in the case that its caller gives, or was begun without one. */
export const isInCase = (
  { case_id, root_run_id }: Pick<RunContext, 'case_id' | 'root_run_id'>,
  given: string | undefined,
): boolean => (given === undefined ? case_id === null || case_id === ownCaseOf(root_run_id) : case_id === given);

/** The case that the caller of a run has given; undefined if it gave none. */
export const givenCaseOf = (run: Pick<RunContext, 'case_id' | 'root_run_id'>): string | undefined =>
  run.case_id === null || isInCase(run, undefined) ? undefined : run.case_id;

const ownCaseOf = (root: string): string => `${OWN_CASE}${root}`;

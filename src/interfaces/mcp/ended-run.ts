// The answer to a call whose run has ended: the state, a cause from a closed list, and what the agent can do. Rules
// and reasons of the audit are not sent to agents.

import type { TerminalState } from '../../core/contract/run/run-context.js';

/** Why a run has ended, with the words for its agent. */
export const RUN_END_CAUSES = {
  FINISHED: 'its FINISH was accepted',
  END_OF_INPUT: 'its client declared the end of the input',
  IDLE: 'it was silent for too long',
  TOO_MANY_DENIALS: 'it had as many denials as the policy allows',
  TOO_MANY_INVALID: 'it had as many invalid proposals as the policy allows',
  NOT_ALLOWED: 'the policy allows no such run',
  CANCELLED: 'it was cancelled',
  FAILED: 'it failed',
} as const;
type RunEndCause = keyof typeof RUN_END_CAUSES;

/** A run that has ended, as its agent may see it. */
export interface EndedRun {
  readonly run_id: string;
  readonly state: TerminalState;
  readonly cause: RunEndCause;
}

/** @param reason the outcome of the run's record, or the reason of its ending */
export function endedRun(run_id: string, { state, reason }: { state: TerminalState; reason: string }): EndedRun {
  const last = reason.slice(reason.lastIndexOf(':') + 1);
  return { run_id, state, cause: CAUSES.get(`${state}:${last}`) ?? OTHER_CAUSES[state] };
}

const CAUSES: ReadonlyMap<string, RunEndCause> = new Map([
  ['completed:end_of_input', 'END_OF_INPUT'],
  ['denied:limit.denials', 'TOO_MANY_DENIALS'],
  ['failed:INVALID_PROPOSALS', 'TOO_MANY_INVALID'],
  ['cancelled:idle', 'IDLE'],
] as const);
const OTHER_CAUSES = {
  completed: 'FINISHED',
  denied: 'NOT_ALLOWED',
  failed: 'FAILED',
  cancelled: 'CANCELLED',
} as const satisfies Record<TerminalState, RunEndCause>;

/**
 * Whether the next proposal begins another run by itself. After any other end the agent has to request it: its count of
 * denials begins anew, which must not happen unnoticed.
 */
export const isContinuable = ({ state, cause }: EndedRun): boolean => state === 'completed' || cause === 'IDLE';

/** How the call reached the run, which determines what the agent can do now. */
export type RunOrigin = 'own' | 'session' | 'named';

/**
 * The message for a call whose run has ended.
 * @param origin `last` for its own run, if no other run may follow
 */
export function runEndedMessage(ended: EndedRun, origin: RunOrigin | 'last'): string {
  const advice = origin === 'own' ? ownAdvice(ended) : ADVICE[origin];
  return `The run has ended: ${RUN_END_CAUSES[ended.cause]}. This call was not executed. ${advice}`;
}

const ADVICE = {
  session: 'Report the outstanding step of your session with `task`.',
  named: 'Omit run_id, or name a run that has not ended.',
  last: 'This server opens no other run for you: its operator has limited how many may follow.',
} as const;

function ownAdvice(ended: EndedRun): string {
  if (isContinuable(ended)) return 'Repeat the call: it goes into another run.';
  if (ended.cause === 'NOT_ALLOWED') return 'Tell the operator. When the policy has changed, call the tool new_run.';
  return 'Call the tool new_run to open another run, which is recorded as well. Then make a call that is allowed.';
}

// A FINISH that waits until people have decided about the pending requests of its run.

import type { ApprovalEntry } from '../src/core/contract/run/approval.js';
import type { Verdict } from '../src/core/policy/verdict.js';
import type { Emission } from './emission.js';
import type { StepMemory } from './step-memory.js';

const awaitedEntries = ({ approvals, awaited = [] }: StepMemory): readonly ApprovalEntry[] =>
  approvals.entries.filter(({ digest }) => awaited.includes(digest));

/** Whether people can still decide about an awaited request. @param now null at a vote, which ends no other request */
export const hasAwaitedRequest = (step: StepMemory, now: string | null): boolean =>
  awaitedEntries(step).some(({ state, expires_at }) => state === 'open' && (now === null || expires_at > now));

/** Whether an awaited request was approved, and may still be executed. */
export const hasApprovedRequest = (step: StepMemory, now: string | null): boolean =>
  awaitedEntries(step).some(({ state, expires_at }) => state === 'approved' && (now === null || expires_at > now));

/** The timer for the time when the last awaited request expires. */
export const finishTimer = (step: StepMemory): Emission => {
  const deadlines = awaitedEntries(step).flatMap(({ state, expires_at }) => (state === 'open' ? [expires_at] : []));
  return { type: 'timer', run_id: step.agent.run_id, at: deadlines.sort().at(-1) ?? step.received_at };
};

/** A request was approved while FINISH waited: its agent decides whether it still wants that. */
export const REQUEST_APPROVED: Verdict = {
  decision: 'deny',
  rule_id: 'finish.request_approved',
  cause: 'REQUEST_APPROVED',
};

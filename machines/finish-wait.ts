// A FINISH that waits until people have decided about the pending requests of its run (behaviour flag 16).

import { createMachine, type AnyStateMachine } from 'xstate';
import type { ApprovalEntry } from '../src/contract/run/approval.js';
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

/** The states, guards and actions of the chart in which FINISH waits. */
const STATES = ['waiting', 'counted'];
const GUARDS = ['mustWait', 'votesPending', 'approvedMeanwhile'];
const ACTIONS = ['noteAwaited', 'sayVoteDeadline', 'denyFinish'];

/** The step machine without them, as trees without the flag have pinned it. */
export function withoutFinishWait<Machine extends AnyStateMachine>(machine: Machine): Machine {
  const { states } = machine.config as unknown as { readonly states: Readonly<Record<string, StateChart>> };
  const authorize = Object.entries(states['AUTHORIZE']?.states ?? {}).flatMap(([name, state]) =>
    STATES.includes(name) ? [] : [[name, withoutGuards(state)] as const],
  );
  // Spread first, so that the states keep their order.
  const AUTHORIZE = { ...states['AUTHORIZE'], states: Object.fromEntries(authorize) };
  const config = { ...machine.config, states: { ...states, AUTHORIZE } };
  const { guards, actions, ...implementations } = machine.implementations;
  const made = createMachine(
    config as Parameters<typeof createMachine>[0],
    {
      ...implementations,
      guards: omit(guards, GUARDS),
      actions: omit(actions, ACTIONS),
    } as Parameters<typeof createMachine>[1],
  );
  return made as unknown as Machine;
}

interface StateChart {
  readonly states?: Readonly<Record<string, StateChart>>;
  readonly always?: unknown;
}

const withoutGuards = (state: StateChart): StateChart =>
  Array.isArray(state.always)
    ? { ...state, always: state.always.filter(({ guard }: { guard?: unknown }) => !GUARDS.includes(guard as string)) }
    : state;

const omit = <T>(members: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));

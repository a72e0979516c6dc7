// An agent run: one agent's bounded execution in a governed lane (S4-13). It takes one proposal at a time (D4).
//
//   created ─ AUTHORIZE ─▶ running ─┬─ ready ◀─┐
//                                   └─ stepping ┘      every proposal is a step, a child actor without a run
//
// Invariants:
//   A1. `steps` counts from 1 without a gap; a step gets its index when it starts (C38).
//   A2. At most one step is alive. What asks the run to end meanwhile is kept in `end`, and takes effect when the step
//       has given its one response.
//   A3. The n-th mediated run of this agent is `<run_id>.<n>`; a step that made none uses no number up (D11).

import { assign, emit, enqueueActions, sendTo, setup, stopChild } from 'xstate';
import type { ArtifactRef } from '../src/contract/artifact-ref.js';
import type { AgentLink, SeenProposal } from '../src/contract/entry.js';
import type { Exposure } from '../src/contract/response.js';
import { childRunId, type RunContext } from '../src/contract/run-context.js';
import type { TerminalState } from '../src/contract/run-state.js';
import type { Policy } from '../src/policy/policy.js';
import { runCreated, type RunEnd } from '../src/run/audit.js';
import type { Emission } from './emission.js';
import {
  cancelledFor,
  created,
  ENDS,
  COMPLETED,
  deniedBy,
  failedWith,
  isDone,
  sayAuthz,
  sayEnd,
  sayEnded,
  sayRunning,
  type RunEvent,
  type RunMemory,
  type RunOutput,
} from './run.js';
import type { StepMachine, StepOutput } from './step.js';

export interface AgentInput {
  readonly run: RunContext;
  readonly exposure: Exposure;
  readonly link: AgentLink;
  readonly idle_ms: number | null;
  readonly started_at: string;
}

export interface AgentMemory extends RunMemory, Omit<AgentInput, 'started_at'> {
  readonly steps: number;
  readonly denials: number;
  readonly mediated_runs: number;
  readonly active_at: string;
  /** The state in which the run will end, once something has decided that it will. */
  readonly ending: TerminalState | null;
}

export interface ProposeEvent {
  readonly type: 'PROPOSE';
  readonly input_id: string;
  readonly time: string;
  readonly payload: ArtifactRef;
  readonly raw: Uint8Array;
  readonly seen: SeenProposal | null;
  readonly recorded_response: string | null;
}

export type AgentEvent =
  | RunEvent
  | ProposeEvent
  /** The caller has no more proposals. */
  | { readonly type: 'END' }
  /** The caller is gone (D3). */
  | { readonly type: 'INTERRUPT' }
  | { readonly type: 'WAKE'; readonly time: string }
  | { readonly type: 'xstate.done.actor.*'; readonly actorId: string; readonly output: StepOutput };

export const stepId = (agent_run_id: string): string => `${agent_run_id}/step`;

const ends = (state: TerminalState) =>
  ({ guard: { type: 'ending', params: { state } }, target: `#agent.${state}` }) as const;

/** The agent machine, judged by `policy`, with the step machine that its proposals go through. */
export const createAgentMachine = (policy: Policy, step: StepMachine) =>
  setup({
    types: {} as {
      context: AgentMemory;
      events: AgentEvent;
      input: AgentInput;
      output: RunOutput;
      emitted: Emission;
      children: Record<string, 'step'>;
    },
    actors: { step },
    guards: {
      allowed: ({ event }) => event.type === 'AUTHORIZE' && event.verdict.decision === 'allow',
      ending: ({ context }, { state }: { state: TerminalState }) => context.ending === state,
      idle: ({ context, event }) =>
        event.type === 'WAKE' && context.idle_ms !== null && event.time >= idleAt(context.active_at, context.idle_ms),
    },
    actions: {
      sayCreated: emit(({ context: { run, exposure, link } }) => ({
        type: 'run_created',
        body: runCreated(run, { request: null, exposure, link }),
      })),
      sayAuthz: emit(({ context, event }) => sayAuthz(context.run, verdictOf(event))),
      sayRunning: emit(({ context }) => sayRunning(context.run)),
      sayEnd: emit(({ context }, { state }: { state: TerminalState }) => sayEnd(context, state)),
      sayEnded: emit(({ context }, { state }: { state: TerminalState }) => sayEnded(context, state)),
      sayTimer: enqueueActions(({ context, enqueue }) => {
        if (context.idle_ms === null) return;
        enqueue.emit({ type: 'timer', run_id: context.run.run_id, at: idleAt(context.active_at, context.idle_ms) });
      }),
      startStep: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'PROPOSE') return;
        enqueue.spawnChild('step', { id: stepId(context.run.run_id), input: stepInput(context, event) });
        enqueue.assign({ steps: context.steps + 1, active_at: event.time });
      }),
      stopStep: stopChild(({ context }) => stepId(context.run.run_id)),
      noteStep: assign(({ context, event }) => (isDone(event) ? afterStep(context, event.output, policy) : {})),
      noteDenied: assign({ end: ({ event }) => deniedBy(verdictOf(event)) }),
      noteEnding: assign(({ context, event }) => (context.ending === null ? endingOf(event) : {})),
      cancelStep: sendTo(
        ({ context }) => stepId(context.run.run_id),
        ({ event }) => event,
      ),
      // An event without target and actions counts as one that the run cannot take; a timer that rings now is none.
      stayAwake: assign({}),
    },
  }).createMachine({
    id: 'agent',
    context: ({ input: { run, exposure, link, idle_ms, started_at } }) => ({
      run,
      exposure,
      link,
      idle_ms,
      end: null,
      ending: null,
      steps: 0,
      denials: 0,
      mediated_runs: 0,
      active_at: started_at,
    }),
    initial: 'created',
    states: {
      created: created('noteEnding'),
      running: {
        initial: 'ready',
        states: {
          ready: {
            entry: 'sayTimer',
            on: {
              PROPOSE: { target: 'stepping', actions: 'startStep' },
              END: { target: '#agent.completed', actions: 'noteEnding' },
              INTERRUPT: { target: '#agent.failed', actions: 'noteEnding' },
              CANCEL: { target: '#agent.cancelled', actions: 'noteEnding' },
              WAKE: [{ guard: 'idle', target: '#agent.cancelled', actions: 'noteEnding' }, { actions: 'sayTimer' }],
            },
          },
          stepping: {
            on: {
              'xstate.done.actor.*': { target: 'stepped', actions: ['noteStep', 'stopStep'] },
              END: { actions: 'noteEnding' },
              INTERRUPT: { actions: 'noteEnding' },
              CANCEL: { actions: ['noteEnding', 'cancelStep'] },
              WAKE: { actions: 'stayAwake' },
            },
          },
          stepped: {
            always: [ends('completed'), ends('failed'), ends('denied'), ends('cancelled'), { target: 'ready' }],
          },
        },
      },
      ...ENDS,
    },
    output: ({ event }) => (event as unknown as { output: RunOutput }).output,
  });
export type AgentMachine = ReturnType<typeof createAgentMachine>;

const stepInput = (context: AgentMemory, event: ProposeEvent) => ({
  agent: context.run,
  exposure: context.exposure,
  input_id: event.input_id,
  step_index: context.steps + 1,
  received_at: event.time,
  payload: event.payload,
  raw: event.raw,
  seen: event.seen,
  recorded_response: event.recorded_response,
  mediated_run_id: childRunId(context.run.run_id, context.mediated_runs + 1),
});

/** Counts the step, and decides whether it was the last. What had asked the run to end before comes first. */
function afterStep(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { denials_per_run_max, steps_per_run_max } = policy.limits;
  const denials = context.denials + (step.denied ? 1 : 0);
  const mediated_runs = context.mediated_runs + (step.mediated ? 1 : 0);
  if (context.ending !== null) return { denials, mediated_runs };
  if (step.finished) return { denials, mediated_runs, ...end('completed', { reason: 'finished', error: null }) };
  if (denials >= denials_per_run_max)
    return { denials, mediated_runs, ...end('denied', deniedBy({ rule_id: 'limit.denials' })) };
  if (context.steps >= steps_per_run_max) return { denials, mediated_runs, ...end('failed', TOO_MANY_STEPS) };
  return { denials, mediated_runs };
}

const end = (ending: TerminalState, why: RunEnd) => ({ ending, end: why });

const TOO_MANY_STEPS = failedWith('STEP_LIMIT', 'The run has used up the steps that its policy allows.', false);
const INTERRUPTED = failedWith('INTERRUPTED', 'The process that this run belonged to ended before it.', true);

function endingOf(event: AgentEvent): Partial<AgentMemory> {
  switch (event.type) {
    case 'END':
      return end('completed', { ...COMPLETED, reason: 'end_of_input' });
    case 'INTERRUPT':
      return end('failed', INTERRUPTED);
    case 'WAKE':
      return end('cancelled', cancelledFor('idle'));
    case 'CANCEL':
      return end('cancelled', cancelledFor(event.reason));
    default:
      return {};
  }
}

const verdictOf = (event: AgentEvent) =>
  event.type === 'AUTHORIZE'
    ? event.verdict
    : { decision: 'deny' as const, rule_id: 'run.no_verdict', cause: 'LIFECYCLE' as const };

/** The last moment that a timestamp of the contract can name. */
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/** Arithmetic on recorded times, not a reading of a clock. */
const idleAt = (active_at: string, idle_ms: number): string =>
  new Date(Math.min(Date.parse(active_at) + idle_ms, LATEST)).toISOString();

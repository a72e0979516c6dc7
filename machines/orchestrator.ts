// An orchestrator run: the root of a run tree (S4-12). It creates agent runs and ends when the last of them has.
//
//   created ─ AUTHORIZE ─▶ running ─┬─ working ── the last agent ended ─▶ completed | failed | cancelled
//                                   └─ ending  ── (agents are being cancelled first) ─▶ failed | cancelled
//
// Invariants:
//   O1. An agent run gets everything but its role, lane and actor from this run's context (S4-56, U-03).
//   O2. When a child has failed or was denied, policy decides: `fail` ends this run as failed, after its other agents
//       were cancelled; `continue` goes on (C52).
//   O3. A cancel goes to the agents first, and to this run when none is left (C53).

import { assign, emit, enqueueActions, setup } from 'xstate';
import type { AgentLink } from '../src/contract/entry.js';
import type { Exposure } from '../src/contract/response.js';
import { childContext, childRunId, type RunContext } from '../src/contract/run-context.js';
import type { TerminalState } from '../src/contract/run-state.js';
import type { Actor } from '../src/contract/shapes.js';
import { authorizeAgent, laneContext } from '../src/policy/lane-decision.js';
import type { Policy } from '../src/policy/policy.js';
import { runCreated } from '../src/run/audit.js';
import type { AgentMachine } from './agent.js';
import type { Emission } from './emission.js';
import {
  cancelledFor,
  created,
  ENDS,
  deniedBy,
  failedWith,
  isDone,
  sayAuthz,
  sayEnd,
  sayEnded,
  sayRunning,
  type DoneEvent,
  type RunEvent,
  type RunMemory,
  type RunOutput,
} from './run.js';

export interface OrchestratorInput {
  readonly run: RunContext;
}

export interface OrchestratorMemory extends RunMemory {
  /** How many agent runs there have been: the next one's ordinal is one more. */
  readonly agents: number;
  /** The agent runs that have not ended, by run id. */
  readonly live: readonly string[];
  readonly ending: TerminalState | null;
}

export interface StartAgentEvent {
  readonly type: 'START_AGENT';
  readonly actor: Actor;
  readonly role_id: string;
  readonly lane_id: string;
  readonly exposure: Exposure;
  readonly link: AgentLink;
  readonly idle_ms: number | null;
  readonly time: string;
}

export type OrchestratorEvent = RunEvent | StartAgentEvent | DoneEvent;

const ends = (state: TerminalState) =>
  ({ guard: { type: 'ending', params: { state } }, target: `#orchestrator.${state}` }) as const;

/** The orchestrator machine, judged by `policy`, with the machine of the agent runs that it creates. */
export const createOrchestratorMachine = (policy: Policy, agent: AgentMachine) =>
  setup({
    types: {} as {
      context: OrchestratorMemory;
      events: OrchestratorEvent;
      input: OrchestratorInput;
      output: RunOutput;
      emitted: Emission;
      children: Record<string, 'agent'>;
    },
    actors: { agent },
    guards: {
      allowed: ({ event }) => event.type === 'AUTHORIZE' && event.verdict.decision === 'allow',
      ending: ({ context }, { state }: { state: TerminalState }) =>
        context.live.length === 0 && context.ending === state,
      mustEnd: ({ context }) => context.ending !== null,
    },
    actions: {
      sayCreated: emit(({ context: { run } }) => ({
        type: 'run_created',
        body: runCreated(run, { request: null, exposure: null, link: null }),
      })),
      sayAuthz: emit(({ context, event }) => sayAuthz(context.run, verdictOf(event))),
      sayRunning: emit(({ context }) => sayRunning(context.run)),
      sayEnd: emit(({ context }, { state }: { state: TerminalState }) => sayEnd(context, state)),
      sayEnded: emit(({ context }, { state }: { state: TerminalState }) => sayEnded(context, state)),
      startAgent: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'START_AGENT') return;
        const run = agentContext(context, event, policy);
        const { exposure, link, idle_ms, time } = event;
        enqueue.spawnChild('agent', { id: run.run_id, input: { run, exposure, link, idle_ms, started_at: time } });
        enqueue.assign({ agents: context.agents + 1, live: [...context.live, run.run_id] });
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict: authorizeAgent(run, policy) });
      }),
      noteChild: enqueueActions(({ context, event, enqueue }) => {
        if (!isDone(event)) return;
        enqueue.stopChild(event.actorId);
        enqueue.assign(afterChild(context, event.output, policy));
      }),
      cancelAgents: enqueueActions(({ context, enqueue }) => {
        for (const run_id of context.live) {
          enqueue.sendTo(run_id, { type: 'CANCEL', reason: context.end?.reason ?? 'parent_ended' });
        }
      }),
      noteDenied: assign({ end: ({ event }) => deniedBy(verdictOf(event)) }),
      noteCancel: assign(({ context, event }) =>
        event.type === 'CANCEL' && context.ending === null
          ? { ending: 'cancelled' as const, end: cancelledFor(event.reason) }
          : {},
      ),
    },
  }).createMachine({
    id: 'orchestrator',
    context: ({ input }) => ({ ...input, end: null, ending: null, agents: 0, live: [] }),
    initial: 'created',
    states: {
      created: created('noteCancel'),
      running: {
        initial: 'working',
        states: {
          working: {
            on: {
              START_AGENT: { actions: 'startAgent' },
              'xstate.done.actor.*': { target: 'settling', actions: 'noteChild' },
              CANCEL: { target: 'ending', actions: 'noteCancel' },
            },
          },
          settling: { always: [{ guard: 'mustEnd', target: 'ending' }, { target: 'working' }] },
          ending: {
            entry: 'cancelAgents',
            always: [ends('completed'), ends('failed'), ends('cancelled')],
            on: {
              'xstate.done.actor.*': { actions: 'noteChild' },
            },
          },
        },
      },
      ...ENDS,
    },
    output: ({ event }) => (event as unknown as { output: RunOutput }).output,
  });
export type OrchestratorMachine = ReturnType<typeof createOrchestratorMachine>;

/** The agent's context: its own actor, role and lane; all the rest inherited. */
function agentContext({ run, agents }: OrchestratorMemory, event: StartAgentEvent, policy: Policy): RunContext {
  const { actor, role_id, lane_id } = event;
  const child = { ...childContext(run, childRunId(run.run_id, agents + 1), 'agent'), actor, role_id, lane_id };
  const lane = policy.lanes.get(lane_id);
  return lane === undefined ? child : laneContext(child, lane);
}

/** What the end of an agent run means for this one. */
function afterChild(context: OrchestratorMemory, child: RunOutput, policy: Policy): Partial<OrchestratorMemory> {
  const live = context.live.filter((run_id) => run_id !== child.run_id);
  if (context.ending !== null) return { live };
  const spoilt = child.state === 'failed' || child.state === 'denied';
  if (spoilt && policy.knobs.on_child_failure === 'fail') {
    return { live, ending: 'failed', end: failedWith('CHILD_FAILED', `The agent run was ${child.state}.`, false) };
  }
  if (live.length > 0) return { live };
  return child.state === 'cancelled'
    ? { live, ending: 'cancelled', end: cancelledFor(child.end.reason) }
    : {
        live,
        ending: 'completed',
        end: child.state === 'completed' ? child.end : { reason: 'child_failed', error: null },
      };
}

const verdictOf = (event: OrchestratorEvent) =>
  event.type === 'AUTHORIZE'
    ? event.verdict
    : { decision: 'deny' as const, rule_id: 'run.no_verdict', cause: 'LIFECYCLE' as const };

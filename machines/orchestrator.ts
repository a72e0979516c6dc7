// An orchestrator run: the root of a run tree (S4-12). It creates agent runs, and the promotion and export runs that
// people start, and ends when the last of them has ended.
//
//   created ─ AUTHORIZE ─▶ running ─┬─ working ── the last agent ended ─▶ completed | failed | cancelled
//                                   └─ ending  ── (agents are being cancelled first) ─▶ failed | cancelled
//
// Invariants:
//   O1. An agent run gets everything but its role, lane and actor from this run's context (S4-56, U-03).
//   O2. If a child has failed or was denied, policy decides: `fail` cancels the other agents and ends this run as
//       failed; `continue` lets it run (C52).
//   O3. A cancel goes to the children first, and to this run when none is left (C53).
//   O4. An activation of a session does not end when its children end, and notifies the session of each end.
//   O5. The budget of an agent is reserved from the tree's budget; the unused rest returns to the tree.

import { assign, emit, enqueueActions, sendParent, setup } from 'xstate';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account, BudgetLimits, Limits } from '../src/core/contract/run/budget.js';
import type { AgentLink } from '../src/core/contract/run/entry.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { Exposure } from '../src/core/contract/run/response.js';
import {
  childContext,
  childRunId,
  type RunContext,
  type RunKind,
  type TerminalState,
} from '../src/core/contract/run/run-context.js';
import type { Person } from '../src/core/contract/person.js';
import type { Actor } from '../src/core/contract/shapes.js';
import { laneContext, authorizeAgentStart } from '../src/core/policy/authorize-run.js';
import type { Policy } from '../src/core/policy/policy.js';
import { runCreatedDraft } from '../src/core/run/audit-events.js';
import { amountsOf, limitsOf, openAccount, reserve, settle } from '../src/core/run/budget-account.js';
import type { AgentMachine } from './agent.js';
import {
  cancellationEnd,
  createdState,
  FINAL_STATES,
  denialEnd,
  failureEnd,
  isDoneEvent,
  authzEmission,
  endEmission,
  runEndedEmission,
  runningEmission,
  verdictOf,
  type DoneEvent,
  type RunEvent,
  type RunMemory,
  type RunOutput,
  withRefs,
} from './run.js';
import {
  prepareHighRiskRun,
  type StartableRunKind,
  type StartableLogicByKind,
  type StartRunEvent,
} from './high-risk-run.js';
import type { Emission } from './emission.js';

export interface OrchestratorInput {
  readonly run: RunContext;
  /** True for an activation of a session: it ends when the session ends it, and not with its children. */
  readonly is_activation?: boolean;
  /** The configuration that it started with; empty if the tree does not record it (C91). */
  readonly inputs?: readonly ArtifactRef[];
}

export interface OrchestratorMemory extends RunMemory {
  readonly is_activation: boolean;
  /** The number of child runs so far; the next ordinal is one more. */
  readonly children: number;
  /** The child runs that have not ended. */
  readonly live: readonly LiveChild[];
  /** The budget of the whole tree, and the part of it that agents hold (O5). */
  readonly account: Account;
  readonly ending: TerminalState | null;
}

export interface LiveChild {
  readonly run_id: string;
  /** The budget reserved for it; null for a run without a budget of its own. */
  readonly grant: Limits | null;
}

export interface StartAgentEvent {
  readonly type: 'START_AGENT';
  readonly actor: Actor;
  readonly person?: Person | undefined;
  readonly role_id: string;
  readonly lane_id: string;
  readonly exposure: Exposure;
  readonly link: AgentLink;
  readonly idle_ms: number | null;
  readonly budget: BudgetLimits | null;
  /** The initial material of the agent: prompts, or the step of a session. */
  readonly given?: readonly ArtifactRef[];
  readonly overlay: OverlayFact | null;
  readonly time: string;
}

/** Events from a session to its activation. */
type ActivationEvent =
  { readonly type: 'END_CHILD'; readonly run_id: string } | { readonly type: 'CLOSE'; readonly reason: string };

export type OrchestratorEvent = RunEvent | StartAgentEvent | StartRunEvent | ActivationEvent | DoneEvent;

const endTransition = (state: TerminalState) =>
  ({ guard: { type: 'canEndAs', params: { state } }, target: `#orchestrator.${state}` }) as const;

/** The orchestrator machine under `policy`, with the machine of the agent runs that it creates. */
export const createOrchestratorMachine = (policy: Policy, agent: AgentMachine, kinds: StartableLogicByKind) =>
  setup({
    types: {} as {
      context: OrchestratorMemory;
      events: OrchestratorEvent;
      input: OrchestratorInput;
      output: RunOutput;
      emitted: Emission;
      children: Record<string, 'agent' | StartableRunKind>;
    },
    actors: { agent, promotion: kinds.promotion, export: kinds.export, tool_gateway: kinds.tool_gateway },
    guards: {
      isAllowed: ({ event }) => event.type === 'AUTHORIZE' && event.verdict.decision === 'allow',
      canEndAs: ({ context }, { state }: { state: TerminalState }) =>
        context.live.length === 0 && context.ending === state,
      isEnding: ({ context }) => context.ending !== null,
      isActivation: ({ context }) => context.is_activation,
    },
    actions: {
      recordCreation: emit(({ context: { run } }) => ({
        type: 'run_created',
        body: runCreatedDraft(run, { request: null, exposure: null, link: null }),
      })),
      recordAuthorization: emit(({ context, event }) => authzEmission(context.run, event)),
      recordRunning: emit(({ context }) => runningEmission(context.run, context.inputs)),
      recordEnd: emit(({ context }, { state }: { state: TerminalState }) => endEmission(context, state)),
      emitRunEnded: emit(({ context }, { state }: { state: TerminalState }) => runEndedEmission(context, state)),
      startAgent: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'START_AGENT') return;
        const run = newChildContext(context, event, 'agent', policy);
        const { exposure, link, idle_ms, overlay, time, given = [] } = event;
        const person = event.person ?? null;
        const { inputs = [] } = context;
        const { account, budget, verdict } = admitAgent(context, run, event, policy);
        const agentInputs = inputs.length === 0 ? [] : withRefs(inputs, given);
        const input = { run, person, exposure, link, idle_ms, started_at: time, budget, inputs: agentInputs };
        enqueue.spawnChild('agent', { id: run.run_id, input });
        enqueue.assign({ account, ...withChild(context, { run_id: run.run_id, grant: budget }) });
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay, digest: null });
      }),
      startRun: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'START_RUN') return;
        const run = newChildContext(context, event, event.run_kind, policy);
        const { input, verdict } = prepareHighRiskRun(run, event, policy);
        enqueue.spawnChild(event.run_kind, { id: run.run_id, input });
        enqueue.assign(withChild(context, { run_id: run.run_id, grant: null }));
        if (input.approval !== null) return;
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay: event.overlay, digest: null });
      }),
      applyChildEnd: enqueueActions(({ context, event, enqueue }) => {
        if (!isDoneEvent(event)) return;
        enqueue.stopChild(event.actorId);
        enqueue.assign(applyChildEnd(context, event.output, policy));
      }),
      notifySession: sendParent(({ event }) => ({
        type: 'CHILD_ENDED',
        output: isDoneEvent(event) ? event.output : null,
      })),
      endChild: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'END_CHILD' || !context.live.some(({ run_id }) => run_id === event.run_id)) return;
        enqueue.sendTo(event.run_id, { type: 'END' });
      }),
      applyClose: assign(({ event }) =>
        event.type === 'CLOSE' ? { ending: 'completed' as const, end: { reason: event.reason, error: null } } : {},
      ),
      cancelChildren: enqueueActions(({ context, enqueue }) => {
        for (const { run_id } of context.live) {
          enqueue.sendTo(run_id, { type: 'CANCEL', reason: context.end?.reason ?? 'parent_ended' });
        }
      }),
      applyDenial: assign({ end: ({ event }) => denialEnd(verdictOf(event)) }),
      applyCancel: assign(({ context, event }) =>
        event.type === 'CANCEL' && context.ending === null
          ? { ending: 'cancelled' as const, end: cancellationEnd(event.reason) }
          : {},
      ),
    },
  }).createMachine({
    id: 'orchestrator',
    context: ({ input: { run, is_activation = false, inputs = [] } }) => ({
      run,
      is_activation,
      inputs,
      outputs: [],
      end: null,
      ending: null,
      children: 0,
      live: [],
      account: openAccount(limitsOf(policy.budgets)),
    }),
    initial: 'created',
    states: {
      created: createdState('applyCancel'),
      running: {
        initial: 'working',
        states: {
          working: {
            on: {
              START_AGENT: { actions: 'startAgent' },
              START_RUN: { actions: 'startRun' },
              'xstate.done.actor.*': [
                { guard: 'isActivation', target: 'childEnded', actions: ['applyChildEnd', 'notifySession'] },
                { target: 'childEnded', actions: 'applyChildEnd' },
              ],
              CANCEL: { target: 'ending', actions: 'applyCancel' },
              END_CHILD: { actions: 'endChild' },
              CLOSE: { guard: 'isActivation', target: 'ending', actions: 'applyClose' },
            },
          },
          childEnded: { always: [{ guard: 'isEnding', target: 'ending' }, { target: 'working' }] },
          ending: {
            entry: 'cancelChildren',
            always: [endTransition('completed'), endTransition('failed'), endTransition('cancelled')],
            on: {
              'xstate.done.actor.*': [
                { guard: 'isActivation', actions: ['applyChildEnd', 'notifySession'] },
                { actions: 'applyChildEnd' },
              ],
            },
          },
        },
      },
      ...FINAL_STATES,
    },
    output: ({ event }) => (event as unknown as { output: RunOutput }).output,
  });
/** The machine that `createOrchestratorMachine` returns. */
export interface OrchestratorMachine extends ReturnType<typeof createOrchestratorMachine> {}

type ChildIdentity = Pick<StartAgentEvent, 'actor' | 'person' | 'role_id' | 'lane_id'>;

/** The child's context: its own actor, role and lane; everything else is inherited. */
export function newChildContext(
  { run, children }: Pick<OrchestratorMemory, 'run' | 'children'>,
  { actor, person, role_id, lane_id }: ChildIdentity,
  run_kind: RunKind,
  policy: Policy,
): RunContext {
  const own = { actor, person, role_id, lane_id };
  const child = { ...childContext(run, childRunId(run.run_id, children + 1), run_kind), ...own };
  const lane = policy.lanes.get(lane_id);
  return lane === undefined ? child : laneContext(child, lane);
}

const withChild = ({ children, live }: OrchestratorMemory, child: LiveChild) => ({
  children: children + 1,
  live: [...live, child],
});

/** The budget for an agent, reserved from what the tree has left; and whether the agent may start at all. */
export function admitAgent(
  { account }: Pick<OrchestratorMemory, 'account'>,
  run: RunContext,
  event: Pick<StartAgentEvent, 'budget' | 'overlay'>,
  policy: Policy,
) {
  const reservation = reserve(account, limitsOf(event.budget ?? {}));
  const isExhausted = 'exhausted' in reservation;
  const exhausted = isExhausted ? reservation.exhausted : null;
  const verdict = authorizeAgentStart(run, { exhausted, overlay: event.overlay }, policy);
  return isExhausted
    ? { account, budget: null, verdict }
    : { account: reservation.account, budget: reservation.grant, verdict };
}

/** Applies the end of a child run to this run. */
function applyChildEnd(context: OrchestratorMemory, child: RunOutput, policy: Policy): Partial<OrchestratorMemory> {
  const live = context.live.filter(({ run_id }) => run_id !== child.run_id);
  const grant = context.live.find(({ run_id }) => run_id === child.run_id)?.grant ?? null;
  const account = grant === null ? context.account : settle(context.account, grant, child.spent ?? amountsOf({}));
  const outputs = withRefs(context.outputs ?? [], child.outputs ?? []);
  const update = { live, account, outputs };
  if (context.ending !== null || context.is_activation) return update;
  const hasFailedChild = child.state === 'failed' || child.state === 'denied';
  if (hasFailedChild && policy.knobs.on_child_failure === 'fail') {
    const end = failureEnd('CHILD_FAILED', `The run that it started was ${child.state}.`, false);
    return { ...update, ending: 'failed', end };
  }
  if (live.length > 0) return update;
  return child.state === 'cancelled'
    ? { ...update, ending: 'cancelled', end: cancellationEnd(child.end.reason) }
    : {
        ...update,
        ending: 'completed',
        end: child.state === 'completed' ? child.end : { reason: 'child_failed', error: null },
      };
}

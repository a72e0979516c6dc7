// An agent run: one agent's bounded execution in a governed lane (S4-13). It takes one proposal at a time (D4).
//
//   created ─ AUTHORIZE ─▶ running ─┬─ ready ◀─┐
//                                   └─ stepping ┘      every proposal is a step, a child actor without a run
//
// Invariants:
//   A1. `steps` counts from 1 without a gap; a step gets its index when it starts (C38).
//   A2. At most one step is live. If an event ends the run meanwhile, `ending` and `end` record it, and the run ends
//       once the step has returned its one response.
//   A3. The n-th mediated run of this agent is `<run_id>.<n>`; a step without one uses no number (D11).
//   A4. The agent remembers what it has read, what budget it has used, its approvals and its unsettled requests. Each
//       step gets these values as they are when it starts.
//   A5. A caller run is a child of this run. It may outlive its step, and ends before this run does (U-08).

import { assign, emit, enqueueActions, sendTo, setup, stopChild } from 'xstate';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account } from '../src/core/contract/run/budget.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { TerminalState } from '../src/core/contract/run/run-context.js';
import { LATEST_TIMESTAMP_MS } from '../src/core/contract/shapes.js';
import {
  approvalDecider,
  emptyBook,
  approvalRuleFor,
  effectiveRule,
  ruleOfEntry,
} from '../src/core/policy/policy-features.js';
import { EMPTY_LABEL, joinLabels } from '../src/core/policy/authorize-run.js';
import type { Policy } from '../src/core/policy/policy.js';
import { runCreatedDraft, type RunEnd } from '../src/core/run/audit-events.js';
import { limitsOf, openAccount, charge } from '../src/core/run/budget-account.js';
import { voteEmissions, approvalPolicyFor } from './approval-ballot.js';
import type { Emission } from './emission.js';
import { callerRunDeniedEvent, removeCallerRun, type StartCallerRunEvent } from './caller-runs/caller-run.js';
import type { MediatedLogic } from './mediated.js';
import type { VoteEvent } from './mediated-memory.js';
import {
  cancellationEnd,
  createdState,
  FINAL_STATES,
  COMPLETED_END,
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
  type RunOutput,
  withRefs,
} from './run.js';
import type { ApprovalUsedEvent, StepMachine } from './step.js';
import type { StepOutput } from './step-memory.js';
import type { AgentInput, AgentMemory, ProposeEvent } from './agent-memory.js';
import type { ApprovalBook } from '../src/core/contract/run/approval.js';

export type { AgentInput, AgentMemory, ProposeEvent } from './agent-memory.js';

export type AgentEvent =
  | RunEvent
  | ProposeEvent
  /** The caller has no more proposals. */
  | { readonly type: 'END' }
  /** The caller has disconnected (D3). */
  | { readonly type: 'INTERRUPT' }
  | { readonly type: 'WAKE'; readonly time: string; readonly overlay: OverlayFact | null }
  | VoteEvent
  | ApprovalUsedEvent
  | StartCallerRunEvent
  /** A run that waits for a report has started. */
  | { readonly type: 'STARTED' }
  /** D8: the unknown outcome of a request has been determined. */
  | { readonly type: 'RESOLVED'; readonly request_hash: string }
  | { readonly type: 'xstate.done.actor.*'; readonly actorId: string; readonly output: StepOutput | RunOutput };

export const stepId = (agent_run_id: string): string => `${agent_run_id}/step`;

const endTransition = (state: TerminalState) =>
  ({ guard: { type: 'isEndingAs', params: { state } }, target: `#agent.${state}` }) as const;

/** The agent machine under `policy`, with the machines of its proposals and of the runs that wait for a report. */
export const createAgentMachine = (policy: Policy, step: StepMachine, callerRun: MediatedLogic) =>
  setup({
    types: {} as {
      context: AgentMemory;
      events: AgentEvent;
      input: AgentInput;
      output: RunOutput;
      emitted: Emission;
      children: Record<string, 'step' | 'caller_run'>;
    },
    actors: { step, caller_run: callerRun },
    guards: {
      isAllowed: ({ event }) => event.type === 'AUTHORIZE' && event.verdict.decision === 'allow',
      isEndingAs: ({ context }, { state }: { state: TerminalState }) => context.ending === state,
      hasCallerRuns: ({ context }) => hasCallerRuns(context),
      shouldEndCallerRuns: ({ context }) => context.ending !== null && hasCallerRuns(context),
      hasNoCallerRuns: ({ context }) => !hasCallerRuns(context),
      isCallerRunEnd: ({ context, event }) => isDoneEvent(event) && isCallerRunEnd(context, event.actorId),
      isCallerRunDenial: ({ context, event }) =>
        isDoneEvent(event) && isCallerRunEnd(context, event.actorId) && (event.output as RunOutput).state === 'denied',
      isIdle: ({ context, event }) =>
        event.type === 'WAKE' &&
        context.idle_ms !== null &&
        event.time >= idleDeadline(context.active_at, context.idle_ms),
    },
    actions: {
      recordCreation: emit(({ context: { run, exposure, link, budget } }) => ({
        type: 'run_created',
        body: runCreatedDraft(run, { request: null, exposure, link, budget }),
      })),
      recordAuthorization: emit(({ context, event }) => authzEmission(context.run, event)),
      recordRunning: emit(({ context }) => runningEmission(context.run, context.inputs)),
      recordEnd: emit(({ context }, { state }: { state: TerminalState }) => endEmission(context, state)),
      emitRunEnded: emit(({ context }, { state }: { state: TerminalState }) => runEndedEmission(context, state)),
      setIdleTimer: enqueueActions(({ context, enqueue }) => {
        if (context.idle_ms === null) return;
        enqueue.emit({
          type: 'timer',
          run_id: context.run.run_id,
          at: idleDeadline(context.active_at, context.idle_ms),
        });
      }),
      startStep: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'PROPOSE') return;
        const account = chargeProposal(context, event);
        enqueue.spawnChild('step', { id: stepId(context.run.run_id), input: stepInput(context, event, account) });
        const prompts = withRefs(context.prompts ?? [], promptRefs(event));
        enqueue.assign({ steps: context.steps + 1, active_at: event.time, account, charged_at: event.time, prompts });
      }),
      stopStep: stopChild(({ context }) => stepId(context.run.run_id)),
      applyStepOutput: assign(({ context, event }) =>
        isDoneEvent(event) ? applyStepOutput(context, event.output as StepOutput, policy) : {},
      ),
      startCallerRun: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'START_CALLER_RUN') return;
        const { run, request, verdict, overlay, digest } = event;
        enqueue.spawnChild('caller_run', { id: run.run_id, input: { run, request, approval: null } });
        enqueue.assign({ caller_runs: [...(context.caller_runs ?? []), run.run_id] });
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay, digest });
      }),
      removeCallerRun: assign(({ context, event }) =>
        isDoneEvent(event) ? removeCallerRun(context, event as DoneEvent) : {},
      ),
      stopCallerRun: stopChild(({ event }) => (isDoneEvent(event) ? event.actorId : '')),
      cancelCallerRuns: enqueueActions(({ context, enqueue }) => {
        for (const run_id of context.caller_runs ?? [])
          enqueue.sendTo(run_id, { type: 'CANCEL', reason: 'parent_ended' });
      }),
      sendDenial: sendTo(
        ({ context }) => stepId(context.run.run_id),
        ({ event }) => callerRunDeniedEvent(isDoneEvent(event) ? (event.output as RunOutput) : {}),
      ),
      applyDenial: assign({ end: ({ event }) => denialEnd(verdictOf(event)) }),
      setEnding: assign(({ context, event }) => (context.ending === null ? endingOf(event) : {})),
      forwardToStep: sendTo(
        ({ context }) => stepId(context.run.run_id),
        ({ event }) => event,
      ),
      sendStopRetrying: sendTo(({ context }) => stepId(context.run.run_id), { type: 'STOP_RETRYING' }),
      countVotes: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'VOTE') return;
        const { book, verdicts } = approvalDecider().countBallot(
          context.approvals,
          event.ballot,
          approvalPolicyFor(policy, event.ballot, event.overlay),
        );
        for (const emission of voteEmissions(context.run, event, verdicts)) enqueue.emit(emission);
        enqueue.assign({ approvals: book });
      }),
      sendApprovals: sendTo(
        ({ context }) => stepId(context.run.run_id),
        ({ context }) => ({ type: 'APPROVALS_CHANGED' as const, approvals: context.approvals }),
      ),
      consumeApproval: assign(({ context, event }) =>
        event.type === 'APPROVAL_USED' ? { approvals: consumeGrantedApproval(context.approvals, event, policy) } : {},
      ),
      removeUnsettled: assign(({ context: { unsettled }, event }) =>
        event.type === 'RESOLVED' ? { unsettled: unsettled.filter((hash) => hash !== event.request_hash) } : {},
      ),
    },
  }).createMachine({
    id: 'agent',
    context: ({ input: { run, person, exposure, link, idle_ms, started_at, budget, inputs = [] } }) => ({
      run,
      person,
      inputs,
      outputs: [],
      prompts: [],
      exposure,
      link,
      idle_ms,
      end: null,
      ending: null,
      steps: 0,
      denials: 0,
      invalid: 0,
      mediated_runs: 0,
      active_at: started_at,
      budget,
      account: openAccount(limitsOf({ steps: policy.limits.steps_per_run_max }, budget ?? {})),
      charged_at: started_at,
      label: EMPTY_LABEL,
      approvals: emptyBook(run.run_id),
      unsettled: [],
    }),
    initial: 'created',
    states: {
      created: createdState('setEnding'),
      running: {
        initial: 'ready',
        states: {
          ready: {
            entry: 'setIdleTimer',
            on: {
              PROPOSE: { target: 'stepping', actions: 'startStep' },
              END: [CLOSING, { target: '#agent.completed', actions: 'setEnding' }],
              INTERRUPT: [CLOSING, { target: '#agent.failed', actions: 'setEnding' }],
              CANCEL: [CLOSING, { target: '#agent.cancelled', actions: 'setEnding' }],
              VOTE: { actions: 'countVotes' },
              RESOLVED: { actions: 'removeUnsettled' },
              'xstate.done.actor.*': [
                { guard: 'isCallerRunEnd', actions: ['removeCallerRun', 'stopCallerRun', 'setIdleTimer'] },
              ],
              // A run that waits for a report is work of the agent: its end sets the timer again.
              WAKE: [
                { guard: 'hasCallerRuns' },
                { guard: 'isIdle', target: '#agent.cancelled', actions: 'setEnding' },
                { actions: 'setIdleTimer' },
              ],
            },
          },
          stepping: {
            on: {
              'xstate.done.actor.*': [
                { guard: 'isCallerRunDenial', actions: ['sendDenial', 'removeCallerRun', 'stopCallerRun'] },
                { guard: 'isCallerRunEnd', actions: ['removeCallerRun', 'stopCallerRun'] },
                { target: 'stepEnded', actions: ['applyStepOutput', 'stopStep'] },
              ],
              START_CALLER_RUN: { actions: 'startCallerRun' },
              STARTED: { actions: 'forwardToStep' },
              END: { actions: 'setEnding' },
              INTERRUPT: { actions: ['setEnding', 'sendStopRetrying'] },
              CANCEL: { actions: ['setEnding', 'forwardToStep'] },
              VOTE: { actions: ['countVotes', 'sendApprovals'] },
              RESOLVED: { actions: 'removeUnsettled' },
              APPROVAL_USED: { actions: 'consumeApproval' },
              // A step may be waiting to retry; any other step ignores the timer.
              WAKE: { actions: 'forwardToStep' },
            },
          },
          stepEnded: {
            always: [
              { guard: 'shouldEndCallerRuns', target: 'endingCallerRuns' },
              endTransition('completed'),
              endTransition('failed'),
              endTransition('denied'),
              endTransition('cancelled'),
              { target: 'ready' },
            ],
          },
          endingCallerRuns: {
            entry: 'cancelCallerRuns',
            always: { guard: 'hasNoCallerRuns', target: 'stepEnded' },
            on: { 'xstate.done.actor.*': { actions: ['removeCallerRun', 'stopCallerRun'] } },
          },
        },
      },
      ...FINAL_STATES,
    },
    output: ({ event }) => (event as unknown as { output: RunOutput }).output,
  });
/** The machine that `createAgentMachine` returns. */
export interface AgentMachine extends ReturnType<typeof createAgentMachine> {}

/** Runs that wait for a report end first. */
const CLOSING = { guard: 'hasCallerRuns', target: 'endingCallerRuns', actions: 'setEnding' } as const;

/** Whether this is the end of a run that the caller executes, and not of a step. */
const isCallerRunEnd = ({ caller_runs = [] }: AgentMemory, actorId: string): boolean => caller_runs.includes(actorId);

const hasCallerRuns = ({ caller_runs = [] }: AgentMemory): boolean => caller_runs.length > 0;

const promptRefs = ({ prompt }: ProposeEvent): readonly ArtifactRef[] => (prompt === null ? [] : [prompt]);

const stepInput = (context: AgentMemory, event: ProposeEvent, account: Account) => ({
  agent: context.run,
  exposure: context.exposure,
  input_id: event.input_id,
  step_index: context.steps + 1,
  received_at: event.time,
  payload: event.payload,
  raw: event.raw,
  seen: event.seen,
  recorded_response: event.recorded_response,
  mediated_runs: context.mediated_runs,
  account,
  label: context.label,
  approvals: context.approvals,
  unsettled: context.unsettled,
  ...(context.repeatable === undefined ? {} : { repeatable: context.repeatable }),
  overlay: event.overlay,
});

const INTERRUPTED = failureEnd('INTERRUPTED', 'The process that this run belonged to ended before it.', true);

function endingOf(event: AgentEvent): Partial<AgentMemory> {
  switch (event.type) {
    case 'END':
      return toEnding('completed', { ...COMPLETED_END, reason: 'end_of_input' });
    case 'INTERRUPT':
      return toEnding('failed', INTERRUPTED);
    case 'WAKE':
      return toEnding('cancelled', cancellationEnd('idle'));
    case 'CANCEL':
      return toEnding('cancelled', cancellationEnd(event.reason));
    default:
      return {};
  }
}

/** Computes with recorded times; reads no clock. */
const idleDeadline = (active_at: string, idle_ms: number): string =>
  new Date(Math.min(Date.parse(active_at) + idle_ms, LATEST_TIMESTAMP_MS)).toISOString();

// Applies a step to its agent run: the budget that it used, the values that later steps get, and whether it was the
// last.

/** Charges a proposal before its step starts: the time since the last charge, its bytes, and its tokens. */
const chargeProposal = ({ account, charged_at }: AgentMemory, { time, payload, tokens }: ProposeEvent): Account =>
  charge(account, {
    steps: 0,
    tool_calls: 0,
    wall_ms: Math.max(0, Date.parse(time) - Date.parse(charged_at)),
    bytes: payload.byte_size ?? 0,
    tokens: tokens ?? 0,
  });

/** Counts the step and decides whether the run ends. An end that was already decided takes precedence. */
function applyStepOutput(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { denials_per_run_max } = policy.limits;
  const invalid = context.invalid + (step.invalid ? 1 : 0);
  const denials = context.denials + (step.denied ? 1 : 0);
  const { unsettled, repeatable } = mergeOpenRequests(context, step);
  // One literal: to spread a second object into it took as long as the rest of this function.
  const counted = {
    account: charge(context.account, step.spent),
    label: step.read === null ? context.label : joinLabels(context.label, step.read),
    approvals: requestApproval(context, step, policy),
    unsettled,
    denials,
    invalid,
    mediated_runs: context.mediated_runs + step.mediated,
    outputs: withRefs(context.outputs ?? [], step.produced),
  };
  const update = repeatable === undefined ? counted : { ...counted, repeatable };
  if (context.ending !== null) return update;
  if (step.finished) return { ...update, ...toEnding('completed', { reason: 'finished', error: null }) };
  if (denials >= denials_per_run_max)
    return { ...update, ...toEnding('denied', denialEnd({ rule_id: 'limit.denials' })) };
  if (invalid >= invalidMax(policy)) return { ...update, ...toEnding('failed', TOO_MANY_INVALID_PROPOSALS) };
  return update;
}

/** C81: the agent does not follow the contract. Policy denied nothing, so the run has failed. */
const TOO_MANY_INVALID_PROPOSALS = failureEnd(
  'INVALID_PROPOSALS',
  'Too many proposals of this run were not valid.',
  false,
);

/** Adds the approval that the step asks for, if it asks for one. */
function requestApproval(
  { run, person, approvals }: AgentMemory,
  { requested }: StepOutput,
  policy: Policy,
): ApprovalBook {
  if (requested === null) return approvals;
  const { name, obligation } = requested;
  const rule = effectiveRule(name, approvalRuleFor(policy.approvals, name), obligation);
  if (rule === undefined) return approvals;
  const requester = { requested_by: run.actor.actor_id, requester: person ?? undefined };
  return approvalDecider().request(approvals, { ...requested, ...requester }, rule);
}

/** Beyond this number, a request that can be repeated counts as one with an unknown outcome. */
const REPEATABLE_MAX = 64;

/** What has no known outcome after the step. @returns no `repeatable` if it stays as it is */
function mergeOpenRequests(
  context: AgentMemory,
  { unknown, repeat = null, succeeded = null }: StepOutput,
): Pick<AgentMemory, 'unsettled' | 'repeatable'> {
  const unsettled = unknown === null ? context.unsettled : [...context.unsettled, unknown];
  const known = context.repeatable ?? [];
  if (succeeded !== null)
    return { unsettled, repeatable: known.filter(({ request_hash }) => request_hash !== succeeded) };
  if (repeat === null || known.some(({ request_hash }) => request_hash === repeat.request_hash)) return { unsettled };
  if (known.length >= REPEATABLE_MAX) return { unsettled: [...unsettled, repeat.request_hash] };
  return { unsettled, repeatable: [...known, repeat] };
}

/** Marks an approval as used. Later votes do not matter: the approval was granted when the execution was decided. */
function consumeGrantedApproval(
  book: ApprovalBook,
  { digest, name, at }: ApprovalUsedEvent,
  policy: Policy,
): ApprovalBook {
  const entry = book.entries.find((known) => known.digest === digest);
  const rule = ruleOfEntry(policy.approvals, entry ?? { name });
  const isGranted = rule !== undefined && approvalDecider().status(book, digest, at, rule) === 'granted';
  return isGranted ? approvalDecider().consume(book, digest, at, rule) : book;
}

/** Sets the state in which the run ends after its step has returned its response. */
const toEnding = (ending: TerminalState, runEnd: RunEnd) => ({ ending, end: runEnd });

/** The number of invalid proposals that end a run if the policy does not set it. */
const INVALID_PER_RUN_DEFAULT = 100;

/**
 * Returns the number of proposals rejected before AUTHORIZE that end an agent run (C81). The default is not lower than
 * the limit of denials.
 */
export const invalidMax = ({ limits }: Pick<Policy, 'limits'>): number =>
  limits.invalid_per_run_max ?? Math.max(INVALID_PER_RUN_DEFAULT, limits.denials_per_run_max);

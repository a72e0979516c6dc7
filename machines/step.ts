// One step: nine phases in strict order (S0-12), for one proposal of one agent run. A step is not a run.
//
//   RECEIVE ▸ PARSE ▸ VALIDATE_SCHEMA ▸ VALIDATE_ACTION ▸ VALIDATE_ARGS ▸ AUTHORIZE ▸ EXECUTE ▸ RECORD ▸ RESPOND
//      └────────┴───────────┴── the first rejection ┴────────────┴──────────────────────────────▲
//
//   AUTHORIZE: authorizing ──▶ gatheringFacts ── FACTS ──▶ startingMediatedRun ── STARTED ──▶ EXECUTE
//              (lane)          (sandbox)                   (a mediated run is created with the verdict)
//              authorizing ──▶ awaitingVotes ◀──▶ votesCounted ──▶ EXECUTE     (FINISH, until the votes are in)
//
// Invariants:
//   S1. A phase that rejects the proposal sets `fault` and `phase_failed_at`; the next state is RECORD.
//   S2. EXECUTE is entered at most once: by an action without privilege, or by STARTED, which only a mediated run
//       sends that was allowed, with its children. Further attempts stay inside EXECUTE (C54).
//   S3. Every path passes RECORD once and RESPOND once: one trace and one reply for each proposal (S0-04, S2-20).
//   S4. No state reads `reasoning`; the draft does not contain it.
//   S5. An approval is consumed when EXECUTE is entered, in the same commit (D7).

import { assign, emit, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import type { MediatedKind } from '../src/core/contract/policy/catalogue.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { ApprovalBook, ApprovalEntry } from '../src/core/contract/run/approval.js';
import type { Amounts } from '../src/core/contract/run/budget.js';
import type { GatheredFacts } from '../src/core/contract/run/effect.js';
import type { Label } from '../src/core/contract/policy/labels.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import { childRunId, type RunContext } from '../src/core/contract/run/run-context.js';
import type { Policy } from '../src/core/policy/policy.js';
import { amountsOf } from '../src/core/run/budget-account.js';
import {
  denialFault,
  executionFault,
  requireGatherRequest,
  approvalSubject,
  authorizeStep,
  findExhaustedBudget,
  isPrivileged,
  RUN_ENDING_DENIAL,
  UNDECIDED_AUTHORIZATION,
} from '../src/core/step/authorization.js';
import {
  isInvalid,
  phaseAfter,
  runCheckPhase,
  UNKNOWN_IDENTITY,
  type CheckPhase,
} from '../src/core/step/check-phases.js';
import { awaitedRequests } from '../src/core/policy/policy-features.js';
import {
  firstAttempt,
  mediatedContext,
  mediatedRequest,
  reportTimeout,
  authorizeRequest,
  isIdempotent,
  privilegedRequest,
  resultLabel,
} from '../src/core/step/mediated-request.js';
import { composeResponse, resultWithoutEffect, composeTrace } from '../src/core/step/concluded-step.js';
import {
  abandonRetry,
  nextAttempt,
  openRequests,
  repeatedKey,
  scheduleRetry,
  stepRequestHash,
  type StepInput,
  type StepMemory,
  type StepOutput,
} from './step-memory.js';
import { dropSuspendedVotes } from './approval-ballot.js';
import type { Emission } from './emission.js';
import {
  authorizedResult,
  startCallerRunEvent,
  callerRunDenialFault,
  type CallerRunDeniedEvent,
} from './caller-runs/caller-run.js';
import type { MediatedLogic } from './mediated.js';
import { isDoneEvent, type DoneEvent, type RunOutput } from './run.js';
import type { Verdict } from '../src/core/policy/verdict.js';

export type { StepInput, StepMemory, StepOutput } from './step-memory.js';

export type StepEvent =
  | { readonly type: 'FACTS'; readonly facts: GatheredFacts }
  | { readonly type: 'STARTED' }
  | { readonly type: 'CANCEL'; readonly reason: string }
  | { readonly type: 'WAKE'; readonly time: string; readonly overlay: OverlayFact | null }
  /** Votes have changed the approvals meanwhile: a rejected effect must not happen (D7). */
  | { readonly type: 'APPROVALS_CHANGED'; readonly approvals: ApprovalBook }
  /** No caller will be left to receive a result. */
  | { readonly type: 'STOP_RETRYING' }
  | CallerRunDeniedEvent
  | DoneEvent;

/** An approval has been used for an effect and cannot be used again. */
export interface ApprovalUsedEvent {
  readonly type: 'APPROVAL_USED';
  readonly digest: string;
  readonly name: string;
  readonly at: string;
}

/** The state of a checking phase: a rejected proposal goes to RECORD, any other to the next phase (S0-12, S0-13). */
const checkPhaseState = (phase: CheckPhase) =>
  ({
    entry: checkAction(phase),
    always: [{ guard: 'hasFault', target: 'RECORD' }, { target: phaseAfter(phase) }],
  }) as const;

const checkAction = (phase: CheckPhase) => ({ type: 'runCheckPhase', params: { phase } }) as const;

/** The machines of the mediated runs that a step spawns, by run kind. */
export type MediatedLogicByKind = Readonly<Record<MediatedKind, MediatedLogic>>;

/** The step machine under `policy`. */
export const createStepMachine = (policy: Policy, kinds: MediatedLogicByKind) =>
  setup({
    types: {} as {
      context: StepMemory;
      events: StepEvent;
      input: StepInput;
      output: StepOutput;
      emitted: Emission;
      children: Record<string, MediatedKind>;
    },
    actors: { tool_gateway: kinds.tool_gateway, db_write: kinds.db_write, db_read: kinds.db_read },
    guards: {
      hasFault: ({ context }) => context.fault !== null,
      isReplay: ({ context }) => context.replay_of !== null,
      canRetry: ({ context, event }) => isDoneEvent(event) && canRetry(context, event.output, policy),
      isRetryDue: ({ context, event }) => event.type === 'WAKE' && event.time >= (context.next_attempt?.at ?? ''),
      usesApproval: ({ context }) => context.authorization.digest !== null,
      isUnprivileged: ({ context }) => !isPrivileged(context, policy),
      hasVerdict: ({ context }) => context.authorization.verdict !== null,
      isCallerExecuted: ({ context }) => isCallerExecuted(context, policy),
      hasVerdictForCaller: ({ context }) => context.authorization.verdict !== null && isCallerExecuted(context, policy),
      shouldAwaitVotes: ({ context }) => awaitedRequests(context, policy).length > 0,
      hasPendingVotes: ({ context, event }) => hasAwaitedRequest(context, timeOf(event)),
      hasApprovedRequest: ({ context, event }) => hasApprovedRequest(context, timeOf(event)),
    },
    actions: {
      runCheckPhase: assign(({ context }, { phase }: { phase: CheckPhase }) => runCheckPhase(phase, context, policy)),
      emitMark: emit(({ context }) => markEmission(context)),
      startAuthorization: assign(({ context }) => startAuthorization(context, policy)),
      gatherFacts: emit(({ context }) => ({
        type: 'command',
        command: { kind: 'gather', run_id: context.agent.run_id, request: requireGatherRequest(context, policy) },
      })),
      authorizeWithFacts: assign(({ context, event }) =>
        event.type === 'FACTS'
          ? { authorization: authorizeStep(context, { kind: 'facts', facts: event.facts }, policy) }
          : {},
      ),
      denyEndingRun: assign(({ context }) => ({ authorization: authorizeStep(context, { kind: 'ending' }, policy) })),
      startMediatedRun: enqueueActions(({ context, enqueue }) => {
        const key = context.repeatable === undefined ? null : repeatedKey(context, policy);
        const attempt = firstAttempt(mediatedContext(context, policy), key);
        const { run } = attempt;
        const { overlay, authorization } = context;
        const request = mediatedRequest(context, attempt, policy);
        enqueue.spawnChild(mediatedKindOf(run), { id: run.run_id, input: { run, request, approval: null } });
        enqueue.assign({ attempts: 1 });
        const verdict = authorization.verdict ?? RUN_ENDING_DENIAL;
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay, digest: authorization.digest });
      }),
      requestCallerRun: sendParent(({ context }) => startCallerRunEvent(context, policy)),
      countCallerRun: assign({ attempts: () => 1 }),
      applyCallerRunDenial: assign(({ event }) => callerRunDenialFault(event)),
      setAuthorizedResult: assign(({ context }) => ({ result: authorizedResult(context) })),
      startRetry: enqueueActions(({ context, event, enqueue }) => {
        const overlay = event.type === 'WAKE' ? event.overlay : context.overlay;
        const attempt = nextAttempt(context, policy);
        const { run } = attempt;
        const request = { ...mediatedRequest(context, attempt, policy), overlay };
        enqueue.spawnChild(mediatedKindOf(run), { id: run.run_id, input: { run, request, approval: null } });
        enqueue.assign({ attempts: context.attempts + 1, mediated_run_id: run.run_id, overlay, next_attempt: null });
        const verdict = authorizeRequest(run, request, policy);
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay, digest: null });
      }),
      scheduleRetry: assign(({ context, event }) => (isDoneEvent(event) ? scheduleRetry(context, event, policy) : {})),
      disableRetries: assign({ no_retries: () => true }),
      setAwaitedRequests: assign(({ context }) => ({ awaited: awaitedRequests(context, policy) })),
      setVoteTimer: emit(({ context }) => finishTimer(context)),
      denyFinish: assign({ fault: () => denialFault(REQUEST_APPROVED), phase_failed_at: () => 'AUTHORIZE' as const }),
      setApprovals: assign(({ event }) => (event.type === 'APPROVALS_CHANGED' ? { approvals: event.approvals } : {})),
      setRetryTimer: emit(({ context }) => ({
        type: 'timer',
        run_id: context.agent.run_id,
        at: context.next_attempt?.at ?? context.received_at,
      })),
      abandonRetry: assign(({ context }) => abandonRetry(context)),
      sendApprovalUsed: sendParent(({ context }) => ({
        type: 'APPROVAL_USED',
        digest: context.authorization.digest ?? '',
        name: approvalSubject(context, policy),
        at: context.received_at,
      })),
      cancelChild: sendTo(
        ({ context }) => context.mediated_run_id,
        ({ event }) => event,
      ),
      applyMediatedRunDenial: assign(({ event }) =>
        isDoneEvent(event) && event.output.done?.denied_by
          ? { fault: denialFault(event.output.done.denied_by), phase_failed_at: 'AUTHORIZE' as const }
          : { fault: denialFault(RUN_ENDING_DENIAL), phase_failed_at: 'AUTHORIZE' as const },
      ),
      applyRunResult: assign(({ context, event }) =>
        isDoneEvent(event) ? applyRunResult(context, event, policy) : {},
      ),
      setResultWithoutRun: assign(({ context }) => ({ result: resultWithoutEffect(context) })),
      composeResponse: assign(({ context }) => ({ response: composeResponse(context) })),
      recordTrace: emit(({ context }) => ({ type: 'step_trace', body: composeTrace(context, policy) })),
      sendReply: emit(({ context }) => ({
        type: 'reply',
        reply: { run_id: context.agent.run_id, input_id: context.input_id, response: context.response ?? '' },
      })),
    },
  }).createMachine({
    id: 'step',
    context: ({ input }) => newStepMemory(input),
    initial: 'RECEIVE',
    states: {
      RECEIVE: checkPhaseState('RECEIVE'),
      PARSE: checkPhaseState('PARSE'),
      VALIDATE_SCHEMA: {
        entry: checkAction('VALIDATE_SCHEMA'),
        always: [
          { guard: 'hasFault', target: 'RECORD' },
          { guard: 'isReplay', target: 'RECORD' },
          { target: phaseAfter('VALIDATE_SCHEMA'), actions: 'emitMark' },
        ],
      },
      VALIDATE_ACTION: checkPhaseState('VALIDATE_ACTION'),
      VALIDATE_ARGS: checkPhaseState('VALIDATE_ARGS'),
      AUTHORIZE: {
        initial: 'authorizing',
        on: { APPROVALS_CHANGED: { actions: 'setApprovals' }, STOP_RETRYING: { actions: 'disableRetries' } },
        states: {
          authorizing: {
            entry: 'startAuthorization',
            always: [
              { guard: 'hasFault', target: '#step.RECORD' },
              { guard: 'shouldAwaitVotes', target: 'awaitingVotes', actions: 'setAwaitedRequests' },
              { guard: 'isUnprivileged', target: '#step.EXECUTE' },
              { guard: 'hasVerdictForCaller', target: 'startingCallerRun' },
              { guard: 'hasVerdict', target: 'startingMediatedRun' },
              { target: 'gatheringFacts' },
            ],
          },
          awaitingVotes: {
            entry: 'setVoteTimer',
            on: {
              APPROVALS_CHANGED: { target: 'votesCounted', actions: 'setApprovals' },
              WAKE: [
                { guard: 'hasPendingVotes', actions: 'setVoteTimer' },
                { guard: 'hasApprovedRequest', target: '#step.RECORD', actions: 'denyFinish' },
                { target: '#step.EXECUTE' },
              ],
              CANCEL: { target: '#step.RECORD', actions: 'applyMediatedRunDenial' },
              STOP_RETRYING: { target: '#step.RECORD', actions: 'applyMediatedRunDenial' },
            },
          },
          votesCounted: {
            always: [
              { guard: 'hasPendingVotes', target: 'awaitingVotes' },
              { guard: 'hasApprovedRequest', target: '#step.RECORD', actions: 'denyFinish' },
              { target: '#step.EXECUTE' },
            ],
          },
          gatheringFacts: {
            entry: 'gatherFacts',
            on: {
              FACTS: [
                { guard: 'isCallerExecuted', target: 'startingCallerRun', actions: 'authorizeWithFacts' },
                { target: 'startingMediatedRun', actions: 'authorizeWithFacts' },
              ],
              CANCEL: [
                { guard: 'isCallerExecuted', target: 'startingCallerRun', actions: 'denyEndingRun' },
                { target: 'startingMediatedRun', actions: 'denyEndingRun' },
              ],
            },
          },
          startingCallerRun: {
            entry: ['requestCallerRun', 'countCallerRun'],
            on: {
              STARTED: [
                { guard: 'usesApproval', target: '#step.EXECUTE', actions: 'sendApprovalUsed' },
                { target: '#step.EXECUTE' },
              ],
              CALLER_RUN_DENIED: { target: '#step.RECORD', actions: 'applyCallerRunDenial' },
            },
          },
          startingMediatedRun: {
            entry: 'startMediatedRun',
            on: {
              STARTED: [
                { guard: 'usesApproval', target: '#step.EXECUTE', actions: 'sendApprovalUsed' },
                { target: '#step.EXECUTE' },
              ],
              'xstate.done.actor.*': { target: '#step.RECORD', actions: 'applyMediatedRunDenial' },
            },
          },
        },
      },
      EXECUTE: {
        initial: 'executing',
        on: { STOP_RETRYING: { actions: 'disableRetries' } },
        states: {
          executing: {
            always: [
              { guard: 'isCallerExecuted', target: '#step.RECORD', actions: 'setAuthorizedResult' },
              { guard: 'isUnprivileged', target: '#step.RECORD', actions: 'setResultWithoutRun' },
            ],
            on: {
              'xstate.done.actor.*': [
                { guard: 'canRetry', target: 'awaitingRetry', actions: 'scheduleRetry' },
                { target: '#step.RECORD', actions: 'applyRunResult' },
              ],
              CANCEL: { actions: 'cancelChild' },
            },
          },
          awaitingRetry: {
            entry: 'setRetryTimer',
            on: {
              WAKE: [{ guard: 'isRetryDue', target: 'retrying' }, { actions: 'setRetryTimer' }],
              CANCEL: { target: '#step.RECORD', actions: 'abandonRetry' },
              STOP_RETRYING: { target: '#step.RECORD', actions: 'abandonRetry' },
            },
          },
          retrying: {
            entry: 'startRetry',
            on: {
              STARTED: 'executing',
              'xstate.done.actor.*': { target: '#step.RECORD', actions: 'applyMediatedRunDenial' },
            },
          },
        },
      },
      RECORD: { entry: ['composeResponse', 'recordTrace'], always: 'RESPOND' },
      RESPOND: { type: 'final', entry: 'sendReply' },
    },
    output: ({ context }) => ({
      step: true,
      mediated: context.attempts,
      denied: context.phase_failed_at === 'AUTHORIZE',
      invalid: isInvalid(context),
      finished: context.action === 'FINISH' && context.fault === null && context.replay_of === null,
      spent: spentAmounts(context),
      produced: producedArtifacts(context),
      // What a tool says of its failure may carry the same data as its result.
      read: context.result === null && context.explanation_ref === undefined ? null : readLabel(context, policy),
      unknown: context.unknown,
      ...repeatOutput(context, policy),
      requested: requestedApproval(context, policy),
    }),
  });
/** The machine that `createStepMachine` returns. */
export interface StepMachine extends ReturnType<typeof createStepMachine> {}

/** Written out: a thousand steps start per second, and spreading thirty members costs more than a phase. */
export const newStepMemory = (input: StepInput): StepMemory => ({
  raw: input.raw,
  text: null,
  value: null,
  payload_sha256: input.payload.hash_sha256,
  seen: input.seen,
  identity: UNKNOWN_IDENTITY,
  action: null,
  args: null,
  args_summary: null,
  replay_of: null,
  fault: null,
  phase_failed_at: null,
  agent: input.agent,
  exposure: input.exposure,
  input_id: input.input_id,
  step_index: input.step_index,
  received_at: input.received_at,
  payload: input.payload,
  recorded_response: input.recorded_response,
  mediated_runs: input.mediated_runs,
  account: input.account,
  label: input.label,
  approvals:
    input.approvals.entries.length === 0 ? input.approvals : dropSuspendedVotes(input.approvals, input.overlay),
  unsettled: input.unsettled,
  ...(input.repeatable === undefined ? {} : { repeatable: input.repeatable }),
  overlay: input.overlay,
  mediated_run_id: childRunId(input.agent.run_id, input.mediated_runs + 1),
  authorization: UNDECIDED_AUTHORIZATION,
  result: null,
  result_ref: null,
  produced: [],
  attempts: 0,
  next_attempt: null,
  no_retries: false,
  awaited: [],
  unknown: null,
  response: null,
});

/** Whether the caller executes the action of the step. */
const isCallerExecuted = (step: StepMemory, { catalogue }: Policy): boolean => reportTimeout(step, catalogue) !== null;

/** A timer brings its time; a vote does not. */
const timeOf = (event: StepEvent): string | null => (event.type === 'WAKE' ? event.time : null);

const mediatedKindOf = ({ run_kind }: RunContext): MediatedKind =>
  run_kind === 'db_write' || run_kind === 'db_read' ? run_kind : 'tool_gateway';

export const markEmission = ({ agent, identity, step_index, payload }: StepMemory): Emission => ({
  type: 'mark',
  mark: {
    root_run_id: agent.root_run_id,
    proposal_id: (identity.proposal_id ?? '').toLowerCase(),
    run_id: agent.run_id,
    step_index,
    payload_sha256: payload.hash_sha256,
    seq: 0,
  },
});

/** The first stage of AUTHORIZE. The step itself records the denial of an action without a run of its own. */
function startAuthorization(step: StepMemory, policy: Policy): Partial<StepMemory> {
  const authorization = authorizeStep(step, { kind: 'start', account: step.account }, policy);
  const { verdict } = authorization;
  return verdict === null || isPrivileged(step, policy)
    ? { authorization }
    : { authorization, fault: denialFault(verdict), phase_failed_at: 'AUTHORIZE' };
}

/** Whether a failed action is retried: it must be retryable and idempotent, and policy and budget must permit it. */
export function canRetry(step: StepMemory, { state, end }: RunOutput, policy: Policy): boolean {
  const { catalogue, retries } = policy;
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = catalogue.action(step.action ?? '');
  return (
    !step.no_retries &&
    state === 'failed' &&
    end.error?.retryable === true &&
    step.attempts <= retries.max &&
    definition !== undefined &&
    // A record that was settled as not written can never be written under this key; the agent may propose it anew.
    !(definition.run_kind === 'db_write' && end.reason === 'INTERRUPTED') &&
    isIdempotent(definition, step.args ?? {}, catalogue) &&
    findExhaustedBudget(step.account, step.attempts + 1) === null
  );
}

function applyRunResult(step: StepMemory, { output }: DoneEvent, policy: Policy): Partial<StepMemory> {
  const done = output.done;
  if (done?.result) {
    // Stryker disable next-line StringLiteral: neither name is an action
    const isRead = policy.catalogue.action(step.action ?? '')?.risk === 'read';
    const produced = isRead ? [] : (output.outputs ?? []);
    return { result: done.result, result_ref: done.result_ref, produced, unknown: null };
  }
  const open = openRequests(step, output, policy);
  if (done?.denied_by) return { fault: denialFault(done.denied_by), phase_failed_at: 'AUTHORIZE', ...open };
  const explanation = done?.explanation_ref === undefined ? {} : { explanation_ref: done.explanation_ref };
  return { fault: executionFault(done?.cause ?? 'INTERNAL'), phase_failed_at: 'EXECUTE', ...open, ...explanation };
}

// The output of the step to its agent run.

/** The amounts that the step itself has used; its time and its payload were charged when it started. */
export const spentAmounts = ({ attempts, result_ref, explanation_ref }: StepMemory): Amounts => {
  const bytes = (result_ref?.byte_size ?? 0) + (explanation_ref?.byte_size ?? 0);
  return amountsOf({ steps: 1, tool_calls: attempts, bytes });
};

/** The final response of an agent is in its payload. */
const producedArtifacts = ({ action, fault, replay_of, payload, produced = [] }: StepMemory): readonly ArtifactRef[] =>
  action === 'FINISH' && fault === null && replay_of === null ? [payload] : produced;

/** The label that the agent gets from this step; null if the step has read nothing. */
export function readLabel(step: StepMemory, policy: Policy): Label | null {
  const { catalogue } = policy;
  // Stryker disable next-line StringLiteral: neither name is an action
  const definition = catalogue.action(step.action ?? '');
  if (definition === undefined || step.attempts === 0) return null;
  const args = step.args ?? {};
  const request = privilegedRequest(definition, args, mediatedContext(step, policy), catalogue, step.label);
  return resultLabel(definition, args, request, catalogue);
}

/** C95: the request that can be repeated, or the one that no longer has to be. */
function repeatOutput(step: StepMemory, policy: Policy): Partial<StepOutput> {
  const { repeat, repeatable, result } = step;
  if (result !== null && repeatable !== undefined && repeatable.length > 0)
    return { succeeded: stepRequestHash(step, policy) };
  return repeat == null || result !== null ? {} : { repeat };
}

export const requestedApproval = (step: StepMemory, policy: Policy) => {
  const { verdict, digest, obligation } = step.authorization;
  if (verdict?.cause !== 'APPROVAL_REQUIRED' || digest === null) return null;
  const requested = { digest, name: approvalSubject(step, policy), at: step.received_at };
  return obligation === undefined ? requested : { ...requested, obligation };
};

// A FINISH that waits until people have decided about the pending requests of its run.

const awaitedEntries = ({ approvals, awaited = [] }: StepMemory): readonly ApprovalEntry[] =>
  approvals.entries.filter(({ digest }) => awaited.includes(digest));

/** Whether people can still decide about an awaited request. @param now null at a vote, which ends no other request */
const hasAwaitedRequest = (step: StepMemory, now: string | null): boolean =>
  awaitedEntries(step).some(({ state, expires_at }) => state === 'open' && (now === null || expires_at > now));

/** Whether an awaited request was approved, and may still be executed. */
const hasApprovedRequest = (step: StepMemory, now: string | null): boolean =>
  awaitedEntries(step).some(({ state, expires_at }) => state === 'approved' && (now === null || expires_at > now));

/** The timer for the time when the last awaited request expires. */
const finishTimer = (step: StepMemory): Emission => {
  const deadlines = awaitedEntries(step).flatMap(({ state, expires_at }) => (state === 'open' ? [expires_at] : []));
  return { type: 'timer', run_id: step.agent.run_id, at: deadlines.sort().at(-1) ?? step.received_at };
};

/** A request was approved while FINISH waited: its agent decides whether it still wants that. */
const REQUEST_APPROVED: Verdict = {
  decision: 'deny',
  rule_id: 'finish.request_approved',
  cause: 'REQUEST_APPROVED',
};

// One step: nine phases in strict order (S0-12), for one proposal of one agent run. A step is not a run.
//
//   RECEIVE ▸ PARSE ▸ VALIDATE_SCHEMA ▸ VALIDATE_ACTION ▸ VALIDATE_ARGS ▸ AUTHORIZE ▸ EXECUTE ▸ RECORD ▸ RESPOND
//      └────────┴───────────┴── the first rejection ┴────────────┴──────────────────────────────▲
//
//   AUTHORIZE: judging ──▶ gathering ── FACTS ──▶ deciding ── STARTED ──▶ EXECUTE
//              (lane)       (sandbox facts)       (a mediated run is created with the verdict)
//              judging ──▶ waiting ◀──▶ counted ──▶ EXECUTE     (FINISH, until the votes are in)
//
// Invariants:
//   S1. A phase that rejects the proposal sets `fault` and `phase_failed_at`; the next state is RECORD.
//   S2. EXECUTE is entered at most once: by an action without privilege, or by STARTED, which only a mediated run
//       sends that was allowed, with its children. Further attempts stay inside EXECUTE (C54).
//   S3. Every path passes RECORD once and RESPOND once: one trace and one reply for each proposal (S0-04, S2-20).
//   S4. No state reads `reasoning`; the draft does not contain it.
//   S5. An approval is consumed when EXECUTE is entered, in the same commit (D7).

import { assign, emit, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import type { MediatedKind } from '../src/core/contract/policy/actions.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { ApprovalBook } from '../src/core/contract/run/approval.js';
import type { GatheredFacts } from '../src/core/contract/run/effect.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import { type RunContext } from '../src/core/contract/run/run-context.js';
import type { Policy } from '../src/core/policy/policy.js';
import { approvalSubject } from '../src/core/step/approval-subject.js';
import { denialFault, executionFault, requireGatherRequest } from '../src/core/step/authorization.js';
import { isInvalid, phaseAfter, runCheckPhase, type CheckPhase } from '../src/core/step/step-draft.js';
import { awaitedRequests, REQUEST_APPROVED } from '../src/core/policy/approval/finish-rule.js';
import { firstAttempt, mediatedContext, mediatedRequest } from '../src/core/step/requests/mediated-request.js';
import { composeResponse, resultWithoutEffect, composeTrace } from '../src/core/step/concluded-step.js';
import { authorizeStep, isPrivileged, RUN_ENDING_DENIAL } from './authorize-step.js';
import type { Emission } from './emission.js';
import {
  authorizedResult,
  delegateEvent,
  isExternal,
  refusedFault,
  type RefusedEvent,
} from './external/external-act.js';
import { finishTimer, hasApprovedRequest, hasAwaitedRequest } from './finish-wait.js';
import type { MediatedLogic } from './mediated.js';
import { authorizeRequest } from './mediated-memory.js';
import { isDoneEvent, type DoneEvent } from './run.js';
import {
  scheduleRetry,
  abandonRetry,
  canRetry,
  nextAttempt,
  openRequests,
  readLabel,
  repeatedKey,
  spentAmounts,
  stepRequestHash,
} from './step-attempts.js';
import {
  markEmission,
  newStepMemory,
  requestedApproval,
  type StepInput,
  type StepMemory,
  type StepOutput,
} from './step-memory.js';

export type { StepInput, StepMemory, StepOutput } from './step-memory.js';

export type StepEvent =
  | { readonly type: 'FACTS'; readonly facts: GatheredFacts }
  | { readonly type: 'STARTED' }
  | { readonly type: 'CANCEL'; readonly reason: string }
  | { readonly type: 'WAKE'; readonly time: string; readonly overlay: OverlayFact | null }
  /** Votes have changed the approvals meanwhile: a rejected effect must not happen (D7). */
  | { readonly type: 'BOOK'; readonly approvals: ApprovalBook }
  /** No caller will be left to receive a result. */
  | { readonly type: 'STOP_RETRYING' }
  | RefusedEvent
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
    always: [{ guard: 'refused', target: 'RECORD' }, { target: phaseAfter(phase) }],
  }) as const;

const checkAction = (phase: CheckPhase) => ({ type: 'check', params: { phase } }) as const;

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
      refused: ({ context }) => context.fault !== null,
      repeated: ({ context }) => context.replay_of !== null,
      mayTryAgain: ({ context, event }) => isDoneEvent(event) && canRetry(context, event.output, policy),
      due: ({ context, event }) => event.type === 'WAKE' && event.time >= (context.again?.at ?? ''),
      approved: ({ context }) => context.authorization.digest !== null,
      unprivileged: ({ context }) => !isPrivileged(context, policy),
      judged: ({ context }) => context.authorization.verdict !== null,
      external: ({ context }) => isExternal(context, policy),
      judgedExternal: ({ context }) => context.authorization.verdict !== null && isExternal(context, policy),
      mustWait: ({ context }) => awaitedRequests(context, policy).length > 0,
      votesPending: ({ context, event }) => hasAwaitedRequest(context, timeOf(event)),
      approvedMeanwhile: ({ context, event }) => hasApprovedRequest(context, timeOf(event)),
    },
    actions: {
      check: assign(({ context }, { phase }: { phase: CheckPhase }) => runCheckPhase(phase, context, policy)),
      sayMark: emit(({ context }) => markEmission(context)),
      judge: assign(({ context }) => startAuthorization(context, policy)),
      gather: emit(({ context }) => ({
        type: 'command',
        command: { kind: 'gather', run_id: context.agent.run_id, request: requireGatherRequest(context, policy) },
      })),
      weigh: assign(({ context, event }) =>
        event.type === 'FACTS'
          ? { authorization: authorizeStep(context, { kind: 'facts', facts: event.facts }, policy) }
          : {},
      ),
      giveUp: assign(({ context }) => ({ authorization: authorizeStep(context, { kind: 'ending' }, policy) })),
      mediate: enqueueActions(({ context, enqueue }) => {
        const attempt = firstAttempt(mediatedContext(context, policy), repeatedKey(context, policy));
        const { run } = attempt;
        const { overlay, authorization } = context;
        const request = mediatedRequest(context, attempt, policy);
        enqueue.spawnChild(mediatedKindOf(run), { id: run.run_id, input: { run, request, approval: null } });
        enqueue.assign({ attempts: 1 });
        const verdict = authorization.verdict ?? RUN_ENDING_DENIAL;
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay, digest: authorization.digest });
      }),
      delegate: sendParent(({ context }) => delegateEvent(context, policy)),
      noteDelegated: assign({ attempts: () => 1 }),
      noteRefused: assign(({ event }) => refusedFault(event)),
      noteAuthorized: assign(({ context }) => ({ result: authorizedResult(context) })),
      tryAgain: enqueueActions(({ context, event, enqueue }) => {
        const overlay = event.type === 'WAKE' ? event.overlay : context.overlay;
        const attempt = nextAttempt(context, policy);
        const { run } = attempt;
        const request = { ...mediatedRequest(context, attempt, policy), overlay };
        enqueue.spawnChild(mediatedKindOf(run), { id: run.run_id, input: { run, request, approval: null } });
        enqueue.assign({ attempts: context.attempts + 1, mediated_run_id: run.run_id, overlay, again: null });
        const verdict = authorizeRequest(run, request, policy);
        enqueue.sendTo(run.run_id, { type: 'AUTHORIZE', verdict, overlay, digest: null });
      }),
      noteAttempt: assign(({ context, event }) => (isDoneEvent(event) ? scheduleRetry(context, event, policy) : {})),
      noteLast: assign({ last: () => true }),
      noteAwaited: assign(({ context }) => ({ awaited: awaitedRequests(context, policy) })),
      sayVoteDeadline: emit(({ context }) => finishTimer(context)),
      denyFinish: assign({ fault: () => denialFault(REQUEST_APPROVED), phase_failed_at: () => 'AUTHORIZE' as const }),
      noteBook: assign(({ event }) => (event.type === 'BOOK' ? { approvals: event.approvals } : {})),
      sayAgain: emit(({ context }) => ({
        type: 'timer',
        run_id: context.agent.run_id,
        at: context.again?.at ?? context.received_at,
      })),
      noteGivenUp: assign(({ context }) => abandonRetry(context)),
      tellApprovalUsed: sendParent(({ context }) => ({
        type: 'APPROVAL_USED',
        digest: context.authorization.digest ?? '',
        name: approvalSubject(context, policy),
        at: context.received_at,
      })),
      cancelChild: sendTo(
        ({ context }) => context.mediated_run_id,
        ({ event }) => event,
      ),
      noteDenial: assign(({ event }) =>
        isDoneEvent(event) && event.output.done?.denied_by
          ? { fault: denialFault(event.output.done.denied_by), phase_failed_at: 'AUTHORIZE' as const }
          : { fault: denialFault(RUN_ENDING_DENIAL), phase_failed_at: 'AUTHORIZE' as const },
      ),
      noteResult: assign(({ context, event }) => (isDoneEvent(event) ? applyRunResult(context, event, policy) : {})),
      noteUnprivileged: assign(({ context }) => ({ result: resultWithoutEffect(context) })),
      compose: assign(({ context }) => ({ response: composeResponse(context) })),
      sayTrace: emit(({ context }) => ({ type: 'step_trace', body: composeTrace(context, policy) })),
      sayReply: emit(({ context }) => ({
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
          { guard: 'refused', target: 'RECORD' },
          { guard: 'repeated', target: 'RECORD' },
          { target: phaseAfter('VALIDATE_SCHEMA'), actions: 'sayMark' },
        ],
      },
      VALIDATE_ACTION: checkPhaseState('VALIDATE_ACTION'),
      VALIDATE_ARGS: checkPhaseState('VALIDATE_ARGS'),
      AUTHORIZE: {
        initial: 'judging',
        on: { BOOK: { actions: 'noteBook' }, STOP_RETRYING: { actions: 'noteLast' } },
        states: {
          judging: {
            entry: 'judge',
            always: [
              { guard: 'refused', target: '#step.RECORD' },
              { guard: 'mustWait', target: 'waiting', actions: 'noteAwaited' },
              { guard: 'unprivileged', target: '#step.EXECUTE' },
              { guard: 'judgedExternal', target: 'delegating' },
              { guard: 'judged', target: 'deciding' },
              { target: 'gathering' },
            ],
          },
          waiting: {
            entry: 'sayVoteDeadline',
            on: {
              BOOK: { target: 'counted', actions: 'noteBook' },
              WAKE: [
                { guard: 'votesPending', actions: 'sayVoteDeadline' },
                { guard: 'approvedMeanwhile', target: '#step.RECORD', actions: 'denyFinish' },
                { target: '#step.EXECUTE' },
              ],
              CANCEL: { target: '#step.RECORD', actions: 'noteDenial' },
              STOP_RETRYING: { target: '#step.RECORD', actions: 'noteDenial' },
            },
          },
          counted: {
            always: [
              { guard: 'votesPending', target: 'waiting' },
              { guard: 'approvedMeanwhile', target: '#step.RECORD', actions: 'denyFinish' },
              { target: '#step.EXECUTE' },
            ],
          },
          gathering: {
            entry: 'gather',
            on: {
              FACTS: [
                { guard: 'external', target: 'delegating', actions: 'weigh' },
                { target: 'deciding', actions: 'weigh' },
              ],
              CANCEL: [
                { guard: 'external', target: 'delegating', actions: 'giveUp' },
                { target: 'deciding', actions: 'giveUp' },
              ],
            },
          },
          delegating: {
            entry: ['delegate', 'noteDelegated'],
            on: {
              STARTED: [
                { guard: 'approved', target: '#step.EXECUTE', actions: 'tellApprovalUsed' },
                { target: '#step.EXECUTE' },
              ],
              REFUSED: { target: '#step.RECORD', actions: 'noteRefused' },
            },
          },
          deciding: {
            entry: 'mediate',
            on: {
              STARTED: [
                { guard: 'approved', target: '#step.EXECUTE', actions: 'tellApprovalUsed' },
                { target: '#step.EXECUTE' },
              ],
              'xstate.done.actor.*': { target: '#step.RECORD', actions: 'noteDenial' },
            },
          },
        },
      },
      EXECUTE: {
        initial: 'performing',
        on: { STOP_RETRYING: { actions: 'noteLast' } },
        states: {
          performing: {
            always: [
              { guard: 'external', target: '#step.RECORD', actions: 'noteAuthorized' },
              { guard: 'unprivileged', target: '#step.RECORD', actions: 'noteUnprivileged' },
            ],
            on: {
              'xstate.done.actor.*': [
                { guard: 'mayTryAgain', target: 'resting', actions: 'noteAttempt' },
                { target: '#step.RECORD', actions: 'noteResult' },
              ],
              CANCEL: { actions: 'cancelChild' },
            },
          },
          resting: {
            entry: 'sayAgain',
            on: {
              WAKE: [{ guard: 'due', target: 'retrying' }, { actions: 'sayAgain' }],
              CANCEL: { target: '#step.RECORD', actions: 'noteGivenUp' },
              STOP_RETRYING: { target: '#step.RECORD', actions: 'noteGivenUp' },
            },
          },
          retrying: {
            entry: 'tryAgain',
            on: {
              STARTED: 'performing',
              'xstate.done.actor.*': { target: '#step.RECORD', actions: 'noteDenial' },
            },
          },
        },
      },
      RECORD: { entry: ['compose', 'sayTrace'], always: 'RESPOND' },
      RESPOND: { type: 'final', entry: 'sayReply' },
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
      read: context.result === null && context.tool_words === undefined ? null : readLabel(context, policy),
      unknown: context.unknown,
      ...repeatOutput(context, policy),
      requested: requestedApproval(context, policy),
    }),
  });
/** The machine that `createStepMachine` returns. */
export type StepMachine = ReturnType<typeof createStepMachine>;

/** A timer brings its time; a vote does not. */
const timeOf = (event: StepEvent): string | null => (event.type === 'WAKE' ? event.time : null);

const mediatedKindOf = ({ run_kind }: RunContext): MediatedKind =>
  run_kind === 'db_write' || run_kind === 'db_read' ? run_kind : 'tool_gateway';

/** The first stage of AUTHORIZE. The step itself records the denial of an action without a run of its own. */
function startAuthorization(step: StepMemory, policy: Policy): Partial<StepMemory> {
  const authorization = authorizeStep(step, { kind: 'start', account: step.account }, policy);
  const { verdict } = authorization;
  return verdict === null || isPrivileged(step, policy)
    ? { authorization }
    : { authorization, fault: denialFault(verdict), phase_failed_at: 'AUTHORIZE' };
}

/** The final response of an agent is in its payload. */
const producedArtifacts = ({ action, fault, replay_of, payload, produced = [] }: StepMemory): readonly ArtifactRef[] =>
  action === 'FINISH' && fault === null && replay_of === null ? [payload] : produced;

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
  const words = done?.tool_words === undefined ? {} : { tool_words: done.tool_words };
  return { fault: executionFault(done?.cause ?? 'INTERNAL'), phase_failed_at: 'EXECUTE', ...open, ...words };
}

/** C95: the request that can be repeated, or the one that no longer has to be. */
function repeatOutput(step: StepMemory, policy: Policy): Partial<StepOutput> {
  const { repeat, repeatable, result } = step;
  if (result !== null && repeatable !== undefined && repeatable.length > 0)
    return { succeeded: stepRequestHash(step, policy) };
  return repeat == null || result !== null ? {} : { repeat };
}

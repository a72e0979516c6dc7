// A mediated run: one privileged action, in a run of its own (S4 §5). One machine serves tool_gateway, db_write,
// db_read, promotion and export, because the contract defines the same lifecycle for all of them.
//
//   created ─ AUTHORIZE ─▶ running ─┬─ executing ──────── RESULT ──────────▶ completed | failed | cancelled
//                                   ├─ awaitingWriteRun ─ its child ended ─▶ completed | failed | cancelled | denied
//                                   └─ awaitingReport ─── REPORT ──────────▶ completed | failed
//
// A tool_gateway or promotion run that changes storage starts a db_write child. The caller of the agent executes
// the action of a run that waits for its report (U-08). All other runs execute the effect.
//
// Invariants:
//   M1. The effect is requested once, on entering `executing`, which is reachable only after an allow.
//   M2. STARTED goes to the parent once this run and every run below it are allowed; the step's EXECUTE waits for it.
//   M3. A cancel while an effect is in flight waits for its result. The result is recorded as it is, and the run then
//       ends as cancelled.
//   M4. A child's denial never becomes a completion (C52).
//   M5. A run that needs approval waits in `created`, and is judged again after the approvers' votes (D7).
//   M6. A run that waits for a report always ends: by the report, at its deadline, or before its agent run ends.

import {
  assign,
  emit,
  enqueueActions,
  sendParent,
  sendTo,
  setup,
  type ActorLogic,
  type AnyActorRef,
  type Snapshot,
} from 'xstate';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { ActionType, AuditTarget } from '../src/core/contract/run/audit-event.js';
import type { Effect, EffectResult } from '../src/core/contract/run/effect.js';
import type { ExecutionCause } from '../src/core/contract/fault.js';
import type { JsonObject } from '../src/core/contract/json.js';
import {
  childContext,
  childRunId,
  type RunContext,
  type RunKind,
  type TerminalState,
} from '../src/core/contract/run/run-context.js';
import type { PrivilegedRequest } from '../src/core/policy/authorize-run.js';
import type { Policy } from '../src/core/policy/policy.js';
import type { Verdict } from '../src/core/policy/verdict.js';
import { actionEvent, runCreatedDraft } from '../src/core/run/audit-events.js';
import {
  applyMissingReport,
  applyReport,
  isReportOverdue,
  reportTimer,
  unknownEmissions,
  type ReportEvent,
} from './caller-runs/caller-run.js';
import type { Emission } from './emission.js';
import {
  applyBallot,
  expiry,
  hasExpired,
  approvalPendingEmission,
  approvalDecisionEmission,
  voteEmissions,
} from './approval-ballot.js';
import {
  executionFailureEnd,
  type RequiredApproval,
  type MediatedMemory,
  type MediatedRequest,
  type VoteEvent,
} from './mediated-memory.js';
import { authorizeRequest } from '../src/core/step/mediated-request.js';
import {
  cancellationEnd,
  FINAL_STATES,
  denialEnd,
  isDoneEvent,
  authzEmission,
  endEmission,
  runEndedEmission,
  runningEmission,
  verdictOf,
  type DoneEvent,
  type RunEvent,
  type RunOutput,
} from './run.js';

export interface MediatedInput {
  readonly run: RunContext;
  readonly request: MediatedRequest;
  /** The approval that the run waits for before it is judged; null if it needs none. */
  readonly approval: RequiredApproval | null;
}

export interface ResultEvent {
  readonly type: 'RESULT';
  readonly status: EffectResult['status'];
  readonly cause: ExecutionCause | null;
  readonly result: JsonObject | null;
  readonly result_ref: ArtifactRef | null;
  readonly explanation_ref?: ArtifactRef;
  readonly time: string;
}

export type MediatedEvent =
  | RunEvent
  | ResultEvent
  | VoteEvent
  | { readonly type: 'WAKE'; readonly time: string }
  | { readonly type: 'STARTED' }
  | ReportEvent
  | DoneEvent;
export type MediatedLogic = ActorLogic<
  Snapshot<RunOutput>,
  MediatedEvent,
  MediatedInput,
  AnyActorRef['system'],
  Emission
>;

/** For runs of these kinds, a db_write child changes the storage (S4-15, S4-39). */
const WRITING_RUN_KINDS: readonly RunKind[] = ['tool_gateway', 'promotion'];

/** A run that starts a write run has exactly one child. */
const childId = (run: RunContext): string => childRunId(run.run_id, 1);

const setupMediated = (policy: Policy) =>
  setup({
    types: {} as {
      context: MediatedMemory;
      events: MediatedEvent;
      input: MediatedInput;
      output: RunOutput;
      emitted: Emission;
      children: Record<string, 'db_write'>;
    },
    actors: {} as { db_write: MediatedLogic },
    guards: {
      isAllowed: ({ event }) => event.type === 'AUTHORIZE' && event.verdict.decision === 'allow',
      needsApproval: ({ context }) => context.approval !== null,
      isApproved: ({ context }) => context.verdict?.decision === 'allow',
      isRejected: ({ context }) => context.verdict?.decision === 'deny',
      hasExpired: ({ context, event }) => event.type === 'WAKE' && hasExpired(context.approval, event.time),
      needsWriteRun: ({ context }) =>
        WRITING_RUN_KINDS.includes(context.run.run_kind) && context.request.privileged.write !== null,
      isCallerExecuted: ({ context }) => context.request.report_due !== undefined,
      isReportOverdue: ({ context, event }) => event.type === 'WAKE' && isReportOverdue(context, event.time),
      hasReportedSuccess: ({ event }) => event.type === 'REPORT' && event.status === 'done',
      isCancelling: ({ context }) => context.end !== null,
      hasSucceeded: ({ event }) => event.type === 'RESULT' && event.status === 'done',
      isChildEnd: ({ event }, { state }: { state: TerminalState }) =>
        isDoneEvent(event) && event.output.state === state,
    },
    actions: {
      recordCreation: emit(({ context }) => createdEmission(context)),
      recordAuthorization: emit(({ context, event }) => authzEmission(context.run, event, auditTargetOf(context))),
      recordRunning: emit(({ context }) => runningEmission(context.run)),
      recordEnd: emit(({ context }, { state }: { state: TerminalState }) => endEmission(context, state)),
      emitRunEnded: emit(({ context }, { state }: { state: TerminalState }) => runEndedEmission(context, state)),
      recordOutcome: enqueueActions(({ context, enqueue }) => {
        for (const emission of outcomeEmissions(context)) enqueue.emit(emission);
      }),
      requestEffect: enqueueActions(({ context, enqueue }) => {
        for (const emission of effectEmissions(context)) enqueue.emit(emission);
      }),
      setExpiryTimer: enqueueActions(({ context, enqueue }) => {
        const at = expiry(context.approval);
        if (at !== null) enqueue.emit({ type: 'timer', run_id: context.run.run_id, at });
      }),
      countVotes: enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'VOTE') return;
        const { update, verdicts } = applyBallot(context, event, policy);
        for (const emission of voteEmissions(context.run, event, verdicts)) enqueue.emit(emission);
        enqueue.assign(update);
      }),
      denyExpiredRequest: assign({ verdict: () => EXPIRED_DENIAL }),
      recordPendingApproval: emit(({ context }) => approvalPendingEmission(context, auditTargetOf(context))),
      recordApprovalDecision: emit(({ context }) => approvalDecisionEmission(context, auditTargetOf(context))),
      applyApprovalDenial: assign({ end: ({ context }) => denialEnd(context.verdict ?? EXPIRED_DENIAL) }),
      sendStarted: sendParent({ type: 'STARTED' }),
      startWriteRun: enqueueActions(({ context, enqueue }) => {
        const child = childContext(context.run, childId(context.run), 'db_write');
        const request = toWriteRequest(context.request, context.run.run_kind);
        enqueue.spawnChild('db_write', { id: child.run_id, input: { run: child, request, approval: null } });
        const { overlay } = request;
        const verdict = authorizeRequest(child, request, policy);
        enqueue.sendTo(child.run_id, { type: 'AUTHORIZE', verdict, overlay, digest: null });
      }),
      cancelChild: sendTo(
        ({ context }) => childId(context.run),
        ({ event }) => event,
      ),
      applyDenial: assign({
        end: ({ event }) => denialEnd(verdictOf(event)),
        done: ({ event }) => ({ result: null, result_ref: null, cause: null, denied_by: verdictOf(event), at: null }),
      }),
      applyCancel: assign({
        end: ({ context, event }) =>
          context.end ?? cancellationEnd(event.type === 'CANCEL' ? event.reason : 'parent_ended'),
      }),
      setReportTimer: emit(({ context }) => reportTimer(context)),
      applyReport: assign(({ context, event }) => (event.type === 'REPORT' ? applyReport(context, event) : {})),
      applyMissingReport: assign(({ context }) => applyMissingReport(context)),
      emitUnknownOutcome: enqueueActions(({ context, enqueue }) => {
        for (const emission of unknownEmissions(context)) enqueue.emit(emission);
      }),
      applyResult: assign(({ context, event }) => (event.type === 'RESULT' ? applyResult(context, event) : {})),
      applyChildEnd: assign(({ context, event }) =>
        isDoneEvent(event) ? { end: event.output.end, done: event.output.done ?? context.done } : {},
      ),
    },
  });

/** The machine of one mediated run under `policy`. Provide `db_write` if the run may start a write run. */
export const createMediatedMachine = (policy: Policy) =>
  setupMediated(policy).createMachine({
    id: 'mediated',
    context: ({ input: { run, request, approval } }) => ({
      run,
      request,
      approval,
      verdict: null,
      end: null,
      done: { result: null, result_ref: null, cause: null, denied_by: null, at: null },
    }),
    initial: 'created',
    states: {
      created: {
        entry: 'recordCreation',
        on: { CANCEL: { target: 'cancelled', actions: 'applyCancel' } },
        initial: 'authorizing',
        states: {
          authorizing: {
            always: { guard: 'needsApproval', target: 'awaitingVotes', actions: 'recordPendingApproval' },
            on: {
              AUTHORIZE: [
                { guard: 'isAllowed', target: '#mediated.running', actions: ['recordAuthorization', 'recordRunning'] },
                { target: '#mediated.denied', actions: ['recordAuthorization', 'applyDenial'] },
              ],
            },
          },
          awaitingVotes: {
            entry: 'setExpiryTimer',
            on: {
              VOTE: { target: 'votesCounted', actions: 'countVotes' },
              WAKE: [
                { guard: 'hasExpired', target: 'votesCounted', actions: 'denyExpiredRequest' },
                { actions: 'setExpiryTimer' },
              ],
            },
          },
          votesCounted: {
            always: [
              {
                guard: 'isApproved',
                target: '#mediated.running',
                actions: ['recordApprovalDecision', 'recordRunning'],
              },
              {
                guard: 'isRejected',
                target: '#mediated.denied',
                actions: ['recordApprovalDecision', 'applyApprovalDenial'],
              },
              { target: 'awaitingVotes' },
            ],
          },
        },
      },
      running: {
        initial: 'choosingExecutor',
        states: {
          choosingExecutor: {
            always: [
              { guard: 'isCallerExecuted', target: 'awaitingReport' },
              { guard: 'needsWriteRun', target: 'awaitingWriteRun' },
              { target: 'executing' },
            ],
          },
          executing: {
            entry: ['requestEffect', 'sendStarted'],
            on: {
              RESULT: [
                { guard: 'isCancelling', target: '#mediated.cancelled', actions: ['applyResult', 'recordOutcome'] },
                { guard: 'hasSucceeded', target: '#mediated.completed', actions: ['applyResult', 'recordOutcome'] },
                { target: '#mediated.failed', actions: ['applyResult', 'recordOutcome'] },
              ],
              CANCEL: { actions: 'applyCancel' },
            },
          },
          awaitingWriteRun: {
            entry: 'startWriteRun',
            on: {
              STARTED: { actions: 'sendStarted' },
              'xstate.done.actor.*': [
                childEndTransition('completed', ['applyChildEnd', 'recordOutcome']),
                childEndTransition('failed', ['applyChildEnd', 'recordOutcome']),
                childEndTransition('cancelled', ['applyChildEnd', 'recordOutcome']),
                { target: '#mediated.denied', actions: 'applyChildEnd' },
              ],
              CANCEL: { actions: 'cancelChild' },
            },
          },
          awaitingReport: {
            entry: ['setReportTimer', 'sendStarted'],
            on: {
              REPORT: [
                {
                  guard: 'hasReportedSuccess',
                  target: '#mediated.completed',
                  actions: ['applyReport', 'recordOutcome'],
                },
                { target: '#mediated.failed', actions: ['applyReport', 'emitUnknownOutcome', 'recordOutcome'] },
              ],
              WAKE: [
                {
                  guard: 'isReportOverdue',
                  target: '#mediated.failed',
                  actions: ['applyMissingReport', 'emitUnknownOutcome', 'recordOutcome'],
                },
                { actions: 'setReportTimer' },
              ],
              CANCEL: {
                target: '#mediated.failed',
                actions: ['applyMissingReport', 'emitUnknownOutcome', 'recordOutcome'],
              },
            },
          },
        },
      },
      ...FINAL_STATES,
    },
    output: ({ event }) => (event as unknown as { output: RunOutput }).output,
  });
/** The machine that `createMediatedMachine` returns. */
export interface MediatedMachine extends ReturnType<typeof createMediatedMachine> {}

function childEndTransition<const S extends TerminalState, const A extends readonly string[]>(state: S, actions: A) {
  return { guard: { type: 'isChildEnd', params: { state } }, target: `#mediated.${state}`, actions } as const;
}

/** A missing answer is a denial. */
const EXPIRED_DENIAL: Verdict = { decision: 'deny', rule_id: 'approval.expired', cause: 'APPROVAL_REQUIRED' };

function applyResult(context: MediatedMemory, event: ResultEvent): Partial<MediatedMemory> {
  const { result, result_ref, explanation_ref, time: at } = event;
  if (event.status === 'done') return { done: { result, result_ref, cause: null, denied_by: null, at } };
  const cause = event.status === 'unknown' ? 'OUTCOME_UNKNOWN' : (event.cause ?? 'INTERNAL');
  return {
    end: context.end ?? executionFailureEnd(cause, context.request.idempotent),
    done: {
      result: null,
      result_ref: context.request.effect.partial_outputs ? result_ref : null,
      cause,
      denied_by: null,
      at,
      ...(explanation_ref === undefined ? {} : { explanation_ref }),
    },
  };
}

// What a mediated run emits and requests, in the order of its life.

const createdEmission = (context: MediatedMemory): Emission => ({
  type: 'run_created',
  body: runCreatedDraft(context.run, {
    request: { name: auditTargetOf(context).name, hash_sha256: context.request.hash },
    label: context.request.privileged.label,
    retry: context.request.retry,
    ...(context.request.report_due === undefined ? {} : { executor: 'caller' }),
  }),
});

/** The subject of the run for the audit: the tool of a gateway, or the table of a write. */
export function auditTargetOf({ request, run }: Pick<MediatedMemory, 'request' | 'run'>): AuditTarget {
  const { tool, write, read } = request.privileged;
  if (run.run_kind === 'export') return { target_type: 'export_bundle', name: 'export_bundle' };
  if (tool !== null) return { target_type: 'tool', name: tool, operation: request.effect.action };
  if (write !== null) return { target_type: 'table', name: write.table, operation: write.mode };
  return read === null
    ? { target_type: 'system', name: request.effect.action }
    : { target_type: 'table', name: read, operation: 'read' };
}

/** The effect to execute. An export also emits that it is authorized (S4-79). */
export function effectEmissions(context: MediatedMemory): readonly Emission[] {
  const { run, request } = context;
  const effect: Effect = {
    action: request.effect.action,
    args: request.effect.args,
    case_id: request.effect.case_id,
    run_id: run.run_id,
    idempotency_key: request.idempotency_key ?? run.run_id,
    request_hash: request.effect.request_hash,
    before: request.effect.before,
    partial_outputs: request.effect.partial_outputs,
    ...(request.effect.repeatable === true ? { repeatable: true } : {}),
    ...(request.effect.explained === true ? { explained: true } : {}),
    limits: request.effect.limits,
  };
  const command: Emission = {
    type: 'command',
    command: { kind: 'perform', run_id: run.run_id, effect, in_commit: request.in_commit },
  };
  return run.run_kind === 'export' ? [exportEmission(context, 'authorize'), command] : [command];
}

/** The request of the db_write child: only the write. */
const toWriteRequest = (request: MediatedRequest, run_kind: RunKind): MediatedRequest => ({
  privileged: toPrivilegedWrite(request.privileged, run_kind),
  hash: request.hash,
  effect: request.effect,
  // All attempts of an effect use one key: the key of the write run of the first attempt.
  idempotency_key: request.idempotency_key === null ? null : childRunId(request.idempotency_key, 1),
  in_commit: request.in_commit,
  idempotent: request.idempotent,
  inputs: request.inputs,
  written: request.written,
  retry: null,
  overlay: request.overlay,
});

/** The part of a privileged request that its db_write run executes. */
export const toPrivilegedWrite = (privileged: PrivilegedRequest, run_kind: RunKind): PrivilegedRequest => ({
  tool: null,
  write: privileged.write,
  read: null,
  target_case_id: privileged.target_case_id,
  destination: privileged.destination,
  plane: privileged.plane,
  artifact_flags: privileged.artifact_flags,
  unregistered: privileged.unregistered,
  promotes: run_kind === 'promotion',
  label: privileged.label,
});

/** The audit event about the action itself (S4-47 to S4-50, C58). */
const ACTION_TYPE_BY_RUN_KIND = {
  tool_gateway: 'tool_call',
  db_write: 'db_write',
  db_read: 'db_read',
  promotion: 'promotion',
  export: 'export',
} as const satisfies Partial<Record<RunKind, ActionType>>;
type MediatedRunKind = keyof typeof ACTION_TYPE_BY_RUN_KIND;

/** The outcome of the action. An export emits its assembly and its end (S4-79, C57). */
export const outcomeEmissions = (context: MediatedMemory): readonly Emission[] =>
  context.run.run_kind === 'export'
    ? [exportEmission(context, 'assemble'), exportEmission(context, 'finalize')]
    : [actionEmission(context, auditTargetOf(context))];

const exportEmission = (context: MediatedMemory, operation: 'authorize' | 'assemble' | 'finalize'): Emission =>
  actionEmission(context, { ...auditTargetOf(context), operation });

function actionEmission({ run, request, done }: MediatedMemory, target: AuditTarget): Emission {
  return {
    type: 'audit_event',
    body: actionEvent(run, {
      type: ACTION_TYPE_BY_RUN_KIND[run.run_kind as MediatedRunKind],
      target,
      request_hash: request.hash,
      inputs: request.inputs,
      response: done.result_ref,
      // A failed action has no result; without one, the reference covers the output up to the failure.
      output:
        done.result === null
          ? done.result_ref
          : (exportBundleRef({ run, request, done }) ?? request.written ?? done.result_ref),
      end: done.cause === null ? null : executionFailureEnd(done.cause, request.idempotent),
      critical: done.cause === 'SANDBOX_CHANGED' || done.cause === 'OUTCOME_UNKNOWN',
      ...(done.reported === undefined ? {} : { reported: done.reported }),
    }),
  };
}

/**
 * S4-76: a reference to the bundle of an export. Its hash is the executor's result, and its locator that of the
 * request.
 */
function exportBundleRef({ run, request, done: { result } }: Pick<MediatedMemory, 'run' | 'request' | 'done'>) {
  if (run.run_kind !== 'export' || result === null) return null;
  const { bundle_id, package_hash_sha256 } = result;
  if (typeof bundle_id !== 'string' || typeof package_hash_sha256 !== 'string') return null;
  const { locator } = request.effect.args;
  if (typeof locator !== 'string') return null;
  return {
    artifact_id: bundle_id,
    artifact_kind: 'export_bundle',
    hash_sha256: package_hash_sha256,
    storage_locator: locator,
    ...(run.case_id === null ? {} : { scope: 'case' as const, case_id: run.case_id }),
    lineage: { run_id: run.run_id, transformation: 'export' },
  } satisfies ArtifactRef;
}

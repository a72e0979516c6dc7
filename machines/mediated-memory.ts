// The request of a mediated run, and what the run emits: its creation, its command, and the events about its action.

import type { ApprovalBallot, ApprovalBook, ApprovalRule } from '../src/core/contract/run/approval.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { ActionType, AuditTarget } from '../src/core/contract/run/audit-event.js';
import type { Effect } from '../src/core/contract/run/effect.js';
import type { RunCreated } from '../src/core/contract/run/entry.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../src/core/contract/fault.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import { childRunId, type RunContext, type RunKind } from '../src/core/contract/run/run-context.js';
import { type PrivilegedRequest, authorizeWithOverlay } from '../src/core/policy/authorize-run.js';
import type { Policy } from '../src/core/policy/policy.js';
import type { Verdict } from '../src/core/policy/verdict.js';
import { actionEvent, runCreatedDraft, type RunEnd } from '../src/core/run/audit-events.js';
import type { Emission } from './emission.js';
import { failureEnd, type MediatedOutcome, type RunMemory } from './run.js';

/** The request of the run. A tool_gateway run passes the same request to its db_write child. */
export interface MediatedRequest {
  readonly privileged: PrivilegedRequest;
  /** SHA-256 of the canonical request (S4-60). */
  readonly hash: string;
  readonly effect: Omit<Effect, 'run_id' | 'idempotency_key'>;
  /** For a retry, the key of the first attempt; null for a first attempt, whose key is its own run id. */
  readonly idempotency_key: string | null;
  readonly in_commit: boolean;
  /** Whether two executions with one key have the effect of one. If so, an unknown outcome may be retried. */
  readonly idempotent: boolean;
  readonly inputs: readonly ArtifactRef[];
  /** The artifact of a successful write, if it is known beforehand. */
  readonly written: ArtifactRef | null;
  readonly retry: RunCreated['retry'];
  /** The emergency overlay under which the request was allowed; it also applies to a child run. */
  readonly overlay: OverlayFact | null;
  /** The time by which the caller must report the outcome. Absent: the platform executes the request (U-08). */
  readonly report_due?: string;
}

/** The approval that the run needs before it enters `running`, and the votes so far (D7). */
export interface RequiredApproval {
  readonly digest: string;
  readonly rule: ApprovalRule;
  readonly book: ApprovalBook;
}

/** The answer of approvers to requests of a run. */
export interface VoteEvent {
  readonly type: 'VOTE';
  readonly ballot: ApprovalBallot;
  readonly overlay: OverlayFact | null;
}

export interface MediatedMemory extends RunMemory {
  readonly request: MediatedRequest;
  readonly done: MediatedOutcome;
  readonly approval: RequiredApproval | null;
  /** The verdict on a run that has waited for approval. */
  readonly verdict: Verdict | null;
}

/** Judges whether the run may execute its request. */
export const authorizeRequest = (run: RunContext, request: MediatedRequest, policy: Policy): Verdict =>
  authorizeWithOverlay(
    run,
    { action: request.effect.action, privileged: request.privileged, overlay: request.overlay },
    policy,
  );

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

/** The request of the db_write child: only the write. */
export const toWriteRequest = (request: MediatedRequest, run_kind: RunKind): MediatedRequest => ({
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

export const createdEmission = (context: MediatedMemory): Emission => ({
  type: 'run_created',
  body: runCreatedDraft(context.run, {
    request: { name: auditTargetOf(context).name, hash_sha256: context.request.hash },
    label: context.request.privileged.label,
    retry: context.request.retry,
    ...(context.request.report_due === undefined ? {} : { executor: 'caller' }),
  }),
});

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

export const executionFailureEnd = (cause: ExecutionCause, idempotent: boolean): RunEnd =>
  failureEnd(
    cause,
    EXECUTION_CAUSES[cause].message,
    EXECUTION_CAUSES[cause].retryable || (isUnknown(cause) && idempotent),
  );

const isUnknown = (cause: ExecutionCause): boolean => cause === 'OUTCOME_UNKNOWN';

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

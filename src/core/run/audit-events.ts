// Creates the audit events of a run (S4 §6), as pure functions of its context. The kernel adds id, time and sequence
// number.

import {
  OUTCOME_REASON_CHARS_MAX,
  type ActionType,
  type AuditEvent,
  type AuditOutcome,
  type AuditTarget,
} from '../contract/run/audit-event.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import type {
  AccessInput,
  ResolveInput,
  RestoreInput,
  RotateKeyInput,
  RunCreated,
  VoteInput,
} from '../contract/run/entry.js';
import type { OverlayFact } from '../contract/policy/overlay.js';
import type { ReportOrigin } from '../contract/run/report-origin.js';
import {
  type RunContext,
  CONTENT_READ,
  KEY_ROTATED,
  LEDGER_RESTORED,
  OUTCOME_RESOLVED,
  RESTORE_ACKNOWLEDGED,
  TRANSITION_REFUSED,
  type TerminalState,
} from '../contract/run/run-context.js';
import type { PolicyVersions } from '../contract/shapes.js';

/**
 * An event as a machine emits it. Every member exists, with `undefined` where the event has none. The kernel sets place
 * and time. All events share one shape, because most of the work of a step is creating and writing events.
 */
export type AuditDraft = { -readonly [K in keyof Required<AuditEvent>]: AuditEvent[K] | UndefinedIfOptional<K> };
type UndefinedIfOptional<K extends keyof AuditEvent> = undefined extends AuditEvent[K] ? undefined : never;

/** A `run_created` entry as a machine emits it. The kernel sets `created_at_utc`. */
export type RunCreatedDraft = { -readonly [K in keyof RunCreated]: RunCreated[K] };

/** How a run ended. `error` is set exactly if it failed (S4-64). */
export interface RunEnd {
  readonly reason: string;
  readonly error: { readonly error_code: string; readonly message: string; readonly retryable: boolean } | null;
}

/** The creation of a run. */
export const runCreatedDraft = (
  run: RunContext,
  more: Pick<RunCreated, 'request'> &
    Partial<Pick<RunCreated, 'exposure' | 'link' | 'budget' | 'label' | 'retry' | 'executor'>>,
): RunCreatedDraft => ({
  run_id: run.run_id,
  run_kind: run.run_kind,
  root_run_id: run.root_run_id,
  parent_run_id: run.parent_run_id,
  correlation_id: run.correlation_id,
  contract_version: run.contract_version,
  policy_versions: run.policy_versions,
  taxonomy_versions: run.taxonomy_versions,
  case_id: run.case_id,
  actor: run.actor,
  role_id: run.role_id,
  lane_id: run.lane_id,
  scope: run.scope,
  created_at_utc: '',
  request: more.request,
  exposure: more.exposure ?? null,
  link: more.link ?? null,
  budget: more.budget ?? null,
  label: more.label ?? null,
  retry: more.retry ?? null,
  ...(more.executor === undefined ? {} : { executor: more.executor }),
});

/** The subject of a decision, and the overlay that it was made under, in addition to the run's own pins. */
export interface DecisionSubject {
  readonly target: AuditTarget | null;
  /** Null without an overlay. */
  readonly overlay: OverlayFact | null;
  /** For a request that needs approval: the digest that people approve (D7). */
  readonly digest: string | null;
}
export const NO_DECISION_SUBJECT: DecisionSubject = { target: null, overlay: null, digest: null };

/** The decision that every run starts with (S4-44), and the rule that made it. */
export function authzEvent(
  run: RunContext,
  verdict: { readonly decision: 'allow' | 'deny'; readonly rule_id: string },
  { target, overlay, digest }: DecisionSubject,
): AuditDraft {
  const event = newEvent(run, 'authz_decision', verdict.decision);
  event.request_hash_sha256 = digest ?? undefined;
  event.severity = verdict.decision === 'allow' ? 'info' : 'warn';
  event.target = target ?? undefined;
  event.authz = {
    decision: verdict.decision,
    rule_id: verdict.rule_id,
    policy_ref:
      overlay === null ? policyRef(run.policy_versions) : `${policyRef(run.policy_versions)} ${epochOf(overlay)}`,
  };
  return event;
}

/** The run has entered `running` (S4-45), with its start inputs (S4-59). */
export function runningEvent(run: RunContext, inputs: readonly ArtifactRef[] = []): AuditDraft {
  const event = newEvent(run, 'system', 'success');
  event.outcome_reason = 'running';
  event.input_artifacts = nonEmpty(inputs);
  return event;
}

/** The run has entered a terminal state (S4-46; outcomes by C48). */
export function endEvent(
  run: RunContext,
  state: TerminalState,
  end: RunEnd,
  { inputs, outputs }: RunArtifacts = NO_ARTIFACTS,
): AuditDraft {
  const event = newEvent(run, 'system', state === 'completed' ? 'success' : state === 'denied' ? 'deny' : 'failure');
  event.outcome_reason = truncateReason(end.reason === state ? state : `${state}:${end.reason}`);
  event.severity = state === 'completed' ? 'info' : state === 'failed' ? 'error' : 'warn';
  event.error = end.error ?? undefined;
  event.input_artifacts = nonEmpty(inputs);
  event.output_artifacts = nonEmpty(outputs);
  return event;
}

/** Artifacts that a run received after its start, and those that it produced. */
interface RunArtifacts {
  readonly inputs: readonly ArtifactRef[];
  readonly outputs: readonly ArtifactRef[];
}
const NO_ARTIFACTS: RunArtifacts = { inputs: [], outputs: [] };
const nonEmpty = (refs: readonly ArtifactRef[]): ArtifactRef[] | undefined =>
  refs.length === 0 ? undefined : [...refs];

/** A privileged action was executed, or failed (S4-40 to S4-42, S4-47, S4-48). */
export function actionEvent(
  run: RunContext,
  action: {
    readonly type: Extract<ActionType, 'tool_call' | 'db_write' | 'db_read' | 'promotion' | 'export'>;
    readonly target: AuditTarget;
    readonly request_hash: string;
    readonly inputs: readonly ArtifactRef[];
    /** The executor's answer, and an output artifact that did not exist before. */
    readonly response: ArtifactRef | null;
    readonly output: ArtifactRef | null;
    readonly end: RunEnd | null;
    readonly critical: boolean;
    /** Absent: the platform has executed the action. */
    readonly reported?: ReportOrigin;
  },
): AuditDraft {
  const { end } = action;
  const event = newEvent(run, action.type, end === null ? 'success' : 'failure');
  event.severity = action.critical ? 'critical' : end === null ? 'info' : 'error';
  event.target = action.target;
  event.request_hash_sha256 = action.request_hash;
  event.input_artifacts = [...action.inputs];
  event.response_hash_sha256 = action.response?.hash_sha256;
  event.output_artifacts = action.output === null ? undefined : [action.output];
  event.reported = action.reported;
  if (end?.error) {
    event.outcome_reason = truncateReason(end.reason);
    event.error = end.error;
  }
  return event;
}

/** An input requested a transition that the lifecycle does not have. The state of the run does not change (C50). */
export function illegalTransitionEvent(run: RunContext, addressed_run_id: string, input_kind: string): AuditDraft {
  const event = newEvent(run, 'system', 'failure');
  event.outcome_reason = TRANSITION_REFUSED;
  event.severity = 'warn';
  event.target = { target_type: 'system', name: addressed_run_id, operation: input_kind };
  event.error = {
    error_code: 'INVALID_STATE_TRANSITION',
    message: 'The run is not in a state in which this is possible; nothing was changed.',
    retryable: false,
  };
  return event;
}

/** The fields of every event of a run (S4-51 to S4-53, S4-82). */
const newEvent = (run: RunContext, action_type: ActionType, outcome: AuditOutcome): AuditDraft => ({
  event_id: '',
  timestamp_utc: '',
  sequence: 0,
  action_type,
  outcome,
  outcome_reason: undefined,
  severity: undefined,
  actor: run.actor,
  contract_version: run.contract_version,
  policy_versions: run.policy_versions,
  taxonomy_versions: run.taxonomy_versions ?? undefined,
  run_id: run.run_id,
  root_run_id: run.root_run_id,
  parent_run_id: run.parent_run_id ?? undefined,
  correlation_id: run.correlation_id,
  case_id: run.case_id ?? undefined,
  lane_id: run.lane_id ?? undefined,
  role_id: run.role_id,
  target: undefined,
  input_artifacts: undefined,
  output_artifacts: undefined,
  request_hash_sha256: undefined,
  response_hash_sha256: undefined,
  authz: undefined,
  identity: undefined,
  reported: undefined,
  error: undefined,
  notes: undefined,
});

const policyRefs = new WeakMap<PolicyVersions, string>();

/** The policy versions of a decision. They are one object in all runs of a tree. */
function policyRef(versions: PolicyVersions): string {
  const known = policyRefs.get(versions);
  if (known !== undefined) return known;
  const ref = `lanes@${versions.lanes} roles@${versions.roles} actions@${versions.actions}`;
  policyRefs.set(versions, ref);
  return ref;
}

const epochOf = (overlay: OverlayFact): string => `overlay@${overlay.epoch ?? overlay.problem}`;

/** A person voted on a request for approval (D7): one event per digest. */
export function voteEvent(
  run: RunContext,
  { approver }: Pick<VoteInput, 'approver'>,
  { digest, counted, rule_id }: { readonly digest: string; readonly counted: boolean; readonly rule_id: string },
  overlay: OverlayFact | null,
): AuditDraft {
  const verdict = { decision: counted && rule_id !== 'approval.rejected' ? 'allow' : 'deny', rule_id } as const;
  const target = { target_type: 'system', name: 'approval' } as const;
  const event = authzEvent(run, verdict, { target, overlay, digest });
  event.actor = approver.actor;
  event.role_id = approver.role_id;
  event.identity = approver.identity;
  return event;
}

/** D8: the settlement of an unknown outcome. The state of the run does not change. */
export function resolvedEvent(run: RunContext, resolved: ResolveInput): AuditDraft {
  const { outcome, actor, role_id, note, note_ref } = resolved;
  const event = newEvent(run, 'system', 'success');
  event.outcome_reason = `${OUTCOME_RESOLVED}${outcome}`;
  event.actor = actor;
  event.role_id = role_id;
  event.notes = note === '' ? undefined : note;
  event.input_artifacts = note_ref === undefined ? undefined : [note_ref];
  return event;
}

/** A person was given content of the tree (reads are audited like actions). */
export function accessEvent(run: RunContext, access: AccessInput): AuditDraft {
  const { actor, role_id, entry, artifact_kind, hash_sha256 } = access;
  const event = newEvent(run, 'system', 'success');
  event.outcome_reason = CONTENT_READ;
  event.actor = actor;
  event.role_id = role_id;
  event.target = {
    target_type: 'artifact',
    name: artifact_kind,
    operation: `read entry ${entry}`,
    artifact_ref: { artifact_id: `sha256:${hash_sha256}`, artifact_kind, hash_sha256 },
  };
  return event;
}

/** The ledger was restored from a backup or has lost entries in a failover, or an operator has acknowledged that. */
export function restoreEvent(run: RunContext, restore: RestoreInput): AuditDraft {
  const { event: kind, kept, lost, lineage, backup_sha256, confirmed, actor, role_id } = restore;
  const event = newEvent(run, 'system', 'success');
  event.outcome_reason = kind === 'restored' ? LEDGER_RESTORED : RESTORE_ACKNOWLEDGED;
  event.severity = kind === 'restored' ? 'critical' : undefined;
  event.actor = actor;
  event.role_id = role_id;
  event.target = { target_type: 'system', name: 'ledger', operation: `restore ${lineage}` };
  const end = lost === null ? 'an unknown end' : `entry ${lost.size} (root ${lost.root})`;
  const source = backup_sha256 === null ? 'the ledger after a failover' : `backup ${backup_sha256}`;
  event.notes = `${source} ends before entry ${kept.size} (root ${kept.root}); lost: from there to ${end}`;
  if (confirmed !== undefined)
    event.notes += `; confirmed: ${confirmed.approvals.length} approvals, ${confirmed.counters.length} counters`;
  return event;
}

/** A key was replaced. Names keys by what people compare. */
export function rotationEvent(run: RunContext, { rotation, actor, role_id }: RotateKeyInput): AuditDraft {
  const event = newEvent(run, 'system', 'success');
  event.outcome_reason = KEY_ROTATED;
  event.actor = actor;
  event.role_id = role_id;
  if (rotation.purpose === 'case') {
    const { case_id, key_no, contents } = rotation;
    event.target = { target_type: 'system', name: `key of case ${case_id}`, operation: `rotation ${key_no}` };
    event.notes = `key ${key_no + 1} replaces key ${key_no} of ${case_id}, which then had ${contents} contents`;
    return event;
  }
  const nameOf = (vkey: string): string => vkey.split('+').slice(0, 2).join('+');
  event.target = { target_type: 'system', name: 'ledger key', operation: `rotation ${rotation.number}` };
  event.notes = `the key ${nameOf(rotation.new_key)} replaces ${nameOf(rotation.old_key)}, and both have signed that`;
  return event;
}

const truncateReason = (text: string): string => text.slice(0, OUTCOME_REASON_CHARS_MAX);

// The audit events of a run's life (S4 §6), as pure functions of its context. The kernel adds id, time and sequence.

import {
  OUTCOME_REASON_CHARS_MAX,
  type ActionType,
  type AuditEvent,
  type AuditTarget,
} from '../contract/audit-event.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { RunCreated } from '../contract/entry.js';
import type { RunContext } from '../contract/run-context.js';
import type { TerminalState } from '../contract/run-state.js';

export type AuditDraft = Omit<AuditEvent, 'event_id' | 'timestamp_utc' | 'sequence'>;
export type RunCreatedDraft = Omit<RunCreated, 'created_at_utc'>;

/** How a run ended. `error` exactly when it failed (S4-64). */
export interface RunEnd {
  readonly reason: string;
  readonly error: { readonly error_code: string; readonly message: string; readonly retryable: boolean } | null;
}

/** Spread where an optional member is left out. */
const NOTHING = {};

/** The decision that a run starts with (S4-44), and the rule that made it. */
export const authzEvent = (
  run: RunContext,
  verdict: { readonly decision: 'allow' | 'deny'; readonly rule_id: string },
  target: AuditTarget | null,
): AuditDraft => ({
  ...frame(run),
  ...(target === null ? NOTHING : { target }),
  action_type: 'authz_decision',
  outcome: verdict.decision,
  severity: verdict.decision === 'allow' ? 'info' : 'warn',
  authz: {
    decision: verdict.decision,
    rule_id: verdict.rule_id,
    policy_ref: `lanes@${run.policy_versions.lanes} roles@${run.policy_versions.roles} actions@${run.policy_versions.actions}`,
  },
});

/** The run has entered `running` (S4-45). */
export const runningEvent = (run: RunContext): AuditDraft => ({
  ...frame(run),
  action_type: 'system',
  outcome: 'success',
  outcome_reason: 'running',
});

/** The run has entered a terminal state (S4-46; outcomes by C48). */
export const endEvent = (run: RunContext, state: TerminalState, end: RunEnd): AuditDraft => ({
  ...frame(run),
  action_type: 'system',
  outcome: state === 'completed' ? 'success' : state === 'denied' ? 'deny' : 'failure',
  outcome_reason: bounded(end.reason === state ? state : `${state}:${end.reason}`),
  severity: state === 'completed' ? 'info' : state === 'failed' ? 'error' : 'warn',
  ...(end.error === null ? NOTHING : { error: end.error }),
});

/** A privileged action was performed, or failed (S4-40 to S4-42, S4-47, S4-48). */
export const actionEvent = (
  run: RunContext,
  action: {
    readonly type: Extract<ActionType, 'tool_call' | 'db_write' | 'db_read'>;
    readonly target: AuditTarget;
    readonly request_hash: string;
    readonly inputs: readonly ArtifactRef[];
    /** What the executor answered, and what is there now that was not before. */
    readonly response: ArtifactRef | null;
    readonly output: ArtifactRef | null;
    readonly end: RunEnd | null;
    readonly critical: boolean;
  },
): AuditDraft => ({
  ...frame(run),
  action_type: action.type,
  outcome: action.end === null ? 'success' : 'failure',
  severity: action.critical ? 'critical' : action.end === null ? 'info' : 'error',
  target: action.target,
  request_hash_sha256: action.request_hash,
  input_artifacts: [...action.inputs],
  ...(action.response === null ? NOTHING : { response_hash_sha256: action.response.hash_sha256 }),
  ...(action.output === null ? NOTHING : { output_artifacts: [action.output] }),
  ...(action.end?.error ? { outcome_reason: bounded(action.end.reason), error: action.end.error } : NOTHING),
});

/** Something asked a run for a transition that the lifecycle does not have; the run has not moved (C50). */
export const illegalTransitionEvent = (run: RunContext, asked_of: string, input_kind: string): AuditDraft => ({
  ...frame(run),
  action_type: 'system',
  outcome: 'failure',
  outcome_reason: 'INVALID_STATE_TRANSITION',
  severity: 'warn',
  target: { target_type: 'system', name: asked_of, operation: input_kind },
  error: {
    error_code: 'INVALID_STATE_TRANSITION',
    message: 'The run is not in a state in which this is possible; nothing was changed.',
    retryable: false,
  },
});

const frames = new WeakMap<RunContext, ReturnType<typeof newFrame>>();

/** The fields that every event of a run has (S4-51 to S4-53, S4-82): put together once a run. */
function frame(run: RunContext) {
  const known = frames.get(run);
  if (known !== undefined) return known;
  const made = newFrame(run);
  frames.set(run, made);
  return made;
}

const newFrame = (run: RunContext) => ({
  actor: run.actor,
  contract_version: run.contract_version,
  policy_versions: run.policy_versions,
  run_id: run.run_id,
  root_run_id: run.root_run_id,
  correlation_id: run.correlation_id,
  role_id: run.role_id,
  ...(run.parent_run_id === null ? NOTHING : { parent_run_id: run.parent_run_id }),
  ...(run.case_id === null ? NOTHING : { case_id: run.case_id }),
  ...(run.lane_id === null ? NOTHING : { lane_id: run.lane_id }),
  ...(run.taxonomy_versions === null ? NOTHING : { taxonomy_versions: run.taxonomy_versions }),
});

const bounded = (text: string): string => text.slice(0, OUTCOME_REASON_CHARS_MAX);

// A run: its context, which is fixed when it is created, its kind and its state. The page of the inspector imports this
// file, so it has no schemas.

import { usageError } from '../../errors.js';
import type { Person } from '../person.js';
import type { Actor, PolicyVersions, TaxonomyVersions } from '../shapes.js';

/** The identity of a run, the policies that judge it and its scope. Plain JSON, fixed when the run is created. */
export interface RunContext {
  readonly run_id: string;
  readonly run_kind: RunKind;
  readonly root_run_id: string;
  readonly parent_run_id: string | null;
  readonly correlation_id: string;
  readonly contract_version: 'v1';
  readonly policy_versions: PolicyVersions;
  readonly taxonomy_versions: TaxonomyVersions | null;
  readonly case_id: string | null;
  readonly actor: Actor;
  /** The person that the overlay compares the actor as; absent for the platform. */
  readonly person?: Person | undefined;
  readonly role_id: string;
  /** Null for an orchestrator, which has no lane of its own. */
  readonly lane_id: string | null;
  /** Further scope fields that lanes may require: `coa_version`, `client_session_id`, ... (D12). */
  readonly scope: Readonly<Record<string, string>>;
}

/**
 * The context of a child run: its own id and kind, and everything else from the parent (S4-56, U-03). There is no
 * parameter for pins, case or correlation, so a child cannot get others.
 */
export const childContext = (parent: RunContext, run_id: string, run_kind: RunKind): RunContext => {
  const { run_id: parent_run_id, lane_id, case_id } = parent;
  return deriveContext(parent, { run_id, run_kind, parent_run_id, lane_id, case_id });
};

/** The context of a session's activation: an orchestrator run that is its own root, with all that the session pins. */
export const activationContext = (session: RunContext, run_id: string): RunContext => ({
  ...session,
  run_id,
  root_run_id: run_id,
});

/** The same run in another lane, with the case or without it. */
export const contextInLane = (run: RunContext, lane_id: string | null, case_id: string | null): RunContext => {
  const { run_id, run_kind, parent_run_id } = run;
  return deriveContext(run, { run_id, run_kind, parent_run_id, lane_id, case_id });
};

/**
 * S4-66 to S4-68: the context of a retry, which is a run of its own, a child of the first attempt, and otherwise equal.
 */
export const retryContext = (first: RunContext, run_id: string): RunContext => {
  const { run_kind, lane_id, case_id } = first;
  return deriveContext(first, { run_id, run_kind, parent_run_id: first.run_id, lane_id, case_id });
};

/**
 * Written out, like every object that each step makes: a spread object gets its own hidden class, which slows down all
 * code that reads it (decision 0009).
 */
const deriveContext = (
  from: RunContext,
  own: Pick<RunContext, 'run_id' | 'run_kind' | 'parent_run_id' | 'lane_id' | 'case_id'>,
): RunContext => ({
  run_id: own.run_id,
  run_kind: own.run_kind,
  root_run_id: from.root_run_id,
  parent_run_id: own.parent_run_id,
  correlation_id: from.correlation_id,
  contract_version: from.contract_version,
  policy_versions: from.policy_versions,
  taxonomy_versions: from.taxonomy_versions,
  case_id: own.case_id,
  actor: from.actor,
  person: from.person,
  role_id: from.role_id,
  lane_id: own.lane_id,
  scope: from.scope,
});

/** The id of a run's n-th child: derived, not random, so that a history does not depend on timing (D11). */
export const childRunId = (parent_run_id: string, ordinal: number): string => `${parent_run_id}.${ordinal}`;

/** D11: the id of the root is the part before the first dot. */
export function rootRunIdOf(run_id: string): string {
  // Callers without types may pass any value.
  if (typeof (run_id as unknown) !== 'string') throw usageError('run: it is not a text');
  const end = run_id.indexOf('.');
  return end === -1 ? run_id : run_id.slice(0, end);
}

/** The states of a run, with the names of the lifecycle contract (S4 §3). */
export const RUN_STATES = ['created', 'running', 'completed', 'failed', 'denied', 'cancelled'] as const;
/** One of `RUN_STATES`. */
export type RunState = (typeof RUN_STATES)[number];

/** The four states that a run never leaves (S4-23, S4-24). */
export const TERMINAL_STATES = ['completed', 'failed', 'denied', 'cancelled'] as const satisfies readonly RunState[];
/** One of `TERMINAL_STATES`. */
export type TerminalState = (typeof TERMINAL_STATES)[number];

export const isTerminal = (state: RunState): state is TerminalState =>
  (TERMINAL_STATES as readonly RunState[]).includes(state);

/** The state of a run after an audit event; null if the event does not change it (C47, C48). */
export function stateAfterEvent(event: {
  readonly action_type: string;
  readonly outcome_reason?: string;
}): RunState | null {
  const { action_type, outcome_reason = '' } = event;
  if (action_type !== 'system' || isStatePreserving(outcome_reason)) return null;
  return outcome_reason.split(':', 1)[0] as RunState;
}

/** The purpose of a run (S4 §2). */
export const RUN_KINDS = [
  'orchestrator',
  'agent',
  'tool_gateway',
  'db_write',
  'db_read',
  'promotion',
  'export',
] as const;
/** One of `RUN_KINDS`. */
export type RunKind = (typeof RUN_KINDS)[number];

/** `outcome_reason` of an event that does not change the run's state; it may come after the run's end. */
export const TRANSITION_REFUSED = 'INVALID_STATE_TRANSITION';
export const OUTCOME_RESOLVED = 'OUTCOME_RESOLVED:';
export const CONTENT_READ = 'CONTENT_READ';
export const LEDGER_RESTORED = 'LEDGER_RESTORED';
export const RESTORE_ACKNOWLEDGED = 'RESTORE_ACKNOWLEDGED';
export const KEY_ROTATED = 'KEY_ROTATED';

/** Whether a system event with this reason leaves the state of its run unchanged. */
export const isStatePreserving = (outcome_reason = ''): boolean =>
  outcome_reason === TRANSITION_REFUSED ||
  outcome_reason === CONTENT_READ ||
  outcome_reason === LEDGER_RESTORED ||
  outcome_reason === RESTORE_ACKNOWLEDGED ||
  outcome_reason === KEY_ROTATED ||
  outcome_reason.startsWith(OUTCOME_RESOLVED);

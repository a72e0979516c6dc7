import { usageError } from '../../errors.js';
import type { Person } from '../person.js';
import type { Actor, PolicyVersions, TaxonomyVersions } from '../shapes.js';
import type { RunKind } from './run-state.js';

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

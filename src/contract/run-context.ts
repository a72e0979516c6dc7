import type { Actor, PolicyVersions, TaxonomyVersions } from './shapes.js';
import type { RunKind } from './run-state.js';

/** Who a run is, what it is judged by and what it may touch. Plain JSON; set once, when the run is created. */
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
  readonly role_id: string;
  /** Null for an orchestrator: it governs no lane of its own. */
  readonly lane_id: string | null;
  /** Further scope fields that lanes may require: `coa_version`, `client_session_id`, ... (D12). */
  readonly scope: Readonly<Record<string, string>>;
}

/**
 * The context of a child run: its own id and kind, everything else from the parent (S4-56, U-03).
 * There is no parameter for pins, case or correlation, so a child cannot be given others.
 */
export const childContext = (parent: RunContext, run_id: string, run_kind: RunKind): RunContext => ({
  ...parent,
  run_id,
  run_kind,
  parent_run_id: parent.run_id,
});

/** The id of a run's n-th child: derived, never drawn, so that a history does not depend on timing (D11). */
export const childRunId = (parent_run_id: string, ordinal: number): string => `${parent_run_id}.${ordinal}`;

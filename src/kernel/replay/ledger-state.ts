// The state of runs, and of trees that features have opened, at an entry, as plain data.

import { featureStateMembers } from '../../core/contract/run/feature-vocabulary.js';
import { stepId } from '../../../machines/agent.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { stateAfterEvent, type RunKind, type RunState } from '../../core/contract/run/run-state.js';
import type { Tree } from '../tree.js';
import type { SummarizedRoot } from '../tree-feature.js';

/** The state of one run. */
export interface RunSnapshot {
  readonly run_id: string;
  readonly tree_id: string;
  readonly kind: RunKind;
  readonly role_id: string;
  readonly lane_id: string | null;
  readonly state: RunState;
  /** Why the run has ended; null while it is live. */
  readonly reason: string | null;
  /** Log indexes of the entry that created the run, and of the entry that brought it into its state. */
  readonly created: number;
  readonly since: number;
  /** For a live agent run: how many steps it has started, including the current one. */
  readonly step: number | null;
  /** For a live run: its position inside its state. For an agent in a step, the phase: `AUTHORIZE.gatheringFacts`. */
  readonly at: string | null;
}

/**
 * The states of the trees that features have opened: each such feature merges a member into this interface, named as in
 * its `RootSummary`.
 */
export interface RootSummaries {}

/** The state of a tree that a feature has opened. */
export interface PlacedSummary extends SummarizedRoot {
  readonly tree_id: string;
  /** The member of the ledger's state that lists it. */
  readonly member: string;
}

/** The state of everything at one entry of the log. */
export interface LedgerState extends RootSummaries {
  /** The requested entry. */
  readonly until: number;
  /** The last entry that the same input caused. These entries are atomic, so there is no state between them. */
  readonly through: number;
  /** The time of that input. */
  readonly time: string | null;
  readonly trees: { readonly begun: number; readonly ended: number };
  /** In order of creation. */
  readonly runs: readonly RunSnapshot[];
  /**
   * The live trees that are known from entries alone, because content that they need is unavailable, or because this
   * installation cannot evaluate their policy. The positions of their runs inside their states, and the states of their
   * features, are unknown. Absent if empty.
   */
  readonly not_recomputed?: readonly string[];
  /** What to install to fold the trees, also ended ones, that this installation cannot evaluate. Absent: none. */
  readonly needs?: string;
}

/** Applies an entry to the state of its run; null if the entry does not affect it. */
export function applyEntry(
  entry: Entry,
  log_index: number,
  before: (run_id: string) => RunSnapshot | null,
): RunSnapshot | null {
  if (entry.type === 'run_created') {
    const { run_id, run_kind: kind, role_id, lane_id } = entry.body;
    const place = { created: log_index, since: log_index, step: null, at: null };
    return { run_id, tree_id: entry.tree_id, kind, role_id, lane_id, state: 'created', reason: null, ...place };
  }
  const state = entry.type === 'audit_event' ? stateAfterEvent(entry.body) : null;
  if (entry.type !== 'audit_event' || state === null) return null;
  const { run_id, outcome_reason = '' } = entry.body;
  const run = before(run_id);
  if (run === null) return null;
  return { ...run, state, since: log_index, reason: state === 'running' ? null : outcome_reason };
}

/** A live run, with its position in its folded tree. */
export function placeRun(run: RunSnapshot, tree: Tree): RunSnapshot {
  const actorState = tree.actorState(run.run_id);
  const step = run.kind === 'agent' ? tree.actorState(stepId(run.run_id)) : null;
  const steps = actorState?.memory['steps'];
  return {
    ...run,
    step: run.kind === 'agent' && typeof steps === 'number' ? steps : null,
    at: (step ?? actorState)?.path.join('.') ?? null,
  };
}

/** The state of a tree that a feature has opened; null for a run tree. */
export function summaryOf({ tree_id, rootFeature, rootMemory }: Tree): PlacedSummary | null {
  const rules = rootFeature?.root?.summary;
  const summarized = rules?.of(rootMemory) ?? null;
  return rules === undefined || summarized === null ? null : { tree_id, member: rules.member, ...summarized };
}

/** The summaries by the members that list them. Every declared feature has its member, also without a tree. */
export function listSummaries(summaries: readonly PlacedSummary[]): RootSummaries {
  const lists = featureStateMembers().map((name) => [
    name,
    summaries.filter(({ member }) => member === name).map(({ summary }) => summary),
  ]);
  return Object.fromEntries(lists) as RootSummaries;
}

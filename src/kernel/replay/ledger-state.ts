// The state of runs, and of trees that features have opened, at an entry, as plain data.

import { featureStateMembers } from '../../core/contract/run/feature-vocabulary.js';
import { stepId } from '../../../machines/agent.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { stateAfterEvent, type RunKind, type RunState, isTerminal } from '../../core/contract/run/run-context.js';
import type { Tree } from '../tree.js';
import type { SummarizedRoot } from '../tree-feature.js';
import { sha256 } from '../../core/contract/hash.js';
import type { ReplayPoint, HistorySnapshot } from '../../core/ledger/history-cache.js';

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
function applyEntry(
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
function placeRun(run: RunSnapshot, tree: Tree): RunSnapshot {
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
function summaryOf({ tree_id, rootFeature, rootMemory }: Tree): PlacedSummary | null {
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

// Maintains a replay point as entries arrive: the live runs and trees, and what has ended since the previous point.
// Only a folded tree knows the position of a live run inside its state, and the state of its feature.

/** A tree that has not ended. */
interface LiveTree {
  /** The log index of its first entry. */
  readonly first: number;
  /** The size of the point at which its last snapshot was stored, possibly an older point; null before the first. */
  readonly point: number | null;
  /** Its state at that point; null for a run tree. */
  readonly summary: PlacedSummary | null;
  /** Set if the tree cannot be folded further, because content that it needs is unavailable. */
  readonly lost?: true;
}

/** The archived part of a log: its first entries, and whole trees. */
export interface ArchivedPrefix {
  readonly size: number;
  readonly trees: number;
}
export const NOTHING_ARCHIVED: ArchivedPrefix = { size: 0, trees: 0 };

/** The stored form of what is live at a point. */
interface StoredLiveState {
  /** The archived part when the point was stored; absent in points from before archives existed. */
  readonly archived?: number;
  readonly leaf_hash: string;
  readonly time: string | null;
  readonly begun: number;
  readonly runs: readonly RunSnapshot[];
  readonly trees: readonly (readonly [tree_id: string, tree: LiveTree])[];
}

/** What ended between two points: runs, and trees that features have opened. */
export interface EndedItems {
  readonly runs: readonly RunSnapshot[];
  readonly summaries: readonly PlacedSummary[];
}

/** The stored form, with the size of the previous point, which has everything that ended before. */
export interface StoredEndedItems extends EndedItems {
  readonly since: number;
}

export class ReplayPointBuilder {
  /** Runs by tree. */
  readonly #runs = new Map<string, Map<string, RunSnapshot>>();
  #trees = new Map<string, LiveTree>();
  #ended: { runs: RunSnapshot[]; summaries: PlacedSummary[] } = { runs: [], summaries: [] };
  readonly #archived: number;
  #leaf_hash = '';
  /** The size of the point before the next one. */
  #since: number;
  #size: number;
  #begun: number;
  #time: string | null = null;

  /** @param archived what precedes the log, which then begins there with no live tree */
  constructor({ size, trees }: ArchivedPrefix = NOTHING_ARCHIVED) {
    this.#archived = size;
    this.#since = size;
    this.#size = size;
    this.#begun = trees;
  }

  /** Continues from a point that matches the ledger. */
  resumeFrom({ size, live }: ReplayPoint): void {
    const { leaf_hash, time, begun, runs, trees } = JSON.parse(live) as StoredLiveState;
    this.#since = size;
    this.#size = size;
    this.#leaf_hash = leaf_hash;
    this.#time = time;
    this.#begun = begun;
    this.#trees = new Map(trees);
    for (const run of runs) this.#set(run);
  }

  /** The number of entries that were taken. */
  get size(): number {
    return this.#size;
  }

  get time(): string | null {
    return this.#time;
  }

  get trees(): { readonly begun: number; readonly ended: number } {
    return { begun: this.#begun, ended: this.#begun - this.#trees.size };
  }

  /** What has ended since the last point that was restored or created. */
  get ended(): EndedItems {
    return this.#ended;
  }

  /** The live runs, with the positions that were set last. */
  get live(): readonly RunSnapshot[] {
    return [...this.#runs.values()].flatMap((runs) => [...runs.values()]);
  }

  /** The trees of features that have not ended. */
  get summaries(): readonly PlacedSummary[] {
    return [...this.#trees.values()].flatMap(({ summary }) => summary ?? []);
  }

  /** The tree, if it has not ended. */
  tree(tree_id: string): LiveTree | null {
    return this.#trees.get(tree_id) ?? null;
  }

  /** The live trees that cannot be folded. */
  get unfoldable(): readonly string[] {
    return [...this.#trees].flatMap(([tree_id, { lost }]) => (lost === true ? [tree_id] : []));
  }

  isUnfoldable(tree_id: string): boolean {
    return this.#trees.get(tree_id)?.lost === true;
  }

  /** From now on this tree is known from entries alone. */
  markUnfoldable(tree_id: string): void {
    const known = this.#trees.get(tree_id);
    if (known !== undefined) this.#trees.set(tree_id, { ...known, lost: true });
  }

  /** Records the effect of an entry. */
  recordEntry(entry: Entry, log_index: number): void {
    const { tree_id } = entry;
    if (entry.type === 'input') {
      this.#time = entry.body.time;
      if (entry.seq > 0 || this.#trees.has(tree_id)) return;
      this.#begun += 1;
      this.#trees.set(tree_id, { first: log_index, point: null, summary: null });
      return;
    }
    const run = applyEntry(entry, log_index, (run_id) => this.#runs.get(tree_id)?.get(run_id) ?? null);
    if (run === null) return;
    if (!isTerminal(run.state)) {
      this.#set(run);
      return;
    }
    const others = this.#runs.get(tree_id);
    others?.delete(run.run_id);
    if (others?.size === 0) this.#runs.delete(tree_id);
    this.#ended.runs.push({ ...run, step: null, at: null });
    // The root of a tree ends last. Later entries of the tree change no state.
    if (run.run_id === tree_id) this.#trees.delete(tree_id);
  }

  /** Sets the size up to which entries were taken. */
  advanceTo(size: number, leaf_hash: string): void {
    this.#size = size;
    this.#leaf_hash = leaf_hash;
  }

  /** Updates the positions of a tree's runs, and its summary. */
  placeTree(tree: Tree): void {
    const known = this.#trees.get(tree.tree_id);
    if (known === undefined) return;
    const summary = summaryOf(tree);
    if (tree.hasEnded) {
      this.#trees.delete(tree.tree_id);
      if (summary !== null) this.#ended.summaries.push(summary);
      return;
    }
    this.#trees.set(tree.tree_id, { ...known, summary });
    for (const run of this.#runs.get(tree.tree_id)?.values() ?? []) this.#set(placeRun(run, tree));
  }

  /** The snapshot of a tree from which a fold can continue after the next point. */
  createSnapshot(tree: Tree): HistorySnapshot | null {
    const known = this.#trees.get(tree.tree_id);
    if (known === undefined) return null;
    this.#trees.set(tree.tree_id, { ...known, point: this.#size });
    const text = JSON.stringify(tree.snapshot());
    return { tree_id: tree.tree_id, size: this.#size, text, sha256: sha256(text) };
  }

  /** Creates a point with the current state. All trees that have changed must have been placed before. */
  createPoint(): ReplayPoint {
    const stored: StoredLiveState = {
      archived: this.#archived,
      leaf_hash: this.#leaf_hash,
      time: this.#time,
      begun: this.#begun,
      runs: this.live,
      trees: [...this.#trees],
    };
    const live = JSON.stringify(stored);
    const ended = JSON.stringify({ since: this.#since, ...this.#ended } satisfies StoredEndedItems);
    this.#ended = { runs: [], summaries: [] };
    this.#since = this.#size;
    return { size: this.#size, live, live_sha256: sha256(live), ended, ended_sha256: sha256(ended) };
  }

  #set(run: RunSnapshot): void {
    const others = this.#runs.get(run.tree_id);
    if (others === undefined) this.#runs.set(run.tree_id, new Map([[run.run_id, run]]));
    else others.set(run.run_id, run);
  }
}

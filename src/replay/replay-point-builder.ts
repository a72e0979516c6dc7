// What a point of the past says, kept up as entries come: which runs and trees live, and what has ended since the point
// before. Where a live run stands inside its state, and a session, only its tree can tell.

import type { Entry } from '../contract/run/entry.js';
import { sha256 } from '../contract/hash.js';
import { isTerminal } from '../contract/run/run-state.js';
import type { Tree } from '../kernel/tree.js';
import type { ReplayPoint, HistorySnapshot } from '../ports/ledger/history-cache.js';
import { placeRun, applyEntry, sessionSnapshotOf, type RunSnapshot, type SessionSnapshot } from './ledger-state.js';

/** A tree that has not ended. */
export interface LiveTree {
  /** The log index of its first entry. */
  readonly first: number;
  /** Under which size its last snapshot is kept, which may be older than the point; null before the first. */
  readonly point: number | null;
  /** As it stood at the point. */
  readonly session: SessionSnapshot | null;
  /** It cannot be folded any more: content that it needs is not to be had. */
  readonly lost?: true;
}

/** How much of a log is archived: its first entries, and whole trees. */
export interface ArchivedPrefix {
  readonly size: number;
  readonly trees: number;
}
export const NOTHING_ARCHIVED: ArchivedPrefix = { size: 0, trees: 0 };

/** What lives at a point, as it is written down. */
interface StoredLiveState {
  /** What was archived when it was written; absent in what is older than archives. */
  readonly archived?: number;
  readonly leaf_hash: string;
  readonly time: string | null;
  readonly begun: number;
  readonly runs: readonly RunSnapshot[];
  readonly trees: readonly (readonly [tree_id: string, tree: LiveTree])[];
}

/** What ended between two points. */
export interface EndedItems {
  readonly runs: readonly RunSnapshot[];
  readonly sessions: readonly SessionSnapshot[];
}

/** As it is written down, with the size of the point before: what had ended by that is there. */
export interface StoredEndedItems extends EndedItems {
  readonly since: number;
}

export class ReplayPointBuilder {
  /** By tree. */
  readonly #runs = new Map<string, Map<string, RunSnapshot>>();
  #trees = new Map<string, LiveTree>();
  #ended: { runs: RunSnapshot[]; sessions: SessionSnapshot[] } = { runs: [], sessions: [] };
  readonly #archived: number;
  #leaf_hash = '';
  /** The size of the point that the next one rests on. */
  #since: number;
  #size: number;
  #begun: number;
  #time: string | null = null;

  /** @param archived what comes before the log: it begins there, with no tree alive */
  constructor({ size, trees }: ArchivedPrefix = NOTHING_ARCHIVED) {
    this.#archived = size;
    this.#since = size;
    this.#size = size;
    this.#begun = trees;
  }

  /** Goes on from a point that fits the ledger. */
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

  /** How many entries of the log it has seen. */
  get size(): number {
    return this.#size;
  }

  get time(): string | null {
    return this.#time;
  }

  get trees(): { readonly begun: number; readonly ended: number } {
    return { begun: this.#begun, ended: this.#begun - this.#trees.size };
  }

  /** What has ended since the point that it was taken up at, or that was put down last. */
  get ended(): EndedItems {
    return this.#ended;
  }

  /** The runs that live, as far as they were placed. */
  get live(): readonly RunSnapshot[] {
    return [...this.#runs.values()].flatMap((runs) => [...runs.values()]);
  }

  /** The sessions that are not over. */
  get sessions(): readonly SessionSnapshot[] {
    return [...this.#trees.values()].flatMap(({ session }) => session ?? []);
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

  /** From now on entries alone tell of this tree. */
  markUnfoldable(tree_id: string): void {
    const known = this.#trees.get(tree_id);
    if (known !== undefined) this.#trees.set(tree_id, { ...known, lost: true });
  }

  /** Takes what an entry tells. */
  recordEntry(entry: Entry, log_index: number): void {
    const { tree_id } = entry;
    if (entry.type === 'input') {
      this.#time = entry.body.time;
      if (entry.seq > 0 || this.#trees.has(tree_id)) return;
      this.#begun += 1;
      this.#trees.set(tree_id, { first: log_index, point: null, session: null });
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
    // The root of a tree is its last; what may still be said to the tree moves nothing.
    if (run.run_id === tree_id) this.#trees.delete(tree_id);
  }

  /** Says how far all that was taken goes. */
  advanceTo(size: number, leaf_hash: string): void {
    this.#size = size;
    this.#leaf_hash = leaf_hash;
  }

  /** Says where the runs of a tree, or its session, stand now. */
  placeTree(tree: Tree): void {
    const known = this.#trees.get(tree.tree_id);
    if (known === undefined) return;
    const session = sessionSnapshotOf(tree);
    if (tree.hasEnded) {
      this.#trees.delete(tree.tree_id);
      if (session !== null) this.#ended.sessions.push(session);
      return;
    }
    this.#trees.set(tree.tree_id, { ...known, session });
    for (const run of this.#runs.get(tree.tree_id)?.values() ?? []) this.#set(placeRun(run, tree));
  }

  /** The snapshot of a tree, by which it can be taken up behind the next point. */
  createSnapshot(tree: Tree): HistorySnapshot | null {
    const known = this.#trees.get(tree.tree_id);
    if (known === undefined) return null;
    this.#trees.set(tree.tree_id, { ...known, point: this.#size });
    const text = JSON.stringify(tree.snapshot());
    return { tree_id: tree.tree_id, size: this.#size, text, sha256: sha256(text) };
  }

  /** Puts down where everything stands. All trees that have changed must be placed. */
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
    this.#ended = { runs: [], sessions: [] };
    this.#since = this.#size;
    return { size: this.#size, live, live_sha256: sha256(live), ended, ended_sha256: sha256(ended) };
  }

  #set(run: RunSnapshot): void {
    const others = this.#runs.get(run.tree_id);
    if (others === undefined) this.#runs.set(run.tree_id, new Map([[run.run_id, run]]));
    else others.set(run.run_id, run);
  }
}

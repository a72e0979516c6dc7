// The fold of a whole log, from its first entry or from a point that was remembered: which runs live, which have ended,
// and where each tree stands. Of trees that have ended nothing stays in memory, and of the others only so many.

import { LedgerError } from '../errors.js';
import { sha256 } from '../contract/hash.js';
import { isTerminal } from '../contract/run-state.js';
import { Fold, type Difference } from '../kernel/fold.js';
import { restoreTree, type TreeSnapshot } from '../kernel/tree.js';
import { needed, notToBeHad } from '../ledger/withheld.js';
import type { HistoryCache, HistoryPoint, HistorySnapshot } from '../ports/history-cache.js';
import type { ReplayEntry, ReplaySource } from './replay.js';
import { placed, runAfter, sessionAt, type RunAt, type SessionAt } from './state.js';

/** How many trees stay in memory from one point to the next. */
const FOLDS_KEPT = 512;

/** A tree that has not ended. */
export interface LiveTree {
  /** The log index of its first entry. */
  readonly first: number;
  /** The size of the point at which its snapshot was taken; null before the first. */
  readonly point: number | null;
  /** As it stood at that point. */
  readonly session: SessionAt | null;
}

/** What lives at a point, as it is written down. */
interface Live {
  readonly leaf_hash: string;
  readonly time: string | null;
  readonly begun: number;
  readonly runs: readonly RunAt[];
  readonly trees: readonly (readonly [tree_id: string, tree: LiveTree])[];
}

/** What ended between two points. */
export interface Ended {
  readonly runs: readonly RunAt[];
  readonly sessions: readonly SessionAt[];
}

export class History {
  readonly #source: ReplaySource;
  readonly #cache: HistoryCache | null;
  readonly #folds = new Map<string, Fold>();
  readonly #changed = new Set<string>();
  #runs = new Map<string, RunAt>();
  #trees = new Map<string, LiveTree>();
  #ended: { runs: RunAt[]; sessions: SessionAt[] } = { runs: [], sessions: [] };
  /** Whose entries came last: only this tree can be in the middle of what an input caused. */
  #last: Fold | null = null;
  #leaf_hash = '';
  #size = 0;
  #begun = 0;
  #time: string | null = null;

  constructor(source: ReplaySource, cache: HistoryCache | null) {
    this.#source = source;
    this.#cache = cache;
  }

  /** Goes on from a point that fits the ledger. */
  takeUp({ size, live }: HistoryPoint): void {
    const { leaf_hash, time, begun, runs, trees } = JSON.parse(live) as Live;
    this.#size = size;
    this.#leaf_hash = leaf_hash;
    this.#time = time;
    this.#begun = begun;
    this.#runs = new Map(runs.map((run) => [run.run_id, run]));
    this.#trees = new Map(trees);
  }

  /** How many entries of the log it has folded. */
  get size(): number {
    return this.#size;
  }

  get time(): string | null {
    return this.#time;
  }

  get trees(): { readonly begun: number; readonly ended: number } {
    return { begun: this.#begun, ended: this.#begun - this.#trees.size };
  }

  /** Whether the last input has all that it caused. */
  get settled(): boolean {
    return this.#last?.settled !== false;
  }

  /** What has ended since the point that it was taken up at, or that was put down last. */
  get ended(): Ended {
    return this.#ended;
  }

  /** The runs that live, each where it stands. */
  get live(): readonly RunAt[] {
    return [...this.#runs.values()].map((run) => this.#placed(run));
  }

  /** The sessions that are not over. */
  get sessions(): readonly SessionAt[] {
    return [...this.#trees].flatMap(([tree_id, known]) => this.#session(tree_id, known) ?? []);
  }

  /** Takes the next entry. @throws LedgerError LEDGER_TAMPERED when the machines would not have spoken it */
  async take(entry: ReplayEntry & { readonly leaf_hash?: string }): Promise<void> {
    const fold = this.#folds.get(entry.tree_id) ?? (await this.#fold(entry));
    const artifacts = entry.type === 'input' ? needed(await this.#source.artifactsOf(entry.log_index)) : [];
    const taken = fold.take(entry, artifacts);
    if ('difference' in taken) throw tampered(entry, taken.difference);
    if ('withheld' in taken) throw notToBeHad(taken.withheld);
    this.#last = fold;
    this.#size = entry.log_index + 1;
    this.#leaf_hash = entry.leaf_hash ?? '';
    this.#changed.add(entry.tree_id);
    for (const { entry: caused } of taken.decision?.entries ?? []) {
      if (caused.type === 'input') this.#time = caused.body.time;
      const run = runAfter(
        caused,
        entry.log_index + caused.seq - entry.seq,
        (run_id) => this.#runs.get(run_id) ?? null,
      );
      if (run !== null) this.#note(run);
    }
    if (fold.settled && fold.tree.ended) this.#close(entry.tree_id, fold);
  }

  /** Puts down where everything stands, and forgets what a point remembers from now on. Only when settled. */
  point(): { readonly point: HistoryPoint; readonly snapshots: readonly HistorySnapshot[] } {
    const size = this.#size;
    const snapshots = [...this.#changed].flatMap((tree_id) => {
      const known = this.#trees.get(tree_id);
      const fold = this.#folds.get(tree_id);
      if (known === undefined || fold === undefined) return [];
      this.#trees.set(tree_id, { ...known, point: size, session: sessionAt(fold.tree) });
      const text = JSON.stringify(fold.tree.snapshot());
      return [{ tree_id, size, text, sha256: sha256(text) }];
    });
    this.#runs = new Map(this.live.map((run) => [run.run_id, run]));
    const written: Live = {
      leaf_hash: this.#leaf_hash,
      time: this.#time,
      begun: this.#begun,
      runs: [...this.#runs.values()],
      trees: [...this.#trees],
    };
    const live = JSON.stringify(written);
    const ended = JSON.stringify(this.#ended);
    this.#ended = { runs: [], sessions: [] };
    this.#changed.clear();
    if (this.#folds.size > FOLDS_KEPT) this.#folds.clear();
    for (const [tree_id, { tree }] of this.#folds) if (tree.ended) this.#folds.delete(tree_id);
    return { point: { size, live, live_sha256: sha256(live), ended, ended_sha256: sha256(ended) }, snapshots };
  }

  #note(run: RunAt): void {
    if (!isTerminal(run.state)) {
      this.#runs.set(run.run_id, run);
      return;
    }
    this.#runs.delete(run.run_id);
    this.#ended.runs.push({ ...run, step: null, at: null });
  }

  /** A tree has ended: what may still be said to it moves nothing. Its fold stays until the next point. */
  #close(tree_id: string, fold: Fold): void {
    const session = this.#trees.delete(tree_id) ? sessionAt(fold.tree) : null;
    if (session !== null) this.#ended.sessions.push(session);
  }

  #placed(run: RunAt): RunAt {
    const fold = this.#changed.has(run.tree_id) ? this.#folds.get(run.tree_id) : undefined;
    return fold === undefined ? run : placed(run, fold.tree);
  }

  #session(tree_id: string, { session }: LiveTree): SessionAt | null {
    const fold = this.#changed.has(tree_id) ? this.#folds.get(tree_id) : undefined;
    return fold === undefined ? session : sessionAt(fold.tree);
  }

  /** The fold that takes this entry: a new one, one from the last point, or one from the tree's first entry. */
  async #fold(entry: ReplayEntry): Promise<Fold> {
    const { tree_id, seq, log_index } = entry;
    if (seq === 0 && !this.#trees.has(tree_id)) {
      this.#begun += 1;
      this.#trees.set(tree_id, { first: log_index, point: null, session: null });
    }
    const fold = (await this.#restored(tree_id)) ?? (await foldedUpTo(this.#source, tree_id, seq));
    this.#folds.set(tree_id, fold);
    return fold;
  }

  async #restored(tree_id: string): Promise<Fold | null> {
    const known = this.#trees.get(tree_id);
    if (known === undefined || known.point === null || this.#cache === null) return null;
    const stored = await this.#cache.snapshot(tree_id, known.point);
    if (stored === null || sha256(stored.text) !== stored.sha256) return null;
    const policies = needed(await this.#source.artifactsOf(known.first));
    return new Fold(restoreTree(JSON.parse(stored.text) as TreeSnapshot, policies));
  }
}

/** A tree folded from its first entry, as it stands before this one. @throws LedgerError LEDGER_TAMPERED */
async function foldedUpTo(source: ReplaySource, tree_id: string, seq: number): Promise<Fold> {
  const fold = new Fold(tree_id);
  if (seq === 0) return fold;
  for await (const entry of source.tree(tree_id)) {
    if (entry.seq >= seq) break;
    const taken = fold.take(entry, entry.type === 'input' ? needed(await source.artifactsOf(entry.log_index)) : []);
    if ('difference' in taken) throw tampered(entry, taken.difference);
    if ('withheld' in taken) throw notToBeHad(taken.withheld);
  }
  return fold;
}

const tampered = ({ log_index }: ReplayEntry, { tree_id, seq, rule }: Difference): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `tree ${tree_id} does not fold at entry ${seq} (${rule}, log index ${log_index}); ` +
      `run \`turnpike replay ${tree_id}\` for the difference`,
  });

import type { Decision, Timer } from '../../kernel/decision.js';
import { Tree, type KnownRun, isAwaitingRetry } from '../../kernel/tree.js';
import type { LedgerStore, StoredSnapshot, TreeRecoveryHint } from '../ports/ledger/ledger-store.js';
import type { Log } from '../ports/log.js';
import { isUnfoldable } from '../failures.js';
import { foldOn, foldTree, foldTrees, type FoldedTree } from './fold-trees.js';
import { nextSnapshotSeq, snapshotOf, type FoldOptions, SNAPSHOT_ENTRIES } from './snapshots.js';
import type { TickObserver } from '../tick/tick-observer.js';
import type { LoadedTimers } from '../timers.js';
import type { EngineParts } from '../tree-engine.js';
import { isUnsupported } from '../../kernel/pinned-policy.js';

export const LIVE_TREES_MAX = 1_024;

export interface LiveTreesOptions extends FoldOptions {
  /** Called with a tree before it is evicted. */
  readonly onEvict?: ((tree: Tree) => void) | undefined;
  /** The stored lengths of trees. Absent if no other worker extends them. */
  readonly treeLengths?: ((tree_ids: readonly string[]) => Promise<readonly number[]>) | undefined;
  readonly observer?: Pick<TickObserver, 'now' | 'onFolded'> | undefined;
}

/**
 * The trees in memory. Any other tree can be folded again from the ledger with the same result, so evicting a tree
 * costs only time.
 */
export class LiveTrees {
  readonly #store: LedgerStore;
  readonly #max: number;
  readonly #snapshotEntries: number;
  readonly #options: LiveTreesOptions;
  /** In order of use, least recently used first. */
  readonly #trees = new Map<string, Tree>();
  /** The seq at which the next snapshot of a tree is due, if it has one already. */
  readonly #due = new Map<string, number>();
  readonly #recoveryHints = new Map<string, KnownRecoveryHint>();
  /** Stays when memory is cleared: what a process cannot evaluate, it cannot evaluate after a restart of the engine. */
  readonly later = new LaterTrees();

  constructor(store: LedgerStore, max: number, snapshotEntries: number, options: LiveTreesOptions = {}) {
    this.#options = options;
    this.#store = store;
    this.#max = max;
    this.#snapshotEntries = snapshotEntries;
  }

  get size(): number {
    return this.#trees.size;
  }

  /** The ids of the trees in memory. */
  get ids(): Iterable<string> {
    return this.#trees.keys();
  }

  /** The tree if it is in memory, without counting as a use. */
  readonly peek = (tree_id: string): Tree | null => this.#trees.get(tree_id) ?? null;

  /** The tree if it is in memory; counts as a use. */
  getLoaded(tree_id: string): Tree | null {
    const tree = this.#trees.get(tree_id) ?? null;
    if (tree !== null) this.setMostRecent(tree);
    return tree;
  }

  /** @returns null if the ledger has no such tree @throws LedgerError LEDGER_TAMPERED if it does not fold */
  async get(tree_id: string): Promise<Tree | null> {
    const loaded = this.getLoaded(tree_id);
    if (loaded !== null) return loaded;
    const since = this.#options.observer?.now() ?? 0;
    const folded = await foldTree(this.#store, tree_id, this.#options).catch((error: unknown) => {
      this.later.note(tree_id, error);
      throw error;
    });
    if (folded === null) return null;
    this.#options.observer?.onFolded(1, since);
    return this.#addFolded(folded);
  }

  /**
   * Folds the trees that are not in memory, with few queries. A tree that does not fold stays absent; `get` then throws
   * the reason.
   */
  async load(tree_ids: readonly string[]): Promise<void> {
    const missing = tree_ids.filter((tree_id) => !this.#trees.has(tree_id));
    const since = this.#options.observer?.now() ?? 0;
    const found = await foldTrees(this.#store, missing, this.#options);
    if (found.length > 0) this.#options.observer?.onFolded(found.length, since);
    for (const folded of found) this.#addFolded(folded);
  }

  /**
   * Folds a tree again whose memory differs from the ledger. @returns its decisions from entry `since` on
   * @throws LedgerError as `get`
   */
  async foldAgain(tree_id: string, since: number): Promise<readonly Decision[]> {
    this.drop(tree_id);
    const decisions: Decision[] = [];
    const folded = await foldTree(this.#store, tree_id, this.#options, { since, decisions });
    if (folded !== null) this.#addFolded(folded);
    return decisions;
  }

  /**
   * Adds the entries that others have appended to trees in memory.
   * @returns the decisions of each tree that has grown. A tree that does not fold is dropped; `get` throws the reason
   */
  async refresh(tree_ids: readonly string[]): Promise<ReadonlyMap<string, readonly Decision[]>> {
    const grown = new Map<string, readonly Decision[]>();
    const { treeLengths } = this.#options;
    const known = tree_ids.flatMap((tree_id) => this.#trees.get(tree_id) ?? []);
    if (treeLengths === undefined || known.length === 0) return grown;
    const lengths = await treeLengths(known.map(({ tree_id }) => tree_id));
    for (const [index, tree] of known.entries()) {
      if (lengths[index] === tree.head.seq) continue;
      const decisions = await foldOn(this.#store, tree).catch(() => null);
      this.#recoveryHints.delete(tree.tree_id);
      if (decisions === null) this.drop(tree.tree_id);
      else grown.set(tree.tree_id, decisions);
    }
    return grown;
  }

  /** The timers of these trees, as `TimerActions.load` returns them. */
  async timersOf(tree_ids: readonly string[], log: Log): Promise<LoadedTimers> {
    const timers = new Map<string, readonly Timer[] | null>();
    await this.load(tree_ids);
    for (const tree_id of tree_ids) {
      try {
        timers.set(tree_id, (await this.get(tree_id))?.timers ?? []);
      } catch (error) {
        log.error('the timers of a run tree cannot be read', { tree_id, error });
        if (!isUnfoldable(error)) timers.set(tree_id, null);
      }
    }
    return timers;
  }

  /** Creates a new tree in memory. */
  open(tree_id: string): Tree {
    const tree = new Tree(tree_id, this.#options.interpretation);
    this.#recoveryHints.set(tree_id, NEW_TREE_RECOVERY_HINT);
    this.setMostRecent(tree);
    return tree;
  }

  /** Below half of the limit a tree keeps its place, because moving costs more than the look-up. */
  setMostRecent(tree: Tree): void {
    if (this.#trees.size < this.#max / 2 && this.#trees.get(tree.tree_id) === tree) return;
    this.#trees.delete(tree.tree_id);
    this.#trees.set(tree.tree_id, tree);
  }

  /** Drops a tree whose memory may differ from the ledger. */
  drop(tree_id: string): void {
    this.#trees.get(tree_id)?.stop();
    this.#trees.delete(tree_id);
    this.#due.delete(tree_id);
    this.#recoveryHints.delete(tree_id);
  }

  /** Drops all trees: any of them may differ from the ledger. */
  clear(): void {
    this.stop();
    for (const known of [this.#trees, this.#due, this.#recoveryHints]) known.clear();
  }

  /** Stops the actors of all trees, which stay readable. */
  stop(): void {
    for (const tree of this.#trees.values()) tree.stop();
  }

  /** A snapshot if the tree has grown enough since its last one, to commit with its next entries; else null. */
  dueSnapshot(tree: Tree): StoredSnapshot | null {
    const { key } = this.#options;
    if (key === undefined || tree.head.seq < (this.#due.get(tree.tree_id) ?? this.#snapshotEntries)) return null;
    const snapshot = snapshotOf(tree, key);
    this.#due.set(tree.tree_id, nextSnapshotSeq(snapshot, this.#snapshotEntries));
    return snapshot;
  }

  /** The recovery hint to store with these decisions; null if unchanged. */
  nextRecoveryHint(tree: Tree, decisions: readonly Decision[]): TreeRecoveryHint | null {
    const stored = this.#recoveryHints.get(tree.tree_id) ?? null;
    const isShared = this.#options.treeLengths !== undefined;
    const { recoveryHint: recovery, known } = nextRecoveryHint(tree, stored, decisions, isShared);
    this.#recoveryHints.set(tree.tree_id, known);
    return recovery;
  }

  /** Evicts the least recently used trees above the limit. Call it only between commits. */
  evict(isBusy: (tree: Tree) => boolean): void {
    for (const tree of this.#trees.values()) {
      if (this.#trees.size <= this.#max) return;
      if (isBusy(tree)) continue;
      this.#options.onEvict?.(tree);
      this.drop(tree.tree_id);
    }
  }

  #addFolded({ tree, snapshot }: FoldedTree): Tree {
    if (snapshot !== null) this.#due.set(tree.tree_id, nextSnapshotSeq(snapshot, this.#snapshotEntries));
    this.setMostRecent(tree);
    return tree;
  }
}

// What a start must know of an open tree without folding it. Appends and recovery compute it when it changes.

/** The live agent runs of a tree. */
export const liveAgents = (tree: Tree): readonly KnownRun[] =>
  tree.runs.filter(({ context }) => context.run_kind === 'agent' && tree.isLive(context.run_id));

/** Whether a run of the tree ends with this process: its caller would be gone, or no input could ever end the tree. */
function shouldEndWithProcess(tree: Tree): boolean {
  if (tree.hasEnded) return false;
  const agents = liveAgents(tree);
  return agents.some(({ link }) => link === 'attached') || (agents.length === 0 && isAbandoned(tree));
}

/**
 * Whether a tree has no live agent and waits for nothing. Promotions and exports wait for approvers, the trees of
 * features for their callers.
 */
export const isAbandoned = (tree: Tree): boolean =>
  !tree.hasEnded && tree.pendingHighRiskRuns.length === 0 && tree.rootFeature === null;

/** The stored hint of a tree in memory, so that an append writes it only if it changes. */
interface KnownRecoveryHint {
  /** The stored hint; null if unknown. */
  readonly stored: TreeRecoveryHint | null;
  /** The last computed `shouldEndWithProcess`; null if not computed yet. */
  readonly ends: boolean | null;
}

/** A new tree counts as unfinished (`TreeAppend.recoveryHint`). */
const NEW_TREE_RECOVERY_HINT: KnownRecoveryHint = { stored: { unfinished: true, wake_at: null }, ends: null };

/** Inputs that neither start nor end a run with a caller, unless their decision ends one. */
const STEP_INPUTS: ReadonlySet<string> = new Set(['proposal', 'facts', 'result']);

/**
 * Computes the recovery hint for an append.
 * @param decisions the decisions of the append; the tree includes all of them
 * @param alwaysWakes whether the time of the next timer is stored for unfinished trees too
 * @returns the hint to store, or null if the store already has it; and what is known afterwards
 */
export function nextRecoveryHint(
  tree: Tree,
  known: KnownRecoveryHint | null,
  decisions: readonly Decision[],
  alwaysWakes = false,
): { readonly recoveryHint: TreeRecoveryHint | null; readonly known: KnownRecoveryHint } {
  const ends = known?.ends == null || decisions.some(hasRunChange) ? shouldEndWithProcess(tree) : known.ends;
  const unfinished = ends || tree.pending.length > 0 || isAwaitingRetry(tree);
  const stored = known?.stored ?? null;
  // If the next start folds the tree, it sets the timers too.
  const wake_at = unfinished && !alwaysWakes ? null : earliestTimer(tree);
  if (stored !== null && stored.unfinished === unfinished && !isBefore(wake_at, stored.wake_at)) {
    return { recoveryHint: null, known: { stored, ends } };
  }
  const recovery = { unfinished, wake_at };
  return { recoveryHint: recovery, known: { stored: recovery, ends } };
}

function hasRunChange({ ended, entries: [first] }: Decision): boolean {
  if (ended.length > 0) return true;
  return first?.entry.type !== 'input' || !STEP_INPUTS.has(first.entry.body.kind);
}

/** Timestamps have one fixed form, so comparing their texts compares times. */
function earliestTimer({ timers }: Tree): string | null {
  return timers.reduce<string | null>((first, { at }) => (first === null || at < first ? at : first), null);
}

const isBefore = (one: string | null, other: string | null): boolean => one !== null && (other === null || one < other);

/** The trees of an engine. @param treeLengths see `LiveTreesOptions` */
export function openLiveTrees(parts: EngineParts, treeLengths: LiveTreesOptions['treeLengths']): LiveTrees {
  const { store, liveTreesMax = LIVE_TREES_MAX, snapshotEntries = SNAPSHOT_ENTRIES, interpretation } = parts;
  return new LiveTrees(store, liveTreesMax, snapshotEntries, {
    onEvict: (tree) => parts.commitObserver?.onEvict(tree),
    ...{ interpretation, key: parts.secrets },
    treeLengths,
    observer: parts.tickObserver,
  });
}

/** Maximum trees that are remembered; beyond it, the one that was met first is forgotten and may be met again. */
export const LATER_TREES_MAX = 4_096;

/**
 * The trees that this process cannot evaluate, as far as it has met them: a later version of the program started them,
 * and a worker of that version has to continue them.
 */
export class LaterTrees {
  readonly #ids = new Set<string>();

  get ids(): readonly string[] {
    return [...this.#ids];
  }

  get count(): number {
    return this.#ids.size;
  }

  /** Remembers the tree if the error says that this process cannot evaluate it. */
  note(tree_id: string, error: unknown): void {
    if (!isUnsupported(error)) return;
    const [first] = this.#ids;
    if (this.#ids.size >= LATER_TREES_MAX && first !== undefined) this.#ids.delete(first);
    this.#ids.add(tree_id);
  }
}

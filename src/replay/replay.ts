// Replay: a ledger folded through the machines, with no sandbox, no clock and no policy but the one it pinned.

import type { StoredArtifact, WithheldArtifact } from '../contract/artifact-ref.js';
import { LedgerError } from '../errors.js';
import { sha256 } from '../contract/hash.js';
import { machineDefinitions } from '../../machines/index.js';
import { machinesFor } from '../kernel/pinned-policy.js';
import { Fold, type Difference } from '../kernel/fold.js';
import { TABLE_DRIVEN } from '../kernel/interpreter/interpreter.js';
import type { EntryPlace } from '../ports/ledger/ledger-store.js';

/** An entry as a ledger gives it. */
export interface ReplayEntry {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly type: string;
  readonly text: string;
}

/** What a replay needs: the ledger in its order, and the content that entries brought. */
export interface ReplaySource {
  log(): AsyncIterable<ReplayEntry>;
  tree(tree_id: string): AsyncIterable<ReplayEntry>;
  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]>;
  /** How many entries the log has, by its heads. Where it is absent, `log` is believed to give all of them. */
  size?(): Promise<number>;
}

/** The entries after the last one that the log gives: its heads say that there are more. */
export interface TruncatedLog {
  readonly rule: 'log.cut';
  /** How many entries the heads say that there are. */
  readonly expected: string;
  /** How many there are. */
  readonly found: string;
  readonly tree_id: '';
  readonly seq: number;
}

/**
 * What a replay decides. `by_hash_alone`: nothing differs, and some trees could be folded only up to content that is
 * not
 * there. `nothing`: not one input was folded. `ok` is true for `replayed` alone (C86).
 */
export type ReplayVerdict = 'replayed' | 'by_hash_alone' | 'nothing' | 'differs';

/** A tree that could be folded only so far: the content that comes next is not to be had. */
export interface UnrecomputedTree extends Pick<WithheldArtifact, 'case_id' | 'withheld'> {
  readonly tree_id: string;
  /** The input whose content it is. */
  readonly seq: number;
  readonly log_index: number;
  /** That input, and all entries of the tree after it. */
  readonly entries: number;
}

export interface ReplayReport {
  readonly ok: boolean;
  readonly verdict: ReplayVerdict;
  readonly trees: number;
  readonly entries: number;
  readonly inputs: number;
  readonly steps: number;
  readonly responses: number;
  /** Trees that were recorded by machines of another definition; they replay as long as those did the same. */
  readonly other_machines: number;
  /** In the order of the log. Their other entries count above, and came out as recorded. Absent where there is none. */
  readonly not_recomputed?: readonly UnrecomputedTree[];
  /** The first entry at which the ledger departs from the machines, by the order of the log. */
  readonly difference: ((Difference | TruncatedLog) & { readonly log_index: number | null }) | null;
}

/**
 * Replays a whole ledger, or one tree of it: every state, verdict and response must come out as recorded, byte for
 * byte. Stops at the first difference. Memory: the trees that have not ended, one kernel each.
 */
export async function replay(source: ReplaySource, tree_id?: string): Promise<ReplayReport> {
  const folds = new ReplayFolds(source);
  // Before the log is read: what is committed meanwhile comes after it.
  const size = tree_id === undefined ? await source.size?.() : undefined;
  let end = 0;
  const count = { trees: 0, entries: 0, inputs: 0, steps: 0, responses: 0, other_machines: 0 };
  for await (const entry of tree_id === undefined ? source.log() : source.tree(tree_id)) {
    const fold = await folds.foldFor(entry);
    end = entry.log_index + 1;
    count.trees = folds.begun;
    if (fold === null) continue;
    const artifacts = await readAttached(entry, source);
    const outcome = artifacts === null ? { difference: unreadableDifference(entry) } : fold.apply(entry, artifacts);
    if ('difference' in outcome) {
      return reportOf(count, folds, { ...outcome.difference, log_index: entry.log_index });
    }
    if ('withheld' in outcome) {
      folds.giveUp(entry, outcome.withheld);
      continue;
    }
    count.entries += 1;
    if (entry.type === 'step_trace') count.steps += 1;
    if (outcome.decision !== null) {
      count.inputs += 1;
      if (hasOtherMachines(entry, fold)) count.other_machines += 1;
      count.responses += outcome.decision.replies.length;
    }
    folds.releaseEnded(entry.tree_id, fold);
  }
  for (const fold of folds.unfinished()) {
    const rest = fold.finish();
    if (rest !== null) return reportOf(count, folds, { ...rest, log_index: null });
  }
  return reportOf(count, folds, size !== undefined && size > end ? truncatedAt(end, size) : null);
}

type ReplayCounts = Omit<ReplayReport, 'ok' | 'verdict' | 'not_recomputed' | 'difference'>;

function reportOf(count: ReplayCounts, folds: ReplayFolds, difference: ReplayReport['difference']): ReplayReport {
  const { lost } = folds;
  const whole = lost.not_recomputed === undefined ? 'replayed' : 'by_hash_alone';
  const verdict = difference !== null ? 'differs' : count.inputs === 0 && whole === 'replayed' ? 'nothing' : whole;
  return { ok: verdict === 'replayed', verdict, ...count, ...lost, difference };
}

const truncatedAt = (end: number, size: number): ReplayReport['difference'] => ({
  ...{ tree_id: '', seq: 0, rule: 'log.cut', log_index: end },
  ...{ expected: `${size} entries`, found: `${end} entries` },
});

/** So many trees that have ended stay in memory: what comes after the end comes soon. */
const ENDED_MAX = 64;

/** The folds of the trees that have not ended, and of the few that ended last. */
class ReplayFolds {
  readonly #source: ReplaySource;
  readonly #folds = new Map<string, Fold>();
  readonly #ended = new Set<string>();
  /** Trees that have ended and were let go. */
  readonly #released = new Set<string>();
  readonly #givenUp = new Map<string, UnrecomputedTree & { entries: number }>();
  begun = 0;

  constructor(source: ReplaySource) {
    this.#source = source;
  }

  /**
   * The fold that takes this entry. One that was let go is made again, out of the tree's first entries.
   * @returns null for a tree that was given up
   */
  async foldFor({ tree_id, seq }: ReplayEntry): Promise<Fold | null> {
    const givenUp = this.#givenUp.get(tree_id);
    if (givenUp !== undefined) {
      givenUp.entries += 1;
      return null;
    }
    const known = this.#folds.get(tree_id);
    if (known !== undefined) return known;
    const fold = new Fold(tree_id, TABLE_DRIVEN);
    this.#folds.set(tree_id, fold);
    if (!this.#released.delete(tree_id)) {
      this.begun += 1;
      return fold;
    }
    for await (const entry of this.#source.tree(tree_id)) {
      if (entry.seq >= seq) break;
      const artifacts = await readAttached(entry, this.#source);
      // What departs from what was folded before shows at the entry that comes next.
      if (artifacts === null || !('decision' in fold.apply(entry, artifacts))) break;
    }
    return fold;
  }

  /** Nothing more of this tree can be folded. */
  giveUp({ tree_id, seq, log_index }: ReplayEntry, { case_id, withheld }: WithheldArtifact): void {
    this.#folds.delete(tree_id);
    this.#givenUp.set(tree_id, { tree_id, case_id, withheld, seq, log_index, entries: 1 });
  }

  get lost(): Pick<ReplayReport, 'not_recomputed'> {
    return this.#givenUp.size === 0 ? {} : { not_recomputed: [...this.#givenUp.values()] };
  }

  releaseEnded(tree_id: string, fold: Fold): void {
    if (!fold.isComplete || !fold.tree.hasEnded) return;
    this.#ended.delete(tree_id);
    this.#ended.add(tree_id);
    if (this.#ended.size <= ENDED_MAX) return;
    for (const oldest of this.#ended) {
      this.#ended.delete(oldest);
      this.#folds.delete(oldest);
      this.#released.add(oldest);
      return;
    }
  }

  unfinished(): Iterable<Fold> {
    return this.#folds.values();
  }
}

/** Only inputs bring content. @returns null where the store itself says that it is not what it was */
async function readAttached(entry: ReplayEntry, source: ReplaySource): Promise<readonly StoredArtifact[] | null> {
  if (entry.type !== 'input') return [];
  try {
    return await source.artifactsOf(entry);
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return null;
    throw error;
  }
}

const unreadableDifference = ({ tree_id, seq, text }: ReplayEntry): Difference => ({
  tree_id,
  seq,
  rule: 'artifact.differs',
  expected: null,
  found: text,
});

/** Whether this entry opens a tree whose pinned machines are not the ones that replay it. */
function hasOtherMachines({ seq, text }: ReplayEntry, { tree }: Fold): boolean {
  if (seq !== 0 || tree.policy === null) return false;
  return !text.includes(sha256(machineDefinitions(machinesFor(tree.policy), tree.policy.catalogue, tree.policy.flags)));
}

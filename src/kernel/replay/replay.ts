// Replay: folds a ledger through the machines, without sandbox or clock, under the policy that each tree has pinned.

import { type StoredArtifact, type WithheldArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { LedgerError } from '../../core/errors.js';
import { Fold, readContentToFold, type Difference } from '../fold.js';
import { TABLE_DRIVEN } from '../interpreter/interpreter.js';
import type { EntryPlace } from '../../core/ledger/readable-ledger.js';

/** An entry as a ledger returns it. */
export interface ReplayEntry {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly type: string;
  readonly text: string;
}

/** The input of a replay: the ledger in log order, and the content of its entries. */
export interface ReplaySource {
  /** All entries in log order. */
  log(): AsyncIterable<ReplayEntry>;
  /** The entries of one tree, in the order of their `seq`. */
  tree(tree_id: string): AsyncIterable<ReplayEntry>;
  /** The content that the entry at `place` recorded. */
  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]>;
  /** The size of the log by its heads. If absent, `log` is assumed to return all entries. */
  size?(): Promise<number>;
  /** The first entry that the log has, if earlier ones were archived. */
  readonly first?: number;
}

/** The log ends early: its heads cover more entries than it returns. */
export interface TruncatedLog {
  readonly rule: 'log.cut';
  /** The number of entries by the heads. */
  readonly expected: string;
  /** The number of entries in the log. */
  readonly found: string;
  readonly tree_id: '';
  readonly seq: number;
}

/**
 * The verdict of a replay. `by_hash_alone`: nothing differs, but some trees could be folded only in part, or earlier
 * entries are archived.
 * `nothing`: no input was folded. `ok` is true only for `replayed` (C86).
 */
export type ReplayVerdict = 'replayed' | 'by_hash_alone' | 'nothing' | 'differs';

/** A tree that was folded only partly: its next content is unavailable, or this installation cannot evaluate it. */
export interface UnrecomputedTree {
  readonly case_id: string | null;
  /** Why its content is unavailable; null if nothing of it is. */
  readonly withheld: WithheldArtifact['withheld'] | null;
  /** What to install, if this installation cannot evaluate the policy of the tree. */
  readonly needs?: string;
  readonly tree_id: string;
  /** The input that the content belongs to. */
  readonly seq: number;
  readonly log_index: number;
  /** The number of entries of the tree from that input on. */
  readonly entries: number;
}

/** The result of a replay: the counts of what was compared, and the first difference. */
export interface ReplayReport {
  readonly ok: boolean;
  readonly verdict: ReplayVerdict;
  readonly trees: number;
  readonly entries: number;
  readonly inputs: number;
  readonly steps: number;
  readonly responses: number;
  /** Trees recorded with other machine definitions; they replay as long as those decide the same. */
  readonly other_machines: number;
  /**
   * In log order. The other entries of these trees replayed as recorded and are counted above. Absent if there are
   * none.
   */
  readonly not_recomputed?: readonly UnrecomputedTree[];
  /** How many archived entries precede those that were replayed; absent if none do. */
  readonly archived?: number;
  /** The first difference from the machines, in log order. */
  readonly difference: ((Difference | TruncatedLog) & { readonly log_index: number | null }) | null;
}

/**
 * Replays a whole ledger, or one tree: every state, verdict and response must come out as recorded, byte for byte.
 * Stops at the first difference. Memory grows with the trees that have not ended.
 */
export async function replay(source: ReplaySource, tree_id?: string): Promise<ReplayReport> {
  const folds = new ReplayFolds(source);
  // Read this before the log, so that entries committed meanwhile come after it.
  const size = tree_id === undefined ? await source.size?.() : undefined;
  let begin = tree_id === undefined ? source.first : 0;
  let end = source.first ?? 0;
  const count = { trees: 0, entries: 0, inputs: 0, steps: 0, responses: 0, other_machines: 0 };
  const report = (difference: ReplayReport['difference']): ReplayReport =>
    reportOf(count, { ...folds.lost, ...(begin === undefined || begin === 0 ? {} : { archived: begin }) }, difference);
  for await (const entry of tree_id === undefined ? source.log() : source.tree(tree_id)) {
    begin ??= entry.log_index;
    const fold = await folds.foldFor(entry);
    end = entry.log_index + 1;
    count.trees = folds.begun;
    if (fold === null) continue;
    const artifacts = await readAttached(entry, source);
    const outcome = artifacts === null ? { difference: unreadableDifference(entry) } : fold.apply(entry, artifacts);
    if ('difference' in outcome) {
      return report({ ...outcome.difference, log_index: entry.log_index });
    }
    if ('withheld' in outcome) {
      folds.giveUp(entry, outcome.withheld);
      continue;
    }
    if ('unsupported' in outcome) {
      folds.giveUp(entry, { case_id: null, withheld: null, needs: outcome.unsupported.message });
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
    if (rest !== null) return report({ ...rest, log_index: null });
  }
  return report(size !== undefined && size > end ? truncatedAt(end, size) : null);
}

type NotReplayed = Pick<ReplayReport, 'not_recomputed' | 'archived'>;
type ReplayCounts = Omit<ReplayReport, 'ok' | 'verdict' | 'difference' | keyof NotReplayed>;

/** Anything that was not replayed keeps the verdict from being `replayed`. */
function reportOf(count: ReplayCounts, lost: NotReplayed, difference: ReplayReport['difference']): ReplayReport {
  const whole = Object.keys(lost).length === 0 ? 'replayed' : 'by_hash_alone';
  const verdict = difference !== null ? 'differs' : count.inputs === 0 && whole === 'replayed' ? 'nothing' : whole;
  return { ok: verdict === 'replayed', verdict, ...count, ...lost, difference };
}

const truncatedAt = (end: number, size: number): ReplayReport['difference'] => ({
  ...{ tree_id: '', seq: 0, rule: 'log.cut', log_index: end },
  ...{ expected: `${size} entries`, found: `${end} entries` },
});

/** Ended trees that stay in memory, because entries after the end usually come soon. */
const ENDED_MAX = 64;

/** The folds of the trees that have not ended, and of a few that ended last. */
class ReplayFolds {
  readonly #source: ReplaySource;
  readonly #folds = new Map<string, Fold>();
  readonly #ended = new Set<string>();
  /** Trees that have ended and were evicted. */
  readonly #released = new Set<string>();
  readonly #givenUp = new Map<string, UnrecomputedTree & { entries: number }>();
  begun = 0;

  constructor(source: ReplaySource) {
    this.#source = source;
  }

  /**
   * The fold for this entry. If it was evicted, it is rebuilt from the tree's first entries.
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
      // A difference in entries folded before is reported at the next entry.
      if (artifacts === null || !('decision' in fold.apply(entry, artifacts))) break;
    }
    return fold;
  }

  /** Gives up a tree that cannot be folded further. */
  giveUp(
    { tree_id, seq, log_index }: ReplayEntry,
    { case_id, withheld, needs }: Pick<UnrecomputedTree, 'case_id' | 'withheld' | 'needs'>,
  ): void {
    this.#folds.delete(tree_id);
    const why = needs === undefined ? { case_id, withheld } : { case_id, withheld, needs };
    this.#givenUp.set(tree_id, { tree_id, ...why, seq, log_index, entries: 1 });
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

/** Reads the content of an input; only inputs have any. @returns null if the store reports that it was changed */
async function readAttached(entry: ReplayEntry, source: ReplaySource): Promise<readonly StoredArtifact[] | null> {
  try {
    return await readContentToFold(entry, source);
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
  return !text.includes(sha256(tree.definitions));
}

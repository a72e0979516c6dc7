// The machines' word on every tree, for verification: each is folded as it is read, and where it first departs from
// what the machines say, the entries around tell what was done to it.

import type { StoredArtifact } from '../contract/artifact-ref.js';
import { LedgerError } from '../errors.js';
import { Fold, type Difference } from '../kernel/fold.js';
import type { LedgerRule, PlacedFinding } from '../ledger/ledger-problem.js';
import type { TreeReplay } from '../ledger/verify.js';
import { kindOf, type Scene } from './difference-kind.js';
import type { ReplayEntry, ReplaySource } from './replay.js';

const RULES: Readonly<Record<Difference['rule'], LedgerRule>> = {
  'entry.differs': 'replay.differs',
  'entry.unexpected': 'replay.unexpected',
  'entry.missing': 'replay.missing',
  'artifact.differs': 'replay.artifact',
  'seen.differs': 'replay.seen',
  'machine.failed': 'replay.failed',
};
/** So many entries after a difference are looked at to tell what kind it is. */
const AFTER = 2;
/** Trees whose root has ended, and to which something was added later, are folded once more; so many are kept. */
const LATE_MAX = 16;

/** A tree that is being folded. */
interface Folding {
  readonly fold: Fold;
  /** The last two texts that were as expected, the later one first, and that of the last input. */
  before: readonly string[];
  input: string | null;
}

/** A tree that departs, and what has come after that. */
interface Departed {
  readonly difference: Difference;
  readonly log_index: number;
  readonly scene: Scene & { readonly after: string[] };
}

/**
 * Folds all trees of a log in one pass. Memory: the trees whose root has not ended, one kernel each, and of the others
 * their ids.
 */
export class ReplayCheck implements TreeReplay {
  readonly #source: Pick<ReplaySource, 'tree' | 'artifactsOf'>;
  readonly #trees = new Map<string, Folding>();
  readonly #departed = new Map<string, Departed>();
  /** Of these nothing more is said, or nothing more is remembered. */
  readonly #done = new Map<string, 'told' | 'ended'>();
  readonly #late: string[] = [];
  not_recomputed = 0;

  constructor(source: Pick<ReplaySource, 'tree' | 'artifactsOf'>) {
    this.#source = source;
  }

  async take(
    stored: ReplayEntry,
    artifacts: readonly StoredArtifact[],
    whole: boolean,
  ): Promise<readonly PlacedFinding[]> {
    const { tree_id } = stored;
    const departed = this.#departed.get(tree_id);
    if (departed !== undefined) {
      departed.scene.after.push(stored.text);
      return departed.scene.after.length < AFTER ? [] : [this.#told(departed)];
    }
    if (!whole || this.#done.get(tree_id) === 'told') {
      this.#trees.delete(tree_id);
      this.#done.set(tree_id, 'told');
      return [];
    }
    const folding = await this.#folding(stored);
    if (folding === null) return [];
    const taken = folding.fold.take(stored, artifacts);
    if ('difference' in taken) {
      this.#depart(stored, folding, taken.difference);
      return [];
    }
    if ('withheld' in taken) {
      this.#trees.delete(tree_id);
      this.#done.set(tree_id, 'told');
      this.not_recomputed += 1;
      return [];
    }
    folding.before = [stored.text, ...folding.before.slice(0, 1)];
    if (stored.type === 'input') folding.input = stored.text;
    if (folding.fold.tree.ended && folding.fold.expected.length === 0) this.#end(tree_id);
    return [];
  }

  *finish(): Iterable<PlacedFinding> {
    for (const departed of [...this.#departed.values()]) yield this.#told(departed);
    for (const [tree_id, { fold }] of this.#trees) {
      const rest = this.#done.get(tree_id) === 'told' ? null : fold.finish();
      if (rest === null) continue;
      const message = `the machines would have written one more entry here: ${shortened(rest.expected)}`;
      yield {
        place: { log_index: null, tree_id, seq: rest.seq },
        finding: { rule: 'replay.missing', message, kind: 'cut' },
      };
    }
  }

  #depart({ tree_id, log_index, text }: ReplayEntry, { fold, before, input }: Folding, difference: Difference): void {
    const scene = { rule: difference.rule, found: text, expected: fold.expected.map((entry) => entry.text) };
    this.#departed.set(tree_id, { difference, log_index, scene: { ...scene, before, input, after: [] } });
    this.#trees.delete(tree_id);
  }

  #told({ difference, log_index, scene }: Departed): PlacedFinding {
    const { tree_id, seq, rule, expected, found } = difference;
    this.#departed.delete(tree_id);
    this.#done.set(tree_id, 'told');
    const message = `the machines say ${shortened(expected)}, the ledger has ${shortened(found)}`;
    return { place: { log_index, tree_id, seq }, finding: { rule: RULES[rule], message, kind: kindOf(scene) } };
  }

  #end(tree_id: string): void {
    if (this.#late.includes(tree_id)) return;
    this.#trees.delete(tree_id);
    this.#done.set(tree_id, 'ended');
  }

  /** Where the tree has come to; null for one whose earlier entries cannot be read again. */
  async #folding({ tree_id, seq }: ReplayEntry): Promise<Folding | null> {
    const known = this.#trees.get(tree_id);
    if (known !== undefined) return known;
    const fresh: Folding = { fold: new Fold(tree_id), before: [], input: null };
    if (this.#done.get(tree_id) === 'ended') {
      this.#done.delete(tree_id);
      if (!(await this.#again(fresh, tree_id, seq))) {
        this.#done.set(tree_id, 'told');
        return null;
      }
      this.#late.push(tree_id);
      for (const late of this.#late.splice(0, this.#late.length - LATE_MAX)) this.#end(late);
    }
    this.#trees.set(tree_id, fresh);
    return fresh;
  }

  /** Folds once more what was folded before, up to `seq`. */
  async #again(folding: Folding, tree_id: string, seq: number): Promise<boolean> {
    try {
      for await (const entry of this.#source.tree(tree_id)) {
        if (entry.seq >= seq) return true;
        const artifacts = entry.type === 'input' ? await this.#source.artifactsOf(entry) : [];
        if (!('decision' in folding.fold.take(entry, artifacts))) return false;
        folding.before = [entry.text, ...folding.before.slice(0, 1)];
        if (entry.type === 'input') folding.input = entry.text;
      }
    } catch (error) {
      if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return false;
      throw error;
    }
    return true;
  }
}

const SHOWN_CHARS = 160;

/** Texts of entries may be large, and whoever wants to see all of them has `replay`. */
const shortened = (text: string | null): string =>
  text === null ? 'none' : text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}...`;

// Compares every tree with the machines, for verification. It folds each tree as it is read; at the first difference,
// the surrounding entries show which kind of damage it is.

import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import { LedgerError } from '../../core/errors.js';
import { Fold, loadFeaturesOf, readContentToFold, type Difference } from '../fold.js';
import { TABLE_DRIVEN } from '../interpreter/interpreter.js';
import type { LedgerRule, PlacedFinding } from '../../core/ledger/verification/ledger-problem.js';
import type { UnsupportedTree } from '../../core/ledger/verification/ledger-verdict.js';
import type { TreeReplay } from '../../core/ledger/verification/verify-ledger.js';
import { classifyDifference, type DifferenceContext } from './classify-difference.js';
import type { ReplayEntry, ReplaySource } from './replay.js';

const RULES: Readonly<Record<Difference['rule'], LedgerRule>> = {
  'entry.differs': 'replay.differs',
  'entry.unexpected': 'replay.unexpected',
  'entry.missing': 'replay.missing',
  'artifact.differs': 'replay.artifact',
  'seen.differs': 'replay.seen',
  'machine.failed': 'replay.failed',
};
/** How many entries after a difference are used to classify it. */
const ENTRIES_AFTER = 2;
/** How many ended trees with later entries are folded again and cached. */
const REOPENED_MAX = 16;

/** A tree that is being folded. */
interface OpenFold {
  readonly fold: Fold;
  /** The last two texts that were as expected, the later one first, and that of the last input. */
  before: readonly string[];
  input: string | null;
}

/** A tree that differs, and the entries after the difference. */
interface Departure {
  readonly difference: Difference;
  readonly log_index: number;
  readonly scene: DifferenceContext & { readonly after: string[] };
}

/** Folds all trees of a log in one pass. Memory: the trees whose root has not ended, and the ids of the others. */
export class ReplayCheck implements TreeReplay {
  readonly #source: Pick<ReplaySource, 'tree' | 'artifactsOf'>;
  readonly #trees = new Map<string, OpenFold>();
  readonly #departures = new Map<string, Departure>();
  /** Trees with a reported difference, and trees that have ended and are no longer in memory. */
  readonly #done = new Map<string, 'reported' | 'ended'>();
  readonly #reopened: string[] = [];
  not_recomputed = 0;
  readonly unsupported: UnsupportedTree[] = [];

  constructor(source: Pick<ReplaySource, 'tree' | 'artifactsOf'>) {
    this.#source = source;
  }

  async take(
    stored: ReplayEntry,
    artifacts: readonly StoredArtifact[],
    whole: boolean,
  ): Promise<readonly PlacedFinding[]> {
    const { tree_id } = stored;
    const departure = this.#departures.get(tree_id);
    if (departure !== undefined) {
      departure.scene.after.push(stored.text);
      return departure.scene.after.length < ENTRIES_AFTER ? [] : [this.#report(departure)];
    }
    if (!whole || this.#done.get(tree_id) === 'reported') {
      this.#trees.delete(tree_id);
      this.#done.set(tree_id, 'reported');
      return [];
    }
    const open = await this.#openFold(stored);
    if (open === null) return [];
    await loadFeaturesOf(stored, artifacts);
    const outcome = open.fold.apply(stored, artifacts);
    if ('difference' in outcome) {
      this.#recordDeparture(stored, open, outcome.difference);
      return [];
    }
    if ('unsupported' in outcome)
      this.unsupported.push({ tree_id, log_index: stored.log_index, needs: outcome.unsupported.message });
    if ('withheld' in outcome || 'unsupported' in outcome) {
      this.#trees.delete(tree_id);
      this.#done.set(tree_id, 'reported');
      this.not_recomputed += 1;
      return [];
    }
    open.before = [stored.text, ...open.before.slice(0, 1)];
    if (stored.type === 'input') open.input = stored.text;
    if (open.fold.tree.hasEnded && open.fold.expected.length === 0) this.#markEnded(tree_id);
    return [];
  }

  *finish(): Iterable<PlacedFinding> {
    for (const departure of [...this.#departures.values()]) yield this.#report(departure);
    for (const [tree_id, { fold }] of this.#trees) {
      const rest = this.#done.get(tree_id) === 'reported' ? null : fold.finish();
      if (rest === null) continue;
      const message = `the machines would have written one more entry here: ${shorten(rest.expected)}`;
      yield {
        place: { log_index: null, tree_id, seq: rest.seq },
        finding: { rule: 'replay.missing', message, kind: 'cut' },
      };
    }
  }

  #recordDeparture(
    { tree_id, log_index, text }: ReplayEntry,
    { fold, before, input }: OpenFold,
    difference: Difference,
  ): void {
    const scene = { rule: difference.rule, found: text, expected: fold.expected.map((entry) => entry.text) };
    this.#departures.set(tree_id, { difference, log_index, scene: { ...scene, before, input, after: [] } });
    this.#trees.delete(tree_id);
  }

  #report({ difference, log_index, scene }: Departure): PlacedFinding {
    const { tree_id, seq, rule, expected, found } = difference;
    this.#departures.delete(tree_id);
    this.#done.set(tree_id, 'reported');
    const message = `the machines say ${shorten(expected)}, the ledger has ${shorten(found)}`;
    return {
      place: { log_index, tree_id, seq },
      finding: { rule: RULES[rule], message, kind: classifyDifference(scene) },
    };
  }

  #markEnded(tree_id: string): void {
    if (this.#reopened.includes(tree_id)) return;
    this.#trees.delete(tree_id);
    this.#done.set(tree_id, 'ended');
  }

  /** The current fold of the tree; null if its earlier entries cannot be read again. */
  async #openFold({ tree_id, seq }: ReplayEntry): Promise<OpenFold | null> {
    const known = this.#trees.get(tree_id);
    if (known !== undefined) return known;
    const fresh: OpenFold = { fold: new Fold(tree_id, TABLE_DRIVEN), before: [], input: null };
    if (this.#done.get(tree_id) === 'ended') {
      this.#done.delete(tree_id);
      if (!(await this.#refold(fresh, tree_id, seq))) {
        this.#done.set(tree_id, 'reported');
        return null;
      }
      this.#reopened.push(tree_id);
      for (const reopened of this.#reopened.splice(0, this.#reopened.length - REOPENED_MAX)) this.#markEnded(reopened);
    }
    this.#trees.set(tree_id, fresh);
    return fresh;
  }

  /** Folds the tree's earlier entries again, up to `seq`. */
  async #refold(open: OpenFold, tree_id: string, seq: number): Promise<boolean> {
    try {
      for await (const entry of this.#source.tree(tree_id)) {
        if (entry.seq >= seq) return true;
        const artifacts = await readContentToFold(entry, this.#source);
        if (!('decision' in open.fold.apply(entry, artifacts))) return false;
        open.before = [entry.text, ...open.before.slice(0, 1)];
        if (entry.type === 'input') open.input = entry.text;
      }
    } catch (error) {
      if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return false;
      throw error;
    }
    return true;
  }
}

const SHOWN_CHARS = 160;

/** Shortens large texts; `replay` returns them whole. */
const shorten = (text: string | null): string =>
  text === null ? 'none' : text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}...`;

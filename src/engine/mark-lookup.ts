import { LedgerError } from '../errors.js';
import type { InputMark, LedgerStore, MarkKey, ProposalKey, ProposalMark } from '../ports/ledger-store.js';
import type { Tree } from '../kernel/tree.js';
import type { LiveTrees } from './live-trees.js';
import type { Waiting } from './taken.js';

/** A mark that the store is asked for, and where the answer goes. */
interface Sought {
  readonly item: Waiting;
  readonly key: MarkKey;
  readonly found: (mark: InputMark | ProposalMark | null) => void;
}

/**
 * What the store remembers of the ids of one tick's inputs. They are looked up together: one query for the trees that
 * are in memory, and one more where trees had to be folded to know what their proposals are called.
 */
export class MarkLookup {
  readonly #store: Pick<LedgerStore, 'marks'>;
  readonly #trees: LiveTrees;
  readonly #inputs = new Map<Waiting, InputMark>();
  /** Null for a payload that is no proposal, and so has no id. */
  readonly #proposals = new Map<Waiting, { readonly key: ProposalKey; mark: ProposalMark | null } | null>();

  /** What kept the marks of an input from being looked up. */
  readonly #failed = new Map<Waiting, unknown>();

  constructor(store: Pick<LedgerStore, 'marks'>, trees: LiveTrees) {
    this.#store = store;
    this.#trees = trees;
  }

  /** Looks up all that can be known before the first input is decided. */
  async begin(items: readonly Waiting[]): Promise<void> {
    const sought: Sought[] = [];
    const others: Waiting[] = [];
    for (const item of items) {
      const { tree_id, submission } = item;
      const { input, external } = submission;
      if (external) {
        const found = (mark: InputMark | ProposalMark | null): void => {
          if (mark !== null && 'input_id' in mark) this.#inputs.set(item, mark);
        };
        sought.push({ item, key: { tree_id, input_id: input.input_id }, found });
      }
      if (input.kind !== 'proposal') continue;
      const tree = this.#trees.seen(tree_id);
      if (tree === null) others.push(item);
      else this.#seek(tree, item, sought);
    }
    await this.#findAll(sought);
    await this.#beginOthers(others.filter((item) => !this.#inputs.has(item)));
  }

  /** The mark of an input that came before under the same id. @throws what kept it from being looked up */
  input(item: Waiting): InputMark | null {
    if (this.#failed.has(item)) throw this.#failed.get(item);
    return this.#inputs.get(item) ?? null;
  }

  /**
   * What a proposal is remembered by, and by which mark.
   * @param isNew whether the tree was opened in this tick, so that the store knows nothing of it
   */
  async proposal(tree: Tree, item: Waiting, isNew: boolean): Promise<FoundProposal | null> {
    const known = this.#proposals.get(item);
    if (known !== undefined) return known;
    const sought: Sought[] = [];
    this.#seek(tree, item, sought);
    if (!isNew) await this.#find(sought);
    return this.#proposals.get(item) ?? null;
  }

  /** An input of a tree that cannot be folded is rejected when its turn comes. */
  async #beginOthers(items: readonly Waiting[]): Promise<void> {
    if (items.length === 0) return;
    const sought: Sought[] = [];
    for (const item of items) {
      const tree = await this.#trees.get(item.tree_id).catch(() => null);
      if (tree !== null) this.#seek(tree, item, sought);
    }
    await this.#findAll(sought);
  }

  /** Notes what a proposal is called, as far as its run is known by now. */
  #seek(tree: Tree, item: Waiting, sought: Sought[]): void {
    const { input, materials } = item.submission;
    const [payload] = materials;
    const run = input.kind === 'proposal' ? tree.run(input.run_id)?.context : undefined;
    if (run === undefined || payload === undefined || tree.policy === null) return;
    const proposal_id = tree.proposalKey(payload.bytes);
    if (proposal_id === null) {
      this.#proposals.set(item, null);
      return;
    }
    const proposal: { key: ProposalKey; mark: ProposalMark | null } = {
      key: { root_run_id: run.root_run_id, proposal_id },
      mark: null,
    };
    this.#proposals.set(item, proposal);
    const found = (mark: InputMark | ProposalMark | null): void => {
      if (mark !== null && 'proposal_id' in mark) proposal.mark = mark;
    };
    sought.push({ item, key: proposal.key, found });
  }

  /** A read that fails is an error of those inputs alone that need it. */
  async #findAll(sought: readonly Sought[]): Promise<void> {
    try {
      await this.#find(sought);
    } catch (error) {
      // Only the input that needs a changed mark fails: each of the others is looked up by itself.
      const isOfOne = error instanceof LedgerError && error.code === 'LEDGER_TAMPERED' && sought.length > 1;
      if (isOfOne) for (const one of sought) await this.#findAll([one]);
      else for (const { item } of sought) this.#failed.set(item, error);
    }
  }

  async #find(sought: readonly Sought[]): Promise<void> {
    if (sought.length === 0) return;
    const marks = await this.#store.marks(sought.map(({ key }) => key));
    for (const [place, { found }] of sought.entries()) found(marks[place] ?? null);
  }
}

export interface FoundProposal {
  readonly key: ProposalKey;
  /** What the store has; null where it has none. */
  readonly mark: ProposalMark | null;
}

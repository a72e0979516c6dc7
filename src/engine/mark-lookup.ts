import type { InputMark, LedgerStore, MarkKey, ProposalKey, ProposalMark } from '../ports/ledger-store.js';
import type { Tree } from '../kernel/tree.js';
import type { LiveTrees } from './live-trees.js';
import type { Waiting } from './taken.js';
import type { Submission } from './tree-engine.js';

/** A mark that the store is asked for, and where the answer goes. */
interface Sought {
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
  readonly #proposals = new Map<Submission, { readonly key: ProposalKey; mark: ProposalMark | null } | null>();

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
        sought.push({ key: { tree_id, input_id: input.input_id }, found });
      }
      if (input.kind !== 'proposal') continue;
      const tree = this.#trees.seen(tree_id);
      if (tree === null) others.push(item);
      else this.#seek(tree, submission, sought);
    }
    await this.#find(sought);
    await this.#beginOthers(others.filter((item) => !this.#inputs.has(item)));
  }

  /** The mark of an input that came before under the same id. */
  input(item: Waiting): InputMark | null {
    return this.#inputs.get(item) ?? null;
  }

  /**
   * What a proposal is remembered by, and by which mark.
   * @param isNew whether the tree was opened in this tick, so that the store knows nothing of it
   */
  async proposal(tree: Tree, submission: Submission, isNew: boolean): Promise<FoundProposal | null> {
    const known = this.#proposals.get(submission);
    if (known !== undefined) return known;
    const sought: Sought[] = [];
    this.#seek(tree, submission, sought);
    if (!isNew) await this.#find(sought);
    return this.#proposals.get(submission) ?? null;
  }

  /** A tree that cannot be folded is told so when its turn comes. */
  async #beginOthers(items: readonly Waiting[]): Promise<void> {
    if (items.length === 0) return;
    const sought: Sought[] = [];
    for (const { tree_id, submission } of items) {
      const tree = await this.#trees.get(tree_id).catch(() => null);
      if (tree !== null) this.#seek(tree, submission, sought);
    }
    await this.#find(sought);
  }

  /** Notes what a proposal is called, as far as its run is known by now. */
  #seek(tree: Tree, submission: Submission, sought: Sought[]): void {
    const { input, materials } = submission;
    const [payload] = materials;
    const run = input.kind === 'proposal' ? tree.run(input.run_id)?.context : undefined;
    if (run === undefined || payload === undefined || tree.policy === null) return;
    const proposal_id = tree.proposalKey(payload.bytes);
    if (proposal_id === null) {
      this.#proposals.set(submission, null);
      return;
    }
    const proposal: { key: ProposalKey; mark: ProposalMark | null } = {
      key: { root_run_id: run.root_run_id, proposal_id },
      mark: null,
    };
    this.#proposals.set(submission, proposal);
    const found = (mark: InputMark | ProposalMark | null): void => {
      if (mark !== null && 'proposal_id' in mark) proposal.mark = mark;
    };
    sought.push({ key: proposal.key, found });
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

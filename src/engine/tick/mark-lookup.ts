import { LedgerError } from '../../errors.js';
import type { InputMark, LedgerStore, MarkKey, ProposalKey, ProposalMark } from '../../ports/ledger/ledger-store.js';
import type { Tree } from '../../kernel/tree.js';
import type { LiveTrees } from '../trees/live-trees.js';
import type { QueuedInput } from './input-outcome.js';

/** A mark that the store is asked for, and where the answer goes. */
interface MarkQuery {
  readonly item: QueuedInput;
  readonly key: MarkKey;
  readonly onFound: (mark: InputMark | ProposalMark | null) => void;
}

/**
 * What the store remembers of the ids of one tick's inputs. They are looked up together: one query for the trees that
 * are in memory, and one more where trees had to be folded to know what their proposals are called.
 */
export class MarkLookup {
  readonly #store: Pick<LedgerStore, 'marks'>;
  readonly #trees: LiveTrees;
  readonly #inputs = new Map<QueuedInput, InputMark>();
  /** Null for a payload that is no proposal, and so has no id. */
  readonly #proposals = new Map<QueuedInput, { readonly key: ProposalKey; mark: ProposalMark | null } | null>();

  /** What kept the marks of an input from being looked up. */
  readonly #failed = new Map<QueuedInput, unknown>();

  constructor(store: Pick<LedgerStore, 'marks'>, trees: LiveTrees) {
    this.#store = store;
    this.#trees = trees;
  }

  /** Looks up all that can be known before the first input is decided. */
  async lookUpAll(items: readonly QueuedInput[]): Promise<void> {
    const queries: MarkQuery[] = [];
    const unloaded: QueuedInput[] = [];
    for (const item of items) {
      const { tree_id, submission } = item;
      const { input, external } = submission;
      if (external) {
        const onFound = (mark: InputMark | ProposalMark | null): void => {
          if (mark !== null && 'input_id' in mark) this.#inputs.set(item, mark);
        };
        queries.push({ item, key: { tree_id, input_id: input.input_id }, onFound });
      }
      if (input.kind !== 'proposal') continue;
      const tree = this.#trees.peek(tree_id);
      if (tree === null) unloaded.push(item);
      else this.#addQuery(tree, item, queries);
    }
    await this.#findAll(queries);
    await this.#lookUpUnloaded(unloaded.filter((item) => !this.#inputs.has(item)));
  }

  /** The mark of an input that came before under the same id. @throws what kept it from being looked up */
  findInput(item: QueuedInput): InputMark | null {
    if (this.#failed.has(item)) throw this.#failed.get(item);
    return this.#inputs.get(item) ?? null;
  }

  /**
   * What a proposal is remembered by, and by which mark.
   * @param isNew whether the tree was opened in this tick, so that the store knows nothing of it
   */
  async findProposal(tree: Tree, item: QueuedInput, isNew: boolean): Promise<FoundProposal | null> {
    const known = this.#proposals.get(item);
    if (known !== undefined) return known;
    const queries: MarkQuery[] = [];
    this.#addQuery(tree, item, queries);
    if (!isNew) await this.#find(queries);
    return this.#proposals.get(item) ?? null;
  }

  /** An input of a tree that cannot be folded is rejected when its turn comes. */
  async #lookUpUnloaded(items: readonly QueuedInput[]): Promise<void> {
    if (items.length === 0) return;
    const queries: MarkQuery[] = [];
    for (const item of items) {
      const tree = await this.#trees.get(item.tree_id).catch(() => null);
      if (tree !== null) this.#addQuery(tree, item, queries);
    }
    await this.#findAll(queries);
  }

  /** Notes what a proposal is called, as far as its run is known by now. */
  #addQuery(tree: Tree, item: QueuedInput, queries: MarkQuery[]): void {
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
    const onFound = (mark: InputMark | ProposalMark | null): void => {
      if (mark !== null && 'proposal_id' in mark) proposal.mark = mark;
    };
    queries.push({ item, key: proposal.key, onFound });
  }

  /** A read that fails is an error of those inputs alone that need it. */
  async #findAll(queries: readonly MarkQuery[]): Promise<void> {
    try {
      await this.#find(queries);
    } catch (error) {
      // Only the input that needs a changed mark fails: each of the others is looked up by itself.
      const shouldSplit = error instanceof LedgerError && error.code === 'LEDGER_TAMPERED' && queries.length > 1;
      if (shouldSplit) for (const query of queries) await this.#findAll([query]);
      else for (const { item } of queries) this.#failed.set(item, error);
    }
  }

  async #find(queries: readonly MarkQuery[]): Promise<void> {
    if (queries.length === 0) return;
    const marks = await this.#store.marks(queries.map(({ key }) => key));
    for (const [index, { onFound }] of queries.entries()) onFound(marks[index] ?? null);
  }
}

export interface FoundProposal {
  readonly key: ProposalKey;
  /** What the store has; null where it has none. */
  readonly mark: ProposalMark | null;
}

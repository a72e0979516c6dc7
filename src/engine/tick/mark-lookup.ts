import { LedgerError } from '../../core/errors.js';
import type { InputMark, LedgerStore, MarkKey, ProposalKey, ProposalMark } from '../ports/ledger/ledger-store.js';
import type { Tree } from '../../kernel/tree.js';
import { checkedMarks } from '../trees/checked-marks.js';
import type { LiveTrees } from '../trees/live-trees.js';
import type { QueuedInput } from './input-outcome.js';

/** A mark to query, and the input that needs it. */
interface MarkQuery {
  readonly item: QueuedInput;
  readonly key: MarkKey;
  readonly onFound: (mark: InputMark | ProposalMark | null) => void;
}

/**
 * The stored marks for the inputs of one tick. It looks them up together: one query for trees in memory, and another
 * for trees that must be folded first to find the ids of their proposals.
 */
export class MarkLookup {
  readonly #store: Pick<LedgerStore, 'marks' | 'tree'>;
  readonly #trees: LiveTrees;
  readonly #inputs = new Map<QueuedInput, InputMark>();
  /** Null for an invalid proposal, which has no id. */
  readonly #proposals = new Map<QueuedInput, { readonly key: ProposalKey; mark: ProposalMark | null } | null>();

  /** Errors that prevented the lookup of an input's marks. */
  readonly #failed = new Map<QueuedInput, unknown>();

  constructor(store: Pick<LedgerStore, 'marks' | 'tree'>, trees: LiveTrees) {
    this.#store = store;
    this.#trees = trees;
  }

  /** Looks up everything that is known before the first input is decided. */
  async lookUpAll(items: readonly QueuedInput[]): Promise<void> {
    const queries: MarkQuery[] = [];
    const unloaded: QueuedInput[] = [];
    for (const item of items) {
      const { tree_id, submission } = item;
      const { input, rememberInputId } = submission;
      if (rememberInputId) {
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

  /** The mark of an earlier input with the same id. @throws the error that prevented its lookup */
  findInput(item: QueuedInput): InputMark | null {
    if (this.#failed.has(item)) throw this.#failed.get(item);
    return this.#inputs.get(item) ?? null;
  }

  /**
   * The deduplication key of a proposal, and its stored mark.
   * @param isNew whether this tick opened the tree, so that the store does not know it
   */
  async findProposal(tree: Tree, item: QueuedInput, isNew: boolean): Promise<FoundProposal | null> {
    const known = this.#proposals.get(item);
    if (known !== undefined) return known;
    const queries: MarkQuery[] = [];
    this.#addQuery(tree, item, queries);
    if (!isNew) await this.#find(queries);
    return this.#proposals.get(item) ?? null;
  }

  /** An input of a tree that cannot be folded is rejected in its turn. */
  async #lookUpUnloaded(items: readonly QueuedInput[]): Promise<void> {
    if (items.length === 0) return;
    const queries: MarkQuery[] = [];
    for (const item of items) {
      const tree = await this.#trees.get(item.tree_id).catch(() => null);
      if (tree !== null) this.#addQuery(tree, item, queries);
    }
    await this.#findAll(queries);
  }

  /** Adds the query for a proposal's mark, if its run is known already. */
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

  /** A failed read is an error only for the inputs that need it. */
  async #findAll(queries: readonly MarkQuery[]): Promise<void> {
    try {
      await this.#find(queries);
    } catch (error) {
      // Look each one up alone, so that only the input with the tampered mark fails.
      const shouldSplit = error instanceof LedgerError && error.code === 'LEDGER_TAMPERED' && queries.length > 1;
      if (shouldSplit) for (const query of queries) await this.#findAll([query]);
      else for (const { item } of queries) this.#failed.set(item, error);
    }
  }

  async #find(queries: readonly MarkQuery[]): Promise<void> {
    if (queries.length === 0) return;
    const marks = await checkedMarks(
      this.#store,
      queries.map(({ key }) => key),
    );
    for (const [index, { onFound }] of queries.entries()) onFound(marks[index] ?? null);
  }
}

interface FoundProposal {
  readonly key: ProposalKey;
  /** The stored mark, or null. */
  readonly mark: ProposalMark | null;
}

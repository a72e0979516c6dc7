import type { Decision } from '../../../kernel/decision.js';
import { type Tree, findFactsRequest } from '../../../kernel/tree.js';
import type { FactStore, LedgerFacts } from '../../../engine/ledger-facts.js';
import type { Submission } from '../../../engine/tree-engine.js';
import type { CounterBook } from './counter-book.js';
import { loadBook } from './read-counters.js';

/**
 * The counters of the only worker: loaded from the ledger before the first decision that needs them, and kept up to
 * date with every decision after it.
 */
export class LedgerCounters implements LedgerFacts {
  readonly #store: FactStore;
  /** Null: not loaded. */
  #book: CounterBook | null = null;
  /** Whether the book has something that the ledger lacks. */
  #isStale = false;

  constructor(store: FactStore) {
    this.#store = store;
  }

  startTick(): void {
    if (this.#isStale) this.clear();
  }

  mustPostpone(): boolean {
    return false;
  }

  mustPrepare({ policy }: Tree): boolean {
    return policy?.counters !== undefined && this.#book === null;
  }

  /** All decisions so far are committed: none of this tick has needed a counter. */
  async prepare(): Promise<void> {
    this.#book = await loadBook(this.#store);
  }

  addFacts(tree: Tree, submission: Submission, time: string): Submission {
    return this.#book === null ? submission : withCounters(this.#book, tree, submission, time);
  }

  applyDecision({ tree_id }: Tree, { entries, ended }: Decision): void {
    if (this.#book === null) return;
    for (const { entry } of entries) this.#book.apply(entry);
    if (ended.some(({ run_id }) => run_id === tree_id)) this.#book.endTree(tree_id);
  }

  undo(): void {
    this.#isStale = true;
  }

  clear(): void {
    this.#book = null;
    this.#isStale = false;
  }
}

/** The facts with the values of the counters that their step needs. Returns any other submission unchanged. */
export function withCounters(book: CounterBook, tree: Tree, submission: Submission, time: string): Submission {
  const { input } = submission;
  if (input.kind !== 'facts') return submission;
  const queries = findFactsRequest(tree, input.run_id)?.counters;
  return queries === undefined
    ? submission
    : { ...submission, input: { ...input, counters: [...book.read(queries, time)] } };
}

// The counters of an engine: loaded from the ledger before the first decision that needs them, and kept up to date with
// every decision after it.

import type { Entry } from '../../contract/run/entry.js';
import { LedgerError } from '../../errors.js';
import type { Decision } from '../../kernel/decision.js';
import { findFactsRequest } from '../../kernel/sandbox-changes.js';
import type { Tree } from '../../kernel/tree.js';
import { checkEntry } from '../../ledger/verification/check-entry.js';
import type { LedgerStore, StoredEntry } from '../../ports/ledger/ledger-store.js';
import type { Submission } from '../tree-engine.js';
import { CounterBook } from './counter-book.js';

type Store = Pick<LedgerStore, 'log' | 'openTrees' | 'archives'>;

export class LedgerCounters {
  readonly #store: Store;
  /** Null: not loaded, or no longer what the ledger has. */
  #book: CounterBook | null = null;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Loads the counters, if a tree has any. Nothing may be committed meanwhile.
   * @throws LedgerError
   */
  async prepare({ policy }: Tree): Promise<void> {
    if (policy?.counters === undefined || this.#book !== null) return;
    this.#book = await loadBook(this.#store);
  }

  /** Whether `prepare` has to be called before this tree decides. */
  isMissing({ policy }: Tree): boolean {
    return policy?.counters !== undefined && this.#book === null;
  }

  /** Adds the values of counters to the facts that need them. Returns any other submission unchanged. */
  addFacts(tree: Tree, submission: Submission, time: string): Submission {
    const { input } = submission;
    if (input.kind !== 'facts' || this.#book === null) return submission;
    const queries = findFactsRequest(tree, input.run_id)?.counters;
    if (queries === undefined) return submission;
    return { ...submission, input: { ...input, counters: [...this.#book.read(queries, time)] } };
  }

  applyDecision(tree_id: string, { entries, ended }: Decision): void {
    const book = this.#book;
    if (book === null) return;
    for (const { entry } of entries) book.apply(entry);
    if (ended.some(({ run_id }) => run_id === tree_id)) book.endTree(tree_id);
  }

  /** Something that was applied is not in the ledger. */
  forget(): void {
    this.#book = null;
  }
}

/** All entries of the log, in its order. */
async function loadBook(store: Store): Promise<CounterBook> {
  const book = new CounterBook();
  const isArchived = (await store.archives.parts()).length > 0;
  for await (const stored of store.log()) {
    if (isArchived && book.completeFrom === null) book.completeFrom = timeOf(stored);
    if (book.needs(stored)) book.apply(readEntry(stored));
  }
  const open = new Set<string>();
  for await (const { tree_id } of store.openTrees()) open.add(tree_id);
  book.keepTrees(open);
  return book;
}

/** @throws LedgerError LEDGER_TAMPERED */
function readEntry(stored: StoredEntry): Entry {
  const { envelope, findings } = checkEntry(stored);
  if (envelope !== null && findings.length === 0) return envelope as Pick<Entry, 'type' | 'body'> as Entry;
  const message = `entry ${stored.seq} of ${stored.tree_id} is not what was recorded: run \`turnpike verify\``;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
}

/** The time of an input, in ms; null for another entry. */
function timeOf(stored: StoredEntry): number | null {
  if (stored.type !== 'input') return null;
  const entry = readEntry(stored);
  return entry.type === 'input' ? Date.parse(entry.body.time) : null;
}

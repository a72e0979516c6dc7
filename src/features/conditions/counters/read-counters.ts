// Reads from the ledger what counters need.

import { nameInTree } from '../../../core/contract/entry-name.js';
import type { Entry } from '../../../core/contract/run/entry.js';
import { LedgerError } from '../../../core/errors.js';
import { checkEntry } from '../../../core/ledger/verification/check-entry.js';
import type { FactStore } from '../../../engine/ledger-facts.js';
import type { StoredEntry, TreeEntry } from '../../../engine/ports/ledger/ledger-store.js';
import { CounterBook } from './counter-book.js';

/** A book with all entries of the log. @throws LedgerError */
export async function loadBook(store: FactStore): Promise<CounterBook> {
  const first = await firstIndex(store);
  const book = new CounterBook(first === 0);
  for await (const stored of store.log(first)) {
    noteBeginning(book, stored);
    if (book.needs(stored)) book.apply(readEntry(stored));
  }
  const open = new Set<string>();
  for await (const { tree_id } of store.openTrees()) open.add(tree_id);
  book.keepTrees(open);
  return book;
}

/** The index of the first entry that is not archived. */
export const firstIndex = async (store: Pick<FactStore, 'archives'>): Promise<number> =>
  (await store.archives.parts()).at(-1)?.size ?? 0;

/** Notes the time of the first input that was not archived. Call it with each entry of the log. */
export function noteBeginning(book: CounterBook, stored: StoredEntry): void {
  if (!book.hasNoBeginning || stored.type !== 'input') return;
  const entry = readEntry(stored);
  if (entry.type === 'input') book.noteTime(entry.body.time);
}

/** @throws LedgerError LEDGER_TAMPERED */
export function readEntry(stored: TreeEntry): Entry {
  const { envelope, findings } = checkEntry({ ...stored, log_index: stored.log_index ?? 0 });
  if (envelope !== null && findings.length === 0) return envelope as Pick<Entry, 'type' | 'body'> as Entry;
  const message = `entry ${nameInTree(stored.tree_id, stored.seq)} is not what was recorded: run \`turnpike verify\``;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
}

// Reads from the ledger what counters need.

import type { Entry } from '../../contract/run/entry.js';
import { LedgerError } from '../../errors.js';
import { checkEntry } from '../../ledger/verification/check-entry.js';
import type { LedgerStore, StoredEntry, TreeEntry } from '../../ports/ledger/ledger-store.js';
import { CounterBook } from './counter-book.js';

/** A book with all entries of the log, and the size of the log then. @throws LedgerError */
export async function loadBook(
  store: Pick<LedgerStore, 'log' | 'openTrees' | 'archives'>,
): Promise<{ readonly book: CounterBook; readonly size: number }> {
  const book = new CounterBook();
  let size = (await store.archives.parts()).at(-1)?.size ?? 0;
  const isArchived = size > 0;
  for await (const stored of store.log()) {
    size = stored.log_index + 1;
    if (isArchived && book.completeFrom === null) book.completeFrom = timeOf(stored);
    if (book.needs(stored)) book.apply(readEntry(stored));
  }
  const open = new Set<string>();
  for await (const { tree_id } of store.openTrees()) open.add(tree_id);
  book.keepTrees(open);
  return { book, size };
}

/** @throws LedgerError LEDGER_TAMPERED */
export function readEntry(stored: TreeEntry): Entry {
  const { envelope, findings } = checkEntry({ ...stored, log_index: stored.log_index ?? 0 });
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

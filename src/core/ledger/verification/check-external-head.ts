import { LedgerError } from '../../errors.js';
import type { ReadableHead, ReadableLedger, LogHead } from '../readable-ledger.js';
import { EMPTY_HEAD, extendHead, rootOf } from '../proof/merkle.js';

const LEAVES_PER_BATCH = 1_024;

/**
 * Checks a ledger against the head that is stored outside of it (D15).
 * @throws LedgerError LEDGER_BELOW_HEAD if the log is shorter than the head or differs from it; LEDGER_TAMPERED if
 * there is no external head for a log with entries (for an empty ledger the head may be missing, because its creation
 * may have been interrupted), or if the store's own head is inconsistent: the next commit would extend a log that does
 * not exist
 * @param acceptMissing accepts the store's own head if no external head exists yet
 */
export async function checkExternalHead(
  store: ReadableLedger,
  headStore: Pick<ReadableHead, 'read'>,
  { acceptMissing = false }: { readonly acceptMissing?: boolean } = {},
): Promise<void> {
  // Read the external head first: the ledger may grow meanwhile, and its head file never overtakes it.
  const externalHead = await headStore.read();
  const head = await store.head();
  const expected = externalHead ?? (acceptMissing ? head : null);
  if (expected === null) {
    if (head.size === 0) return;
    throw new LedgerError({
      code: 'LEDGER_TAMPERED',
      message: 'the head file is missing: restore it from a backup, or start a new home',
    });
  }
  if (expected.size > head.size || (await computeRootAt(store, head, expected.size)) !== expected.root) {
    throw new LedgerError({
      code: 'LEDGER_BELOW_HEAD',
      message:
        `the ledger has ${head.size} entries and is not the one that its head file vouches for ` +
        `(${expected.size} entries): restore the ledger from a backup, and run \`turnpike ledger verify\``,
    });
  }
  if (rootOf(head.frontier) !== head.root || !(await endsAs(store, head.size))) {
    throw new LedgerError({
      code: 'LEDGER_TAMPERED',
      message:
        `the ledger does not end as its own head says (${head.size} entries): restore it from a backup, ` +
        'and run `turnpike ledger verify`',
    });
  }
}

/** Whether the log has `size` entries, or more only because other workers have extended it and its head meanwhile. */
async function endsAs(store: ReadableLedger, size: number): Promise<boolean> {
  const last = await readLastIndex(store, size);
  return last === size - 1 || (last >= size && last < (await store.head()).size);
}

/**
 * The index of the log's last entry, archived or not. The lookup begins at the index that a log of this size must have.
 */
async function readLastIndex(store: ReadableLedger, size: number): Promise<number> {
  const archived = (await store.archives.parts()).at(-1)?.size ?? 0;
  let last = archived - 1;
  for await (const { log_index } of store.log(Math.max(archived, size - 1))) last = log_index;
  return last;
}

/**
 * After a crash the ledger may be ahead of its head file by the last commits, so compute the root at the file's size.
 * @returns null if the entries are archived: a later head was written before they were
 */
async function computeRootAt(store: ReadableLedger, head: LogHead, size: number): Promise<string | null> {
  if (size === head.size) return head.root;
  let current: LogHead = (await store.archives.parts()).at(-1) ?? EMPTY_HEAD;
  let leaves: string[] = [];
  if (size < current.size) return null;
  for await (const { leaf_hash } of store.log(current.size)) {
    if (current.size + leaves.length === size) break;
    leaves.push(leaf_hash);
    if (leaves.length === LEAVES_PER_BATCH) {
      current = extendHead(current, leaves);
      leaves = [];
    }
  }
  return extendHead(current, leaves).root;
}

import { LedgerError } from '../../errors.js';
import type { ExternalHeadStore, LedgerStore, LogHead } from '../../ports/ledger/ledger-store.js';
import { EMPTY_HEAD, extendHead, rootOf } from '../proof/merkle.js';

const LEAVES_PER_BATCH = 1_024;

/**
 * Holds a ledger against the head that was written down beside it (D15).
 * @throws LedgerError LEDGER_BELOW_HEAD when it is shorter, or another, than the head vouches for; LEDGER_TAMPERED
 * when there is no head to hold it against, where an empty ledger needs none, its making may have been cut short; and
 * when its own head is not of one piece: what is committed next would go on from a log that is not there
 * @param acceptMissing takes the store's own head where none was written down yet
 */
export async function checkExternalHead(
  store: LedgerStore,
  headStore: Pick<ExternalHeadStore, 'read'>,
  { acceptMissing = false }: { readonly acceptMissing?: boolean } = {},
): Promise<void> {
  // First: the ledger may grow while this reads, and its head file never overtakes it.
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
  if (rootOf(head.frontier) !== head.root || (await readLastIndex(store, head.size)) !== head.size - 1) {
    throw new LedgerError({
      code: 'LEDGER_TAMPERED',
      message:
        `the ledger does not end as its own head says (${head.size} entries): restore it from a backup, ` +
        'and run `turnpike ledger verify`',
    });
  }
}

/** The index of the last entry of the log, archived or not, which is looked for where one of this size has it. */
async function readLastIndex(store: LedgerStore, size: number): Promise<number> {
  const archived = (await store.archives.parts()).at(-1)?.size ?? 0;
  let last = archived - 1;
  for await (const { log_index } of store.log(Math.max(archived, size - 1))) last = log_index;
  return last;
}

/**
 * After a crash the ledger may be ahead of its head file by the last commits; then the old root is made again.
 * @returns null where the entries are archived: before they were, a later head was written
 */
async function computeRootAt(store: LedgerStore, head: LogHead, size: number): Promise<string | null> {
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

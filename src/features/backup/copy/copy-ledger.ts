import { nameInLedger } from '../../../core/contract/entry-name.js';
import { LedgerError } from '../../../core/errors.js';
import { EMPTY_HEAD, extendHead } from '../../../core/ledger/proof/merkle.js';
import type { CopyPages, LedgerCopySource, LedgerCopyTarget } from '../../../engine/ports/ledger/ledger-copy.js';
import type { LedgerStore, LogHead } from '../../../engine/ports/ledger/ledger-store.js';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';
import { readRecovery } from './copied-recovery.js';

/** Unfinished trees in one page. */
const PAGE_TREES = 64;
const HASH_BYTES = 32;

/** What was copied so far. */
export interface CopyCounts {
  entries: number;
  trees: number;
  contents: number;
}

/** Receives the counts after each page, and the number of entries of the source. */
export type CopyProgress = (counts: Readonly<CopyCounts>, entries: number) => void;

/** Who learns how far a copy is. */
export interface CopyListeners {
  readonly onProgress?: CopyProgress;
  readonly progress?: ProgressReporter;
}

/**
 * Copies all rows of a ledger in pages, in the order of its log. Holds one page in memory.
 * @param store the store of the source, for trees that must be folded; null if the target needs no leases
 * @returns the counts and the head
 * @throws LedgerError LEDGER_TAMPERED if the log of the source has not the root that the source states
 */
export async function copyLedger(
  source: LedgerCopySource,
  store: LedgerStore | null,
  target: LedgerCopyTarget,
  { onProgress = () => undefined, progress = NO_PROGRESS }: CopyListeners,
): Promise<CopyCounts & { readonly head: LogHead }> {
  const head = await source.head();
  const counts: CopyCounts = { entries: 0, trees: 0, contents: 0 };
  progress.begin({ label: 'copying contents', unit: 'contents', total: null });
  for await (const page of source.contents()) {
    await target.addContents(page);
    counts.contents += page.length;
    onProgress(counts, head.size);
    progress.advance(page.length);
  }
  progress.begin({ label: 'copying entries', unit: 'entries', total: head.size });
  let log: LogHead = EMPTY_HEAD;
  for await (const page of source.blocks()) {
    if (page[0]?.log_index !== log.size) throw differentLogError(log.size);
    log = extendHead(
      log,
      page.flatMap(({ leaf_hashes }) => hashesOf(leaf_hashes)),
    );
    await target.addBlocks(page);
    progress.advance(log.size - counts.entries);
    counts.entries = log.size;
    onProgress(counts, head.size);
  }
  if (log.size !== head.size || log.root !== head.root) throw differentLogError(log.size);
  await copyPages(source.trees(), async (page) => {
    await target.addTrees(page);
    counts.trees += page.length;
  });
  await copyPages(source.marks(), (page) => target.addMarks(page));
  await copyPages(source.records(), (page) => target.addRecords(page));
  await copyPages(source.unrecorded(), (page) => target.addUnrecorded(page));
  if (store !== null) await copyRecovery(store, target);
  await target.finish(head);
  return { ...counts, head };
}

async function copyPages<Row>(pages: CopyPages<Row>, add: (page: readonly Row[]) => Promise<void>): Promise<void> {
  for await (const page of pages) await add(page);
}

async function copyRecovery(store: LedgerStore, target: LedgerCopyTarget): Promise<void> {
  if (target.addRecovery === undefined) return;
  let unfinished: string[] = [];
  const flush = async (): Promise<void> => {
    const page = [];
    for (const tree_id of unfinished) page.push(await readRecovery(store, tree_id));
    unfinished = [];
    await target.addRecovery?.(page.filter((recovery) => recovery !== null));
  };
  for await (const tree of store.openTrees()) {
    if (tree.unfinished && unfinished.push(tree.tree_id) >= PAGE_TREES) await flush();
  }
  await flush();
}

function hashesOf(leaf_hashes: Uint8Array): readonly string[] {
  const bytes = Buffer.from(leaf_hashes.buffer, leaf_hashes.byteOffset, leaf_hashes.byteLength);
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, n) =>
    bytes.toString('hex', n * HASH_BYTES, (n + 1) * HASH_BYTES),
  );
}

const differentLogError = (size: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `the log is not what its head states, from entry ${nameInLedger(size)} on: run \`turnpike ledger verify\` on the source`,
  });

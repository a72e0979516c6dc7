// Moves the beginning of a ledger to an archive file (decision 0021). The ledger loses nothing before the file is
// durable, was read again, and contains everything that is removed.

import { nameInLedger } from '../../core/contract/entry-name.js';
import type { LedgerVerdict } from '../../core/ledger/verification/ledger-verdict.js';
import { LedgerError, usageError } from '../../core/errors.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import { signArchiveNote, checkArchives } from '../../core/ledger/verification/check-archives.js';
import { EMPTY_HEAD } from '../../core/ledger/proof/merkle.js';
import type { NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { ArchiveDraft } from '../../engine/ports/ledger/archives.js';
import type { ExternalHeadStore, LedgerStore, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { countBundleReads, countReads } from '../../runtime/ledger/count-reads.js';
import { findBoundary, type ArchiveBoundary, type BoundaryBlocker } from './archive-boundary.js';
import { openEvidence, verifyEvidence } from '../../runtime/ledger/open-evidence.js';
import { writeEvidence } from './write-evidence.js';

/** A ledger whose writer lock this process holds, and which no other process uses. */
export interface LockedLedger {
  readonly store: LedgerStore;
  readonly epoch: number;
  readonly externalHeadStore: ExternalHeadStore;
  readonly signer: NoteSigner;
  /** @default none */
  readonly progress?: ProgressReporter;
}

export interface ArchiveResult {
  /** The archived entries: `from` to the one before `to`. None if both are equal. */
  readonly from: number;
  readonly to: number;
  readonly trees: number;
  /** Of the file; null if no file was written. */
  readonly sha256: string | null;
  /** The tree that keeps the boundary below the requested size. */
  readonly held: BoundaryBlocker | null;
  /** Whether the store was vacuumed. The entries are archived in either case. */
  readonly tidied: boolean;
}

/**
 * @throws LedgerError LEDGER_UNAVAILABLE if this kind of store cannot be archived
 * @throws LedgerError if the ledger does not match its head or fails its verification: then nothing may be moved
 */
export async function checkArchivable({
  store,
  externalHeadStore,
}: Pick<LockedLedger, 'store' | 'externalHeadStore'>): Promise<void> {
  requireArchives(store);
  await checkArchives(store, externalHeadStore);
  await checkExternalHead(store, externalHeadStore);
}

/** Before any work: a file that was written would be the first trace of an archive that never happens. */
function requireArchives({ archives: { obstacle } }: LedgerStore): void {
  if (obstacle !== undefined) throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: obstacle });
}

/**
 * Archives as much as possible up to `before`, of what the last checkpoint covers. Run records must have been written:
 * a tree without them stays.
 * @throws LedgerError, UsageError; then the ledger is unchanged
 */
export async function archiveLedger(
  ledger: LockedLedger,
  before: number | null,
  draft: () => Promise<ArchiveDraft>,
): Promise<ArchiveResult> {
  const { store } = ledger;
  const { from, boundary } = await findArchiveBoundary(ledger, before);
  const { head, trees, held } = boundary;
  if (head.size === from) {
    return { from, to: from, trees: 0, sha256: null, held, tidied: await reclaimSpace(store) };
  }
  const file = await draft();
  try {
    const sha256 = await writeArchive(ledger, boundary, file);
    await finishArchive(ledger, boundary, file, sha256);
    return { from, to: head.size, trees: trees.length, sha256, held, tidied: await reclaimSpace(store) };
  } finally {
    await file.close();
  }
}

/** What an archive up to `before` would move: entries, and the cases that they belong to. */
export interface ArchivePlan {
  readonly from: number;
  readonly size: number;
  readonly root: string;
  readonly cases: readonly string[];
  readonly held: BoundaryBlocker | null;
}

/** @throws LedgerError, UsageError */
export async function planArchive(ledger: LockedLedger, before: number | null): Promise<ArchivePlan> {
  const { from, boundary } = await findArchiveBoundary(ledger, before);
  const { head, cases, held } = boundary;
  return { from, size: head.size, root: head.root, cases: cases.toSorted(), held };
}

async function findArchiveBoundary(
  { store, externalHeadStore, progress = NO_PROGRESS }: LockedLedger,
  before: number | null,
): Promise<{ readonly from: number; readonly boundary: ArchiveBoundary }> {
  requireArchives(store);
  const signedSize = (await externalHeadStore.read())?.size ?? 0;
  if (before !== null && before > signedSize) {
    throw usageError(`the last checkpoint covers ${signedSize} entries: no others can be archived`);
  }
  const from = (await store.archives.parts()).at(-1)?.size ?? 0;
  if (before !== null && before < from) throw usageError(`the first ${from} entries have already been archived`);
  const counted = countReads(store, progress, { label: 'looking for the boundary' });
  return { from, boundary: await findBoundary(counted, before ?? signedSize) };
}

/** Writes the file and verifies it. @returns its hash */
async function writeArchive(
  { store, signer, progress = NO_PROGRESS }: LockedLedger,
  { head }: ArchiveBoundary,
  file: ArchiveDraft,
): Promise<string> {
  const counted = countReads(store, progress, { label: 'writing the archive', end: head.size });
  await writeEvidence(counted, head, signer, (line) => file.write(line));
  progress.begin({ label: 'verifying the archive', unit: 'entries', total: null });
  const { file: lines, sha256 } = await file.read();
  const evidence = countBundleReads(await openEvidence(lines, signer), progress, 'verifying the archive');
  const found = await evidence.head();
  const begin: LogHead | undefined = (await store.archives.parts()).at(-1);
  const isSameLedger =
    found.size === head.size && found.root === head.root && evidence.begin.root === (begin ?? EMPTY_HEAD).root;
  const verdict = await verifyEvidence(evidence, { replay: false });
  // Erased content stays erased in the archive, which is as complete as the ledger was.
  if (isSameLedger && verdict.verdict !== 'refused') return sha256;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message: `nothing was archived: ${describeProblem(verdict)}` });
}

function describeProblem(verdict: LedgerVerdict): string {
  const [first] = verdict.verdict === 'refused' ? verdict.problems : [];
  const what =
    first === undefined
      ? ''
      : ` (${first.log_index === null ? 'an entry' : nameInLedger(first.log_index)}: ${first.message})`;
  return `what was read is not what the ledger was${what}; run \`turnpike ledger verify\``;
}

/** The file gets its name, and then the entries leave the ledger. */
async function finishArchive(
  { store, epoch, externalHeadStore, signer }: LockedLedger,
  { head, trees, cases }: ArchiveBoundary,
  file: ArchiveDraft,
  sha256: string,
): Promise<void> {
  // Twice, so that neither slot of the head file describes a time before: its entries would be missing for comparison.
  const latest = await store.head();
  await externalHeadStore.write(latest);
  await externalHeadStore.write(latest);
  await file.publish();
  const part = { ...head, sha256, note: signArchiveNote(head, sha256, signer) };
  await store.archives.remove({ epoch, part, trees, cases });
}

const reclaimSpace = (store: LedgerStore): Promise<boolean> =>
  store.archives.tidy().then(
    () => true,
    () => false,
  );

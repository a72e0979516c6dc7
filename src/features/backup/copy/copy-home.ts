// Copies a ledger with its keys, local state and sandbox to another store (decision 0044).
//
//   M1. The target is marked before anything is written, and the mark is removed last. Until then nothing opens it.
//   M2. A copy that was interrupted starts again: the source may have changed in between, for example by an erasure.
//   M3. The keys are copied before the contents that they encrypt.
//   M4. The copy is verified like any ledger, against the head file of the source. If it does not verify, it stays an
//       unfinished copy.
//   M5. The source is marked as copied before the copy can be opened. So there is no moment at which both are written.

import { LedgerError, usageError } from '../../../core/errors.js';
import type { LedgerVerdict } from '../../../core/ledger/verification/ledger-verdict.js';
import type { LogHead } from '../../../engine/ports/ledger/ledger-store.js';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';
import { countReads } from '../../../runtime/ledger/count-reads.js';
import { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import { openHead } from '../../../home/home.js';
import { copyLedger, type CopyCounts, type CopyProgress } from './copy-ledger.js';
import { locationText, type LedgerLocation } from '../../../home/ledger-location.js';
import { readCopyMarker, removeCopyMarker, writeCopyMarker } from '../../../home/copy-marker.js';
import { openCopySource, type OpenCopySource } from './copy-source.js';
import {
  claimTarget,
  clearTarget,
  copyFiles,
  createCopyTarget,
  installCopy,
  isPublished,
  openCopy,
  requireKey,
} from './copy-target.js';

/** What to copy, and how. */
export interface CopyHomeOptions {
  readonly from: LedgerLocation;
  readonly to: LedgerLocation;
  /** Whether the files of the sandbox are copied. @default true */
  readonly sandbox?: boolean;
  /** Whether the verification replays the state machines. @default true */
  readonly replay?: boolean;
  /** Whether the source is opened for writing after the copy, for a copy that is never written. @default false */
  readonly keepSource?: boolean;
  readonly onProgress?: CopyProgress;
  /** Receives how far the copy and its verification are. @default none */
  readonly progress?: ProgressReporter;
}

/** What was copied. */
export interface CopyReport extends Pick<CopyCounts, 'entries' | 'trees'> {
  readonly from: string;
  readonly to: string;
  /** The root of the log. */
  readonly root: string;
  /** If it is `refused`, the copy stays marked as unfinished. */
  readonly verdict: LedgerVerdict;
}

/** See index.ts. */
export async function copyHome(options: CopyHomeOptions): Promise<CopyReport> {
  const { from, to } = options;
  const names = { from: locationText(from), to: locationText(to) };
  if (names.from === names.to || from.paths.home === to.paths.home) {
    throw usageError('the copy needs another place, and another folder, than the ledger that it copies');
  }
  requireKey(from, to);
  const source = await openCopySource(from);
  try {
    refuseOtherCopy(source, names);
    const lock = claimTarget(to, names.from);
    try {
      const copied = (await finishPublished(options, names, source)) ?? (await copyAll(options, names, source));
      return { ...names, ...copied };
    } finally {
      lock.release();
    }
  } finally {
    await source.close();
  }
}

/** See index.ts. */
export async function reopenHome(location: LedgerLocation): Promise<string | null> {
  const source = await openCopySource(location);
  try {
    if (source.copiedTo !== null) await source.mark(null);
    return source.copiedTo;
  } finally {
    await source.close();
  }
}

interface CopyNames {
  readonly from: string;
  readonly to: string;
}

/** A copy to the same place was interrupted after the mark. */
function refuseOtherCopy({ copiedTo }: OpenCopySource, { from, to }: CopyNames): void {
  if (copiedTo === null || copiedTo === to) return;
  const message = `${from} was copied to ${copiedTo}, and continues there: copy that one, or run \`turnpike home reopen\``;
  throw new LedgerError({ code: 'LEDGER_COPIED', message });
}

type CopyResult = Omit<CopyReport, 'from' | 'to'>;

async function copyAll(options: CopyHomeOptions, names: CopyNames, opened: OpenCopySource): Promise<CopyResult> {
  const { from, to, sandbox = true, keepSource = false, onProgress = () => undefined } = options;
  const { progress = NO_PROGRESS } = options;
  const { store, source } = opened;
  await clearTarget(to);
  progress.begin({ label: 'copying files', unit: 'files', total: null });
  await copyFiles(from, to, sandbox);
  const target = await createCopyTarget(to, names.from);
  try {
    const { head, entries, trees } = await copyLedger(source, store, target, { onProgress, progress });
    const verdict = await verifyCopy(to, options);
    const copied = { entries, trees, root: head.root, verdict };
    if (verdict.verdict === 'refused') return copied;
    await writeHead(to, head);
    await installCopy(to);
    if (!keepSource) await markSource(opened, names.to);
    writeCopyMarker(to.paths.home, { source: names.from, verified: head.root });
    await target.publish();
    await removeCopyMarker(to.paths.home);
    return copied;
  } finally {
    await target.close();
  }
}

/** M5: once the mark is there no process can join, so a lock that was never lost proves that none has written. */
async function markSource({ mark, confirmLock }: OpenCopySource, target: string): Promise<void> {
  await mark(target);
  try {
    await confirmLock();
  } catch (error) {
    await mark(null);
    throw error;
  }
}

/** Finishes a copy that was interrupted between its two last writes: only the mark of the folder is left. */
async function finishPublished(
  { to, keepSource = false, ...options }: CopyHomeOptions,
  names: CopyNames,
  opened: OpenCopySource,
): Promise<CopyResult | null> {
  const { root } = await opened.source.head();
  if (readCopyMarker(to.paths.home)?.verified !== root || !(await isPublished(to))) return null;
  const verdict = await verifyCopy(to, options);
  if (verdict.verdict === 'refused') return null;
  if (!keepSource) await markSource(opened, names.to);
  await removeCopyMarker(to.paths.home);
  return { entries: verdict.entries, trees: verdict.trees, root: verdict.root, verdict };
}

/** Compares the copy with the head file of the source, too. */
async function verifyCopy(
  to: LedgerLocation,
  { replay = true, progress = NO_PROGRESS }: Pick<CopyHomeOptions, 'replay' | 'progress'>,
): Promise<LedgerVerdict> {
  const store = countReads(await openCopy(to), progress, { label: 'verifying the copy' });
  const { externalHeadStore } = openHead(to.paths, { readOnly: true });
  try {
    return await new LedgerReader(store, externalHeadStore).verify({ replay });
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}

async function writeHead({ paths }: LedgerLocation, head: LogHead): Promise<void> {
  const { externalHeadStore } = openHead(paths, { readOnly: false });
  try {
    await externalHeadStore.write(head);
  } finally {
    await externalHeadStore.close();
  }
}

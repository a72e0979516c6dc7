// Writes the signed overlay file: one command at a time, each with the next epoch.

import { closeSync, lstatSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Overlay, OverlayRule } from '../../core/contract/policy/overlay.js';
import { PolicyError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import {
  isSuccessor,
  OVERLAY_BYTES_MAX,
  readSeenEpoch,
  seenEpochOf,
  signOverlay,
  verifyOverlay,
  writeSeenEpoch,
  type OverlayFiles,
} from './overlay-file.js';
import { openSigningKey, readVerifyingKey } from '../../stores/keys/signing-key.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';

const LOCK_WAIT_MS = 5_000;
const LOCK_STEP_MS = 20;

/** The overlay in force, or null if there never was one. @throws PolicyError if a process would not trust it */
export function readOverlay({ path, publicKeyPath, seenPath }: OverlayFiles): Overlay | null {
  const seen = readSeenEpoch(seenPath);
  const bytes = readSmallFile(path, { bytesMax: OVERLAY_BYTES_MAX });
  if (bytes === null) {
    if (seen === null && !isPresent(publicKeyPath)) return null;
    throw new PolicyError({ code: 'POLICY_UNREADABLE', message: `the overlay ${path} is missing: put it back` });
  }
  const overlay = verifyOverlay(bytes, readVerifyingKey(publicKeyPath));
  if (seen === null || isSuccessor(seenEpochOf(overlay), seen)) return overlay;
  throw new PolicyError({
    code: 'POLICY_INVALID',
    message: `the overlay ${path} has epoch ${overlay.epoch} and is not the one of epoch ${seen.epoch} that was seen`,
  });
}

export interface OverlayChange {
  readonly issued_at_utc: string;
  /**
   * Continues if the overlay or its key is lost or damaged: drops rules that cannot be trusted, creates a missing key,
   * and uses the epoch after the highest known one. Default: false.
   */
  readonly repair?: boolean;
  /** How long to wait for another command that writes, in ms. Default: 5,000. */
  readonly lockWaitMs?: number;
  /** Returns the new rules, given the current ones and the next epoch. If it throws, nothing changes. */
  readonly rules: (former: readonly OverlayRule[], epoch: number) => readonly OverlayRule[];
}

/**
 * Signs the next overlay and replaces the file; it is durable when this resolves. Creates the key on first use.
 * @throws PolicyError if the overlay in force or its key cannot be trusted, or another command holds the lock too long
 */
export async function writeOverlay(files: OverlayFiles, change: OverlayChange): Promise<Overlay> {
  mkdirSync(dirname(files.lockPath), { recursive: true, mode: 0o700 });
  return withLock(files.lockPath, change.lockWaitMs ?? LOCK_WAIT_MS, () => writeNext(files, change));
}

function writeNext(files: OverlayFiles, { issued_at_utc, repair = false, rules }: OverlayChange): Overlay {
  // Restores a missing public key, which is needed to read the overlay.
  if (isPresent(files.privateKeyPath)) attempt(repair, () => openSigningKey({ ...files, make: false }));
  const { former, first } = formerOf(files, repair);
  const epoch = former.epoch + 1;
  const next: Overlay = { epoch, issued_at_utc, rules: [...rules(former.rules, epoch)] };
  const key = openSigningKey({ ...files, make: repair || (first && !isPresent(files.publicKeyPath)) });
  replaceFile(files.path, signOverlay(next, key), 0o600);
  // Only now: a seen epoch without its overlay would deny everything.
  writeSeenEpoch(files.seenPath, seenEpochOf(next));
  return next;
}

type FormerOverlay = Pick<Overlay, 'epoch' | 'rules'>;

/** The overlay before the next one, and whether the next one is the first. */
function formerOf(files: OverlayFiles, repair: boolean): { readonly former: FormerOverlay; readonly first: boolean } {
  const first = !isPresent(files.path) && !isPresent(files.seenPath);
  if (first) return { former: { epoch: 0, rules: [] }, first };
  const former = attempt<FormerOverlay | null>(repair, () => readOverlay(files));
  return { former: former ?? { epoch: highestEpoch(files), rules: [] }, first };
}

/** The highest epoch that a valid overlay or the stored epoch proves; damaged files prove none. */
function highestEpoch({ path, publicKeyPath, seenPath }: OverlayFiles): number {
  const seen = attempt(true, () => readSeenEpoch(seenPath));
  const there = attempt(true, () => {
    const bytes = readSmallFile(path, { bytesMax: OVERLAY_BYTES_MAX });
    return bytes === null ? null : verifyOverlay(bytes, readVerifyingKey(publicKeyPath));
  });
  return Math.max(seen?.epoch ?? 0, there?.epoch ?? 0);
}

/** The result of `work`; null for a PolicyError if `lenient`. */
function attempt<T>(lenient: boolean, work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (lenient && error instanceof PolicyError) return null;
    throw error;
  }
}

/** Whether the name exists, even as a broken link. */
const isPresent = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

async function withLock<T>(path: string, waitMs: number, work: () => T): Promise<T> {
  const since = performance.now();
  while (!tryLock(path)) {
    if (performance.now() - since >= waitMs) {
      throw new PolicyError({
        code: 'POLICY_UNREADABLE',
        message: `another command is changing the overlay; if none is, remove ${path}`,
      });
    }
    await setTimeout(LOCK_STEP_MS);
  }
  try {
    return work();
  } finally {
    rmSync(path, { force: true });
  }
}

function tryLock(path: string): boolean {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'wx', 0o600);
  } catch (cause) {
    if (errorCode(cause) === 'EEXIST') return false;
    throw new PolicyError({ code: 'POLICY_UNREADABLE', message: `the lock ${path} cannot be made`, cause });
  }
  try {
    writeSync(descriptor, `${process.pid}\n`);
  } finally {
    closeSync(descriptor);
  }
  return true;
}

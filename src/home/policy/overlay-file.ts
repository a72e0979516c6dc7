// Reads the signed overlay file.
//
//   O1. Its text is canonical, so a signed overlay has exactly one text, and every other text is refused.
//   O2. The epoch never goes back. The highest epoch seen is stored in the process, and next to the keys for the next
//       process.
//   O3. An untrusted file denies everything, until there is a valid file with that epoch or a higher one.

import { lstatSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { readJson, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import {
  SignedOverlay,
  type ComparedRule,
  type Overlay,
  type OverlayFact,
  type OverlayProblem,
  type OverlayRule,
  type SignedOverlay as SignedOverlayFile,
} from '../../core/contract/policy/overlay.js';
import { isConforming } from '../../core/contract/validators.js';
import { PolicyError } from '../../core/errors.js';
import type { OverlaySource } from '../../engine/ports/policy-sources.js';
import { errorCode } from '../../system/error-code.js';
import { readVerifyingKey, type SigningKey, type VerifyingKey } from '../../stores/keys/signing-key.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';

/** Largest overlay file, in bytes. The schema allows less. */
export const OVERLAY_BYTES_MAX = 262_144;
const SEEN_BYTES_MAX = 256;
/** File-system times have ticks of up to 10 ms: within this time a further change may leave them unchanged. */
const SETTLED_MS = 50;
/** Domain separation: no other signature by the same key is a valid signature of an overlay. */
const DOMAIN = 'turnpike overlay v1\n';
const SEEN = /^turnpike-overlay-seen 1 ([1-9]\d{0,8}) ([0-9a-f]{64})\n$/;

/** The paths of all files of an overlay. */
export interface OverlayFiles {
  readonly path: string;
  readonly privateKeyPath: string;
  readonly publicKeyPath: string;
  /** Stores the highest epoch that any process has read. */
  readonly seenPath: string;
  readonly lockPath: string;
}

/** The files of the overlay at `path`, with keys in the folder `keys`. */
export const overlayFiles = (path: string, keys: string): OverlayFiles => ({
  path,
  privateKeyPath: join(keys, 'overlay.key'),
  publicKeyPath: join(keys, 'overlay.pub'),
  seenPath: join(keys, 'overlay.seen'),
  lockPath: join(keys, 'overlay.lock'),
});

/** Signs an overlay. @returns the text of the file @throws PolicyError POLICY_INVALID for an invalid overlay */
export function signOverlay(overlay: Overlay, key: SigningKey): string {
  const signature = key.sign(DOMAIN + canonicalJson(overlay));
  const text = `${canonicalJson({ overlay, key_id: key.key_id, signature } satisfies SignedOverlayFile)}\n`;
  verifyOverlay(Buffer.from(text), key);
  return text;
}

/** Verifies the text of an overlay file. @throws PolicyError POLICY_INVALID unless this key signed exactly this text */
export function verifyOverlay(bytes: Uint8Array, key: VerifyingKey): Overlay {
  if (bytes.byteLength > OVERLAY_BYTES_MAX) throw invalidOverlayError('is too large');
  const value = readJson(bytes);
  if (value === undefined) throw invalidOverlayError('is not JSON');
  const text = Buffer.from(bytes).toString('utf8');
  if (!isSignedOverlay(value)) throw invalidOverlayError('does not match the overlay schema');
  const { overlay, key_id, signature } = value;
  const canonical = canonicalOf(overlay);
  if (`{"key_id":"${key_id}","overlay":${canonical},"signature":"${signature}"}\n` !== text) {
    throw invalidOverlayError('is not in its canonical form');
  }
  if (new Set(overlay.rules.map(({ rule_id }) => rule_id)).size !== overlay.rules.length) {
    throw invalidOverlayError('names a rule twice');
  }
  if (key_id !== key.key_id || !key.verify(DOMAIN + canonical, signature))
    throw invalidOverlayError('is not signed by the key');
  return overlay;
}

const isSignedOverlay = (value: unknown): value is SignedOverlayFile => isConforming(SignedOverlay, value);

function canonicalOf(overlay: Overlay): string {
  try {
    return canonicalJson(overlay);
  } catch (cause) {
    throw invalidOverlayError('is not in its canonical form', cause);
  }
}

const invalidOverlayError = (why: string, cause?: unknown): PolicyError =>
  new PolicyError({ code: 'POLICY_INVALID', message: `the overlay ${why}`, cause });

/** An epoch, and the hash of its only overlay. */
export interface SeenEpoch {
  readonly epoch: number;
  readonly hash: string;
}

export const seenEpochOf = (overlay: Overlay): SeenEpoch => ({
  epoch: overlay.epoch,
  hash: sha256(canonicalJson(overlay)),
});

/** Whether `now` may follow `before`: a later epoch, or the same overlay. */
export const isSuccessor = (now: SeenEpoch, before: SeenEpoch): boolean =>
  now.epoch > before.epoch || (now.epoch === before.epoch && now.hash === before.hash);

/** @returns the stored epoch, or null if no epoch is stored @throws PolicyError for a damaged file */
export function readSeenEpoch(path: string): SeenEpoch | null {
  const bytes = readSmallFile(path, { bytesMax: SEEN_BYTES_MAX });
  if (bytes === null) return null;
  const [, epoch, hash] = SEEN.exec(Buffer.from(bytes).toString('latin1')) ?? [];
  if (epoch !== undefined && hash !== undefined) return { epoch: Number(epoch), hash };
  throw new PolicyError({ code: 'POLICY_INVALID', message: `${path} is damaged: put back what was there` });
}

export const writeSeenEpoch = (path: string, { epoch, hash }: SeenEpoch): void =>
  replaceFile(path, `turnpike-overlay-seen 1 ${epoch} ${hash}\n`, 0o600);

/**
 * The overlay file at `path`, verified with the public key. `overlay.seen` next to that key stores the highest epoch.
 * While the files are unchanged, a call of `current` costs one or two stats.
 * @param toCompared adds the person that a rule names; called for each rule of an overlay that is read. Default: none
 *   is added.
 */
export const overlayFile = (files: ReadOverlayFiles, toCompared: RuleComparison = (rule) => rule): OverlaySource =>
  new WatchedOverlayFile(files, toCompared);

type ReadOverlayFiles = Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>;
type RuleComparison = (rule: OverlayRule) => ComparedRule;

/** Detects changes of a path: differs when the file was replaced or written. A text if there are no stats. */
type FileStamp = BigIntStats | string;
const ABSENT = 'absent';

class WatchedOverlayFile implements OverlaySource {
  readonly #files: ReadOverlayFiles;
  readonly #toCompared: RuleComparison;
  #fact: OverlayFact | null = null;
  /** While these paths have these stamps, the cached fact is valid. Empty: the next call reads the files again. */
  #watched: readonly (readonly [path: string, mark: FileStamp])[] = [];
  #highest: SeenEpoch | null = null;
  /** Whether the path has ever existed. */
  #hasExisted = false;

  constructor(files: ReadOverlayFiles, toCompared: RuleComparison) {
    this.#files = files;
    this.#toCompared = toCompared;
  }

  current(): OverlayFact | null {
    if (this.#watched.length > 0 && this.#watched.every(([path, stamp]) => isSameStamp(fileStampOf(path), stamp)))
      return this.#fact;
    const { path, publicKeyPath, seenPath } = this.#files;
    // Stamps are taken before the read: a change in between is detected at the next call.
    const now = Date.now();
    const stamped = [path, seenPath, publicKeyPath].map((each) => [each, fileStampOf(each)] as const);
    this.#hasExisted ||= stamped[0]?.[1] !== ABSENT;
    const { fact, paths } = this.#readFiles();
    this.#fact = fact;
    const watched = stamped.slice(0, paths);
    this.#watched = watched.every(([, stamp]) => isSettled(stamp, now)) ? watched : [];
    return fact;
  }

  /** Reads the files. @returns the fact, and how many of the paths, from the overlay on, it depends on */
  #readFiles(): { readonly fact: OverlayFact | null; readonly paths: 0 | 1 | 2 | 3 } {
    const { path, publicKeyPath, seenPath } = this.#files;
    try {
      const remembered = readSeenEpoch(seenPath);
      const bytes = readSmallFile(path, { bytesMax: OVERLAY_BYTES_MAX });
      if (bytes === null) {
        const isUnused = !this.#hasExisted && remembered === null && fileStampOf(publicKeyPath) === ABSENT;
        // The first key is created just before the first overlay: by itself it is no reason to read again.
        return isUnused ? { fact: null, paths: 2 } : { fact: unusableFact('missing'), paths: 3 };
      }
      this.#hasExisted = true;
      const overlay = verifyOverlay(bytes, readVerifyingKey(publicKeyPath));
      const seen = seenEpochOf(overlay);
      if ([remembered, this.#highest].some((before) => before !== null && !isSuccessor(seen, before))) {
        return { fact: unusableFact('rolled_back'), paths: 3 };
      }
      const unchanged = this.#fact?.epoch === seen.epoch;
      this.#highest = seen;
      if (remembered?.epoch !== seen.epoch && !tryWriteSeenEpoch(seenPath, seen)) {
        return { fact: unusableFact('invalid'), paths: 0 };
      }
      if (unchanged) return { fact: this.#fact, paths: 1 };
      return { fact: { epoch: overlay.epoch, rules: overlay.rules.map(this.#toCompared) }, paths: 1 };
    } catch {
      return { fact: unusableFact('invalid'), paths: 3 };
    }
  }
}

const unusableFact = (problem: OverlayProblem): OverlayFact => ({ epoch: null, problem });

/** An epoch that could not be stored does not count, because the next process would not know it. */
function tryWriteSeenEpoch(path: string, seen: SeenEpoch): boolean {
  try {
    writeSeenEpoch(path, seen);
    return true;
  } catch {
    return false;
  }
}

function fileStampOf(path: string): FileStamp {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? ABSENT;
  } catch (error) {
    return `error ${errorCode(error)}`;
  }
}

const isSettled = (stamp: FileStamp, now: number): boolean =>
  typeof stamp === 'string' || now - Number(stamp.ctimeMs) > SETTLED_MS;

function isSameStamp(now: FileStamp, before: FileStamp): boolean {
  if (typeof now === 'string' || typeof before === 'string') return now === before;
  return (
    now.ino === before.ino &&
    now.size === before.size &&
    now.mtimeNs === before.mtimeNs &&
    // A program can set the modification time, but not the change time.
    now.ctimeNs === before.ctimeNs &&
    now.dev === before.dev
  );
}

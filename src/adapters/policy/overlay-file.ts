// The signed overlay file, as it is read.
//
//   O1. Its text is canonical, so a signed overlay has one text, and whatever else lies there is refused.
//   O2. The epoch never goes back. The highest one seen is kept in the process, and beside the keys for the next one.
//   O3. What cannot be trusted denies everything, until there is a valid file of that epoch or a higher one.

import { lstatSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson } from '../../contract/canonical-json.js';
import { sha256 } from '../../contract/hash.js';
import {
  SignedOverlay,
  type Overlay,
  type OverlayFact,
  type OverlayProblem,
  type SignedOverlay as SignedOverlayFile,
} from '../../contract/policy/overlay.js';
import { isConforming } from '../../contract/validators.js';
import { PolicyError } from '../../errors.js';
import type { OverlaySource } from '../../ports/overlay-source.js';
import { errorCode } from '../system/error-code.js';
import { readVerifyingKey, type SigningKey, type VerifyingKey } from '../keys/signing-key.js';
import { readSmallFile, replaceFile } from '../files/small-file.js';

/** Largest overlay file, in bytes. The most that the schema allows is smaller. */
export const OVERLAY_BYTES_MAX = 262_144;
const SEEN_BYTES_MAX = 256;
/** The times of a file system go by ticks of up to 10 ms: a file that was changed just now may change unseen. */
const SETTLED_MS = 50;
/** So that a signature of something else by the same key is never one of an overlay. */
const DOMAIN = 'turnpike overlay v1\n';
const SEEN = /^turnpike-overlay-seen 1 ([1-9]\d{0,8}) ([0-9a-f]{64})\n$/;

/** Where everything that belongs to an overlay lies. */
export interface OverlayFiles {
  readonly path: string;
  readonly privateKeyPath: string;
  readonly publicKeyPath: string;
  /** The highest epoch that anybody has seen. */
  readonly seenPath: string;
  readonly lockPath: string;
}

/** The files of the overlay at `path` whose keys lie in the folder `keys`. */
export const overlayFiles = (path: string, keys: string): OverlayFiles => ({
  path,
  privateKeyPath: join(keys, 'overlay.key'),
  publicKeyPath: join(keys, 'overlay.pub'),
  seenPath: join(keys, 'overlay.seen'),
  lockPath: join(keys, 'overlay.lock'),
});

/** The text of the signed file. @throws PolicyError POLICY_INVALID for what is no overlay */
export function signOverlay(overlay: Overlay, key: SigningKey): string {
  const signature = key.sign(DOMAIN + canonicalJson(overlay));
  const text = `${canonicalJson({ overlay, key_id: key.key_id, signature } satisfies SignedOverlayFile)}\n`;
  verifyOverlay(Buffer.from(text), key);
  return text;
}

/** The overlay in these bytes. @throws PolicyError POLICY_INVALID unless they are exactly what this key has signed */
export function verifyOverlay(bytes: Uint8Array, key: VerifyingKey): Overlay {
  if (bytes.byteLength > OVERLAY_BYTES_MAX) throw invalidOverlayError('is too large');
  let value: unknown;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidOverlayError('is not JSON', cause);
  }
  if (!isSignedOverlay(value)) throw invalidOverlayError('is no overlay');
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

/** An epoch, and the hash of the one overlay that has it. */
export interface SeenEpoch {
  readonly epoch: number;
  readonly hash: string;
}

export const seenEpochOf = (overlay: Overlay): SeenEpoch => ({
  epoch: overlay.epoch,
  hash: sha256(canonicalJson(overlay)),
});

/** May what is here now follow what was seen before? */
export const isSuccessor = (now: SeenEpoch, before: SeenEpoch): boolean =>
  now.epoch > before.epoch || (now.epoch === before.epoch && now.hash === before.hash);

/** @throws PolicyError for a file that is damaged */
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
 * The overlay file at `path`, verified by the public key. Beside that key, `overlay.seen` keeps the highest epoch.
 * Where nothing has changed for a moment, being asked costs one or two stats.
 */
export const overlayFile = (files: Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>): OverlaySource =>
  new WatchedOverlayFile(files);

/** How a path looks from outside: differs when what is there was replaced or written to. Text where it has no stat. */
type FileStamp = BigIntStats | string;
const ABSENT = 'absent';

class WatchedOverlayFile implements OverlaySource {
  readonly #files: Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>;
  #fact: OverlayFact | null = null;
  /** While these paths look as they did, the fact stands. Empty when it has to be found out at every call. */
  #watched: readonly (readonly [path: string, mark: FileStamp])[] = [];
  #highest: SeenEpoch | null = null;
  /** Whether anything ever lay at the path. */
  #hasExisted = false;

  constructor(files: Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>) {
    this.#files = files;
  }

  current(): OverlayFact | null {
    if (this.#watched.length > 0 && this.#watched.every(([path, stamp]) => isSameStamp(fileStampOf(path), stamp)))
      return this.#fact;
    const { path, publicKeyPath, seenPath } = this.#files;
    // Marked before it is read: what changes in between is seen the next time.
    const now = Date.now();
    const stamped = [path, seenPath, publicKeyPath].map((each) => [each, fileStampOf(each)] as const);
    this.#hasExisted ||= stamped[0]?.[1] !== ABSENT;
    const { fact, paths } = this.#readFiles();
    this.#fact = fact;
    const watched = stamped.slice(0, paths);
    this.#watched = watched.every(([, stamp]) => isSettled(stamp, now)) ? watched : [];
    return fact;
  }

  /** What the files say, and on how many of them, from the overlay on, that depends. */
  #readFiles(): { readonly fact: OverlayFact | null; readonly paths: 0 | 1 | 2 | 3 } {
    const { path, publicKeyPath, seenPath } = this.#files;
    try {
      const remembered = readSeenEpoch(seenPath);
      const bytes = readSmallFile(path, { bytesMax: OVERLAY_BYTES_MAX });
      if (bytes === null) {
        const isUnused = !this.#hasExisted && remembered === null && fileStampOf(publicKeyPath) === ABSENT;
        // The first key comes just before the first overlay: it alone is no reason to look again.
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
      return { fact: unchanged ? this.#fact : { epoch: overlay.epoch, rules: overlay.rules }, paths: 1 };
    } catch {
      return { fact: unusableFact('invalid'), paths: 3 };
    }
  }
}

const unusableFact = (problem: OverlayProblem): OverlayFact => ({ epoch: null, problem });

/** An epoch that the next process would not know of does not count. */
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
    // Unlike the time of modification, nobody can set that of the change.
    now.ctimeNs === before.ctimeNs &&
    now.dev === before.dev
  );
}

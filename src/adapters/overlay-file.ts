// The signed overlay file, as it is read.
//
//   O1. Its text is canonical, so a signed overlay has one text, and whatever else lies there is refused.
//   O2. The epoch never goes back. The highest one seen is kept in the process, and beside the keys for the next one.
//   O3. What cannot be trusted denies everything, until there is a valid file of that epoch or a higher one.

import { lstatSync, type BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson } from '../contract/canonical-json.js';
import { sha256 } from '../contract/hash.js';
import {
  SignedOverlay,
  type Overlay,
  type OverlayFact,
  type OverlayProblem,
  type SignedOverlay as SignedOverlayFile,
} from '../contract/overlay.js';
import { conforms } from '../contract/validators.js';
import { PolicyError } from '../errors.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import { errorCode } from './error-code.js';
import { readVerifyingKey, type SigningKey, type VerifyingKey } from './signing-key.js';
import { readSmallFile, replaceFile } from './small-file.js';

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
export function signedOverlay(overlay: Overlay, key: SigningKey): string {
  const signature = key.sign(DOMAIN + canonicalJson(overlay));
  const text = `${canonicalJson({ overlay, key_id: key.key_id, signature } satisfies SignedOverlayFile)}\n`;
  verifiedOverlay(Buffer.from(text), key);
  return text;
}

/** The overlay in these bytes. @throws PolicyError POLICY_INVALID unless they are exactly what this key has signed */
export function verifiedOverlay(bytes: Uint8Array, key: VerifyingKey): Overlay {
  if (bytes.byteLength > OVERLAY_BYTES_MAX) throw invalid('is too large');
  let value: unknown;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid('is not JSON', cause);
  }
  if (!isSignedOverlay(value)) throw invalid('is no overlay');
  const { overlay, key_id, signature } = value;
  const canonical = canonicalOf(overlay);
  if (`{"key_id":"${key_id}","overlay":${canonical},"signature":"${signature}"}\n` !== text) {
    throw invalid('is not in its canonical form');
  }
  if (new Set(overlay.rules.map(({ rule_id }) => rule_id)).size !== overlay.rules.length) {
    throw invalid('names a rule twice');
  }
  if (key_id !== key.key_id || !key.verify(DOMAIN + canonical, signature)) throw invalid('is not signed by the key');
  return overlay;
}

const isSignedOverlay = (value: unknown): value is SignedOverlayFile => conforms(SignedOverlay, value);

function canonicalOf(overlay: Overlay): string {
  try {
    return canonicalJson(overlay);
  } catch (cause) {
    throw invalid('is not in its canonical form', cause);
  }
}

const invalid = (why: string, cause?: unknown): PolicyError =>
  new PolicyError({ code: 'POLICY_INVALID', message: `the overlay ${why}`, cause });

/** An epoch, and the hash of the one overlay that has it. */
export interface Seen {
  readonly epoch: number;
  readonly hash: string;
}

export const seenOf = (overlay: Overlay): Seen => ({ epoch: overlay.epoch, hash: sha256(canonicalJson(overlay)) });

/** May what is here now follow what was seen before? */
export const follows = (now: Seen, before: Seen): boolean =>
  now.epoch > before.epoch || (now.epoch === before.epoch && now.hash === before.hash);

/** @throws PolicyError for a file that is damaged */
export function readSeen(path: string): Seen | null {
  const bytes = readSmallFile(path, { bytesMax: SEEN_BYTES_MAX });
  if (bytes === null) return null;
  const [, epoch, hash] = SEEN.exec(Buffer.from(bytes).toString('latin1')) ?? [];
  if (epoch !== undefined && hash !== undefined) return { epoch: Number(epoch), hash };
  throw new PolicyError({ code: 'POLICY_INVALID', message: `${path} is damaged: put back what was there` });
}

export const writeSeen = (path: string, { epoch, hash }: Seen): void =>
  replaceFile(path, `turnpike-overlay-seen 1 ${epoch} ${hash}\n`, 0o600);

/**
 * The overlay file at `path`, verified by the public key. Beside that key, `overlay.seen` keeps the highest epoch.
 * Where nothing has changed for a moment, being asked costs one or two stats.
 */
export const overlayFile = (files: Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>): OverlaySource =>
  new WatchedOverlayFile(files);

/** How a path looks from outside: differs when what is there was replaced or written to. Text where it has no stat. */
type Mark = BigIntStats | string;
const ABSENT = 'absent';

class WatchedOverlayFile implements OverlaySource {
  readonly #files: Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>;
  #fact: OverlayFact | null = null;
  /** While these paths look as they did, the fact stands. Empty when it has to be found out at every call. */
  #watched: readonly (readonly [path: string, mark: Mark])[] = [];
  #highest: Seen | null = null;
  /** Whether anything ever lay at the path. */
  #found = false;

  constructor(files: Pick<OverlayFiles, 'path' | 'publicKeyPath' | 'seenPath'>) {
    this.#files = files;
  }

  current(): OverlayFact | null {
    if (this.#watched.length > 0 && this.#watched.every(([path, mark]) => same(markOf(path), mark))) return this.#fact;
    const { path, publicKeyPath, seenPath } = this.#files;
    // Marked before it is read: what changes in between is seen the next time.
    const now = Date.now();
    const marked = [path, seenPath, publicKeyPath].map((each) => [each, markOf(each)] as const);
    this.#found ||= marked[0]?.[1] !== ABSENT;
    const { fact, paths } = this.#look();
    this.#fact = fact;
    const watched = marked.slice(0, paths);
    this.#watched = watched.every(([, mark]) => isSettled(mark, now)) ? watched : [];
    return fact;
  }

  /** What the files say, and on how many of them, from the overlay on, that depends. */
  #look(): { readonly fact: OverlayFact | null; readonly paths: 0 | 1 | 2 | 3 } {
    const { path, publicKeyPath, seenPath } = this.#files;
    try {
      const remembered = readSeen(seenPath);
      const bytes = readSmallFile(path, { bytesMax: OVERLAY_BYTES_MAX });
      if (bytes === null) {
        const never = !this.#found && remembered === null && markOf(publicKeyPath) === ABSENT;
        // The first key comes just before the first overlay: it alone is no reason to look again.
        return never ? { fact: null, paths: 2 } : { fact: unusable('missing'), paths: 3 };
      }
      this.#found = true;
      const overlay = verifiedOverlay(bytes, readVerifyingKey(publicKeyPath));
      const seen = seenOf(overlay);
      if ([remembered, this.#highest].some((before) => before !== null && !follows(seen, before))) {
        return { fact: unusable('rolled_back'), paths: 3 };
      }
      const unchanged = this.#fact?.epoch === seen.epoch;
      this.#highest = seen;
      if (remembered?.epoch !== seen.epoch && !remembers(seenPath, seen)) {
        return { fact: unusable('invalid'), paths: 0 };
      }
      return { fact: unchanged ? this.#fact : { epoch: overlay.epoch, rules: overlay.rules }, paths: 1 };
    } catch {
      return { fact: unusable('invalid'), paths: 3 };
    }
  }
}

const unusable = (problem: OverlayProblem): OverlayFact => ({ epoch: null, problem });

/** An epoch that the next process would not know of does not count. */
function remembers(path: string, seen: Seen): boolean {
  try {
    writeSeen(path, seen);
    return true;
  } catch {
    return false;
  }
}

function markOf(path: string): Mark {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? ABSENT;
  } catch (error) {
    return `error ${errorCode(error)}`;
  }
}

const isSettled = (mark: Mark, now: number): boolean =>
  typeof mark === 'string' || now - Number(mark.ctimeMs) > SETTLED_MS;

function same(now: Mark, before: Mark): boolean {
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

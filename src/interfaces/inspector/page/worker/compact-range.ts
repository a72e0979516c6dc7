// The Merkle tree of RFC 6962 over entries, recomputed in the reader's browser. Hashing is asynchronous there, so many
// leaves are joined at a time, level by level.

export type Hash = (bytes: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>;

const HASH_BYTES = 32;

/** SHA-256 of the browser, which is available only on https, loopback and in files. */
export const browserSha256: Hash = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));

export const leafBytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(`\0${text}`);

function nodeBytes(left: Uint8Array, right: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(1 + 2 * HASH_BYTES);
  bytes[0] = 1;
  bytes.set(left, 1);
  bytes.set(right, 1 + HASH_BYTES);
  return bytes;
}

/** The hashes of the perfect subtrees of a growing log: one or none per height. */
export class CompactRange {
  readonly #hash: Hash;
  readonly #pending: (Uint8Array | null)[];
  size: number;

  /** @param frontier for a log that starts at `size`: its subtrees, largest first */
  constructor(hash: Hash, size = 0, frontier: readonly string[] = []) {
    this.#hash = hash;
    this.size = size;
    const heights: number[] = [];
    for (let [rest, height] = [size, 0]; rest > 0; rest = Math.floor(rest / 2), height += 1) {
      if (rest % 2 === 1) heights.unshift(height);
    }
    if (heights.length !== frontier.length) throw new RangeError('the frontier does not match the size');
    this.#pending = Array.from({ length: (heights[0] ?? -1) + 1 }, (_, height) => {
      const place = heights.indexOf(height);
      return place < 0 ? null : fromHex(frontier[place] ?? '');
    });
  }

  async append(leaves: readonly Uint8Array[]): Promise<void> {
    this.size += leaves.length;
    let level: readonly Uint8Array[] = leaves;
    for (let height = 0; level.length > 0; height += 1) {
      const waiting = this.#pending[height] ?? null;
      const row = waiting === null ? level : [waiting, ...level];
      this.#pending[height] = row.length % 2 === 1 ? (row.at(-1) ?? null) : null;
      const pairs = Math.floor(row.length / 2);
      level = await Promise.all(Array.from({ length: pairs }, (_, at) => this.#join(row[2 * at], row[2 * at + 1])));
    }
  }

  /** The current root of the log. */
  async root(): Promise<string> {
    let right: Uint8Array | null = null;
    for (const subtree of this.#pending) {
      if (subtree === null) continue;
      right = right === null ? subtree : await this.#hash(nodeBytes(subtree, right));
    }
    return hex(right ?? (await this.#hash(new Uint8Array(0))));
  }

  #join(left: Uint8Array | undefined, right: Uint8Array | undefined): Promise<Uint8Array> {
    if (left === undefined || right === undefined) throw new RangeError('a node of the Merkle tree lacks a child');
    return this.#hash(nodeBytes(left, right));
  }
}

/** The hashes of the proved entries, 32 bytes each, from the first entry of the log. */
export class LeafHashes {
  readonly #begin: number;
  #count = 0;
  #bytes = new Uint8Array(1_024 * HASH_BYTES);

  constructor(begin: number) {
    this.#begin = begin;
  }

  push(leaves: readonly Uint8Array[]): void {
    const end = (this.#count + leaves.length) * HASH_BYTES;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    for (const leaf of leaves) {
      this.#bytes.set(leaf, this.#count * HASH_BYTES);
      this.#count += 1;
    }
  }

  /** @returns null for an entry that has not been proved */
  at(index: number): string | null {
    const place = index - this.#begin;
    if (!Number.isSafeInteger(place) || place < 0 || place >= this.#count) return null;
    return hex(this.#bytes.subarray(place * HASH_BYTES, (place + 1) * HASH_BYTES));
  }
}

export const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

export const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

export const fromBase64 = (text: string): Uint8Array<ArrayBuffer> | null => {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
};

// The proof itself: every entry that is read is hashed, put into the tree, held against the row that was shown for it
// and against the entry before it in its run tree; and the root against the signed checkpoint. It stops at the first
// entry that is not what it must be, and names it.

import { rowOf } from '../../contract/event-row.js';
import type { EventRow, LedgerInfo } from '../../contract/inspection.js';
import { CompactRange, hex, leafBytes, Leaves, subtle, type Hash } from './merkle.js';
import { readCheckpoint, signatureOf, type Checkpoint, type Signature } from './note.js';

/** What the first entry of a run tree names. */
const NO_PREV = '0'.repeat(64);

export interface Broken {
  /** The entry, or null where it is the checkpoint that does not fit. */
  readonly at: number | null;
  readonly why: string;
}

/** How far it has come, and what it found. */
export interface ProofState {
  readonly verified: number;
  readonly root: string | null;
  readonly checkpoint: (Checkpoint & { readonly signature: Signature; readonly fits: boolean }) | null;
  readonly broken: Broken | null;
}

/** What the list shows of an entry: the row that the service gave for it. */
export type Shown = (at: number) => EventRow | null;

export class Proof {
  readonly #hash: Hash;
  readonly #range: CompactRange;
  readonly #leaves: Leaves;
  readonly #begin: number;
  /** Of each run tree the hash of its last entry and its seq. */
  readonly #last = new Map<string, { readonly hash: string; readonly seq: number }>();
  #checkpoint: Checkpoint | null = null;
  #signature: Signature = 'unknown';
  #fits = false;
  broken: Broken | null = null;

  constructor(info: Pick<LedgerInfo, 'begin' | 'frontier'>, hash: Hash = subtle) {
    this.#hash = hash;
    this.#begin = info.begin;
    this.#range = new CompactRange(hash, info.begin, info.frontier);
    this.#leaves = new Leaves(info.begin);
  }

  /** The next entry that it wants. */
  get next(): number {
    return this.#range.size;
  }

  /** The leaf hash of an entry that was proved; null of any other. */
  leafOf(at: number): string | null {
    return this.#leaves.at(at);
  }

  /** A checkpoint that lies at what was already read cannot be held against it any more, unless it is exactly there. */
  async checkpoint(note: string | null, key: string | null): Promise<void> {
    const read = note === null ? null : readCheckpoint(note);
    if (note === null || key === null) return;
    if (read === null) {
      this.broken ??= { at: null, why: 'The checkpoint is not a checkpoint' };
      return;
    }
    if (read.size < this.next || (read.size === this.#checkpoint?.size && read.root === this.#checkpoint.root)) return;
    this.#checkpoint = read;
    this.#fits = false;
    this.#signature = await signatureOf(note, key, this.#hash);
    if (this.#signature === 'wrong') this.broken ??= { at: null, why: 'The signature of the checkpoint is wrong' };
    if (read.size === this.next) await this.#hold();
  }

  /** Takes the entries that come next. */
  async take(texts: readonly string[], shown: Shown): Promise<void> {
    const stop = this.#checkpoint?.size ?? 0;
    const cut = stop > this.next && stop < this.next + texts.length ? stop - this.next : texts.length;
    await this.#part(texts.slice(0, cut), shown);
    if (cut < texts.length && this.broken === null) await this.#part(texts.slice(cut), shown);
  }

  async #part(texts: readonly string[], shown: Shown): Promise<void> {
    const from = this.next;
    const leaves = await Promise.all(texts.map((text) => this.#hash(leafBytes(text))));
    for (const [place, text] of texts.entries()) {
      const why = this.#wrong(text, from + place, hex(leaves[place] ?? new Uint8Array(0)), shown);
      if (why === null) continue;
      await this.#append(leaves.slice(0, place));
      this.broken ??= { at: from + place, why };
      return;
    }
    await this.#append(leaves);
    if (this.next === this.#checkpoint?.size) await this.#hold();
  }

  async #append(leaves: readonly Uint8Array[]): Promise<void> {
    await this.#range.append(leaves);
    this.#leaves.push(leaves);
  }

  async #hold(): Promise<void> {
    const root = await this.#range.root();
    this.#fits = root === this.#checkpoint?.root;
    if (this.#fits) return;
    this.broken ??= { at: null, why: `The root of the first ${this.next} entries is not the one that was signed` };
  }

  #wrong(text: string, at: number, hash: string, shown: Shown): string | null {
    const own = rowOf(text, at, hash);
    const row = shown(at);
    if (row !== null && row.hash !== own.hash) return 'Its hash is not the one that the list was given';
    if (row !== null && !same(row, own)) return 'The list was given a row that says something else';
    return this.#chained(text, hash);
  }

  /** Whether it names the entry before it in its own run tree. */
  #chained(text: string, hash: string): string | null {
    const entry = envelopeOf(text);
    if (entry === null) return 'It is not an entry';
    const before = this.#last.get(entry.tree_id);
    this.#last.set(entry.tree_id, { hash, seq: entry.seq });
    // Of what begins before this log does, the entry before is not here.
    if (before === undefined) {
      if (entry.seq === 0) return entry.prev === NO_PREV ? null : 'It begins a run tree, and names an entry before it';
      return this.#begin > 0 ? null : 'Its run tree has no beginning';
    }
    if (entry.seq !== before.seq + 1)
      return `In its run tree it comes after entry ${before.seq}, and says ${entry.seq}`;
    return entry.prev === before.hash ? null : 'It names another entry as the one before it';
  }

  async state(): Promise<ProofState> {
    const checkpoint =
      this.#checkpoint === null ? null : { ...this.#checkpoint, signature: this.#signature, fits: this.#fits };
    return { verified: this.next, root: await this.#range.root(), checkpoint, broken: this.broken };
  }
}

function envelopeOf(text: string) {
  try {
    const entry = JSON.parse(text) as Record<'tree_id' | 'prev' | 'seq', unknown> | null;
    if (typeof entry?.tree_id !== 'string' || typeof entry.prev !== 'string' || typeof entry.seq !== 'number')
      return null;
    return { tree_id: entry.tree_id, prev: entry.prev, seq: entry.seq };
  } catch {
    return null;
  }
}

const COMPARED = ['seq', 'run_id', 'tree_id', 'type', 'label', 'tone', 'time', 'step', 'state'] as const;

/** Whether two rows say the same, their hashes left aside. */
export const same = (a: EventRow, b: EventRow): boolean =>
  COMPARED.every((member) => a[member] === b[member]) && JSON.stringify(a.born) === JSON.stringify(b.born);

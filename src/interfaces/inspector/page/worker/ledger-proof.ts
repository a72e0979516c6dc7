// The proof. It hashes every entry, adds it to the Merkle tree, and compares it with its displayed row and with its
// predecessor in its run tree. It compares the root with the signed checkpoint. It names the first entry that
// does not fit. It goes on with the recorded hash of such an entry, to find out what the signed root still proves.

import { nameInLedger, nameInTree } from '../../../../core/contract/entry-name.js';
import { toEventRow } from '../../contract/event-row.js';
import type { EventDetails, EventRow, LedgerInfo } from '../../../../core/contract/inspection/inspection.js';
import { CompactRange, fromHex, hex, leafBytes, LeafHashes, browserSha256, type Hash } from './compact-range.js';
import { parseCheckpoint, verifySignature, type NoteCheckpoint, type SignatureState } from './checkpoint-note.js';

/** The previous hash in the first entry of a run tree. */
const NO_PREV = '0'.repeat(64);

/** An entry with another text than the recorded one. */
export interface ChangedEntry {
  readonly at: number;
  readonly computed: string;
  readonly recorded: string;
}

export interface ProofBreak {
  /** The entry; null if the checkpoint does not match. */
  readonly at: number | null;
  readonly why: string;
}

/** The progress of the proof, and its findings. */
export interface ProofState {
  /** The number of verified entries of the log. Of a ledger that is broken anywhere, nothing counts as verified. */
  readonly verified: number;
  /** The number of entries that were read. */
  readonly read: number;
  /** The entries whose text differs from what the ledger recorded, with the hash of the text and the recorded one. */
  readonly changed: readonly ChangedEntry[];
  readonly root: string | null;
  readonly checkpoint: (NoteCheckpoint & { readonly signature: SignatureState; readonly fits: boolean }) | null;
  readonly broken: ProofBreak | null;
}

/** An entry as the list shows it: the row that the service sent. */
export type RowLookup = (at: number) => EventRow | null;

export class LedgerProof {
  readonly #hash: Hash;
  readonly #range: CompactRange;
  readonly #leaves: LeafHashes;
  readonly #begin: number;
  /** For each run tree, the hash and seq of its last entry. */
  readonly #last = new Map<string, { readonly hash: string; readonly seq: number }>();
  #checkpoint: NoteCheckpoint | null = null;
  #signature: SignatureState = 'unknown';
  #fits = false;
  readonly #changed: ChangedEntry[] = [];
  /** The hash of the text at the next entry, which does not fit; null while everything does. */
  #unfit: string | null = null;
  broken: ProofBreak | null = null;

  constructor(info: Pick<LedgerInfo, 'begin' | 'frontier' | 'flaw'>, hash: Hash = browserSha256) {
    this.#hash = hash;
    this.#begin = info.begin;
    this.#range = new CompactRange(hash, info.begin, info.frontier);
    this.#leaves = new LeafHashes(info.begin);
    if (info.flaw !== undefined) this.broken = { at: null, why: info.flaw };
  }

  /** The next entry to prove. */
  get next(): number {
    return this.#range.size;
  }

  /** The leaf hash of a proved entry; null for any other. */
  leafOf(at: number): string | null {
    return this.#leaves.at(at);
  }

  /** Whether the next entry does not fit: then reading goes on only with the hash that was recorded for it. */
  hasUnfit(): boolean {
    return this.#unfit !== null;
  }

  /**
   * Continues after an entry that does not fit. Only the signed root can confirm the recorded hash.
   * @param text the entry as it was read
   */
  async skip(text: string, recorded: string): Promise<void> {
    const computed = this.#unfit;
    if (computed === null) return;
    if (computed !== recorded) this.#changed.push({ at: this.next, computed, recorded });
    const entry = envelopeOf(text);
    if (entry !== null) this.#last.set(entry.tree_id, { hash: recorded, seq: entry.seq });
    this.#unfit = null;
    await this.#append([fromHex(recorded)]);
    if (this.next === this.#checkpoint?.size) await this.#checkCheckpoint();
  }

  /** A checkpoint below the position already read cannot be compared any more, unless it is exactly there. */
  async checkpoint(note: string | null, key: string | null): Promise<void> {
    const read = note === null ? null : parseCheckpoint(note);
    if (note === null || key === null) return;
    if (read === null) {
      this.broken ??= { at: null, why: 'The checkpoint is malformed' };
      return;
    }
    if (read.size < this.next || (read.size === this.#checkpoint?.size && read.root === this.#checkpoint.root)) return;
    this.#checkpoint = read;
    this.#fits = false;
    this.#signature = await verifySignature(note, key, this.#hash);
    if (this.#signature === 'wrong') this.broken ??= { at: null, why: 'The signature of the checkpoint is invalid' };
    if (read.size === this.next) await this.#checkCheckpoint();
  }

  /** Proves the next entries. */
  async take(texts: readonly string[], rowAt: RowLookup): Promise<void> {
    const stop = this.#checkpoint?.size ?? 0;
    const cut = stop > this.next && stop < this.next + texts.length ? stop - this.next : texts.length;
    await this.#takePart(texts.slice(0, cut), rowAt);
    if (cut < texts.length && !this.hasUnfit()) await this.#takePart(texts.slice(cut), rowAt);
  }

  async #takePart(texts: readonly string[], rowAt: RowLookup): Promise<void> {
    const from = this.next;
    const leaves = await Promise.all(texts.map((text) => this.#hash(leafBytes(text))));
    for (const [place, text] of texts.entries()) {
      const why = this.#findMismatch(text, from + place, hex(leaves[place] ?? new Uint8Array(0)), rowAt);
      if (why === null) continue;
      await this.#append(leaves.slice(0, place));
      this.#unfit = hex(leaves[place] ?? new Uint8Array(0));
      if (this.broken?.at == null) this.broken = { at: from + place, why };
      return;
    }
    await this.#append(leaves);
    if (this.next === this.#checkpoint?.size) await this.#checkCheckpoint();
  }

  async #append(leaves: readonly Uint8Array[]): Promise<void> {
    await this.#range.append(leaves);
    this.#leaves.push(leaves);
  }

  async #checkCheckpoint(): Promise<void> {
    const root = await this.#range.root();
    this.#fits = root === this.#checkpoint?.root;
    if (this.#fits) return;
    this.broken ??= { at: null, why: `The root of the first ${this.next} entries is not the one that was signed` };
  }

  #findMismatch(text: string, at: number, hash: string, rowAt: RowLookup): string | null {
    const computed = toEventRow(text, at, hash);
    const row = rowAt(at);
    if (row !== null && row.hash !== computed.hash) return 'Its hash differs from the one in the list';
    if (row !== null && !isSameRow(row, computed)) return 'The list has a different row for it';
    return this.#checkChain(text, hash);
  }

  /** Whether the entry names its predecessor in its own run tree. */
  #checkChain(text: string, hash: string): string | null {
    const entry = envelopeOf(text);
    if (entry === null) return 'It is not a valid entry';
    const before = this.#last.get(entry.tree_id);
    this.#last.set(entry.tree_id, { hash, seq: entry.seq });
    // If a tree starts before this log does, its previous entry is not available.
    if (before === undefined) {
      if (entry.seq === 0) return entry.prev === NO_PREV ? null : 'It starts a run tree but names a previous entry';
      return this.#begin > 0 ? null : 'Its run tree has no first entry';
    }
    if (entry.seq !== before.seq + 1)
      return `In its run tree it follows entry ${nameInTree(entry.tree_id, before.seq)}, but is ${nameInTree(entry.tree_id, entry.seq)}`;
    return entry.prev === before.hash ? null : 'It names another entry as its predecessor';
  }

  async state(): Promise<ProofState> {
    const checkpoint =
      this.#checkpoint === null ? null : { ...this.#checkpoint, signature: this.#signature, fits: this.#fits };
    return {
      verified: this.broken === null ? this.next : this.#begin,
      read: this.next,
      changed: this.#changed,
      root: await this.#range.root(),
      checkpoint,
      broken: this.broken,
    };
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

const COMPARED_MEMBERS = ['seq', 'run_id', 'tree_id', 'type', 'label', 'tone', 'time', 'step', 'state'] as const;

/** Whether two rows are equal, apart from their hashes. */
export const isSameRow = (a: EventRow, b: EventRow): boolean =>
  COMPARED_MEMBERS.every((member) => a[member] === b[member]) &&
  JSON.stringify(a.creation) === JSON.stringify(b.creation);

/** Whether the signed root confirms the recorded hashes of all entries, so that the other entries are as they were. */
export const isProvable = ({ checkpoint }: Pick<ProofState, 'checkpoint'>): boolean =>
  checkpoint !== null && checkpoint.fits && checkpoint.signature === 'right';

/** What a proof still shows of a ledger that is broken anywhere. */
export function provableText(state: ProofState): string {
  const { broken, changed, checkpoint, read } = state;
  const names = changed.map(({ at }) => nameInLedger(at)).join(', ');
  if (isProvable(state) && checkpoint !== null) {
    const others = changed.length === 0 ? 'the entries' : `all entries except ${names}`;
    return `Still provable: ${others}. Their hashes give the root that was signed for ${checkpoint.size.toLocaleString('en-US')} entries.`;
  }
  if (broken?.at != null && broken.at > 0)
    return `Still provable: nothing. Entries before ${nameInLedger(broken.at)} fit together, but no signature covers them alone.`;
  return broken?.at == null && read > 0
    ? 'Still provable: nothing. The entries fit together, but they are not what was signed.'
    : 'Still provable: nothing.';
}

/** An entry; `changed` if its text is not the recorded one. */
export interface InspectedEvent {
  readonly details: EventDetails;
  readonly changed: ChangedEntry | null;
}

/**
 * Whether the text of an entry from the service belongs to its row in the list. The displayed text must be the hashed
 * one, not one that the service substitutes when a reader opens it.
 * @param leaf the hash of the proved entry; null if the proof has not reached it: then only the first bits of the hash,
 *   in the row, are compared
 */
export async function isTextOfRow(
  { text, leaf_hash }: Pick<EventDetails, 'text' | 'leaf_hash'>,
  { row, leaf }: { readonly row: EventRow; readonly leaf: string | null },
  hash: Hash = browserSha256,
): Promise<boolean> {
  const computed = await leafHashOf(text, hash);
  const rowOfText = toEventRow(text, row.log_index, computed);
  const isProved = leaf === null ? rowOfText.hash === row.hash : computed === leaf;
  return computed === leaf_hash && isProved && isSameRow(rowOfText, row);
}

/** The leaf hash of a text. */
export const leafHashOf = async (text: string, hash: Hash = browserSha256): Promise<string> =>
  hex(await hash(leafBytes(text)));

/** Whether an entry, by its canonical text, names content of this hash. */
export const hasContentHash = (text: string, sha256: string): boolean => text.includes(`"hash_sha256":"${sha256}"`);

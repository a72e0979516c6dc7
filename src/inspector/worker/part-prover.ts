// Runs the proof: reads the entries of the log and proves them, part by part. The same code runs in a worker and, on a
// single-file page, in the page.

import type { LedgerInfo, RowPage } from '../../contract/inspection/inspection.js';
import { unpackRows } from '../../contract/inspection/event-row.js';
import type { EventRow } from '../../contract/inspection/inspection.js';
import { LedgerProof, type ProofState } from './ledger-proof.js';

export type ReadEntries = (from: number, to: number) => Promise<readonly string[]>;

type Growth = Pick<LedgerInfo, 'size' | 'checkpoint' | 'key'>;

/** Number of entries per part: the page must stay responsive between two parts. */
const PART_ENTRIES = 500;

export class PartProver {
  readonly #read: ReadEntries;
  readonly #onState: (state: ProofState | null) => void;
  readonly #rows = new Map<number, EventRow>();
  #proof: LedgerProof | null = null;
  #growth: Growth | null = null;
  #isWorking = false;

  constructor(read: ReadEntries, onState: (state: ProofState | null) => void) {
    this.#read = read;
    this.#onState = onState;
  }

  begin(info: LedgerInfo): void {
    try {
      this.#proof = new LedgerProof(info);
    } catch {
      const why = `The hashes of the entries before #${info.begin} are invalid: nothing after them can be proved`;
      this.#onState({ verified: info.begin, root: null, checkpoint: null, broken: { at: null, why } });
    }
  }

  addRows(page: RowPage): void {
    for (const row of unpackRows(page)) this.#rows.set(row.log_index, row);
  }

  leafOf(at: number): Promise<string | null> {
    return Promise.resolve(this.#proof?.leafOf(at) ?? null);
  }

  onGrowth(growth: Growth): void {
    this.#growth = growth;
    if (!this.#isWorking) void this.#work();
  }

  /** Runs until everything requested is done: the log may grow, or be signed, at any time. */
  async #work(): Promise<void> {
    const proof = this.#proof;
    if (proof === null) return;
    this.#isWorking = true;
    try {
      for (let done: Growth | null = null; this.#growth !== null && done !== this.#growth;) {
        const now: Growth = this.#growth;
        await proof.checkpoint(now.checkpoint, now.key);
        if (proof.next < now.size && proof.broken === null) await this.#part(proof, now.size);
        else done = now;
        this.#onState(await proof.state());
      }
    } catch {
      this.#onState(null);
    }
    this.#isWorking = false;
  }

  async #part(proof: LedgerProof, end: number): Promise<void> {
    const texts = await this.#read(proof.next, Math.min(end, proof.next + 10 * PART_ENTRIES));
    if (texts.length === 0) throw new Error('the entries are unavailable');
    for (let at = 0; at < texts.length && proof.broken === null; at += PART_ENTRIES) {
      const from = proof.next;
      const part = texts.slice(at, at + PART_ENTRIES);
      await proof.take(part, (index) => this.#rows.get(index) ?? null);
      for (let index = from; index < from + part.length; index += 1) this.#rows.delete(index);
    }
  }
}

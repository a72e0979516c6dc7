// Who carries the proof out: reads entries as far as the log goes and takes them through it, part after part. The same
// in a worker and, for a page that is a single file, in the page.

import type { LedgerInfo, RowPage } from '../../contract/inspection.js';
import { unpackRows } from '../../contract/event-row.js';
import type { EventRow } from '../../contract/inspection.js';
import { Proof, type ProofState } from './check.js';

export type ReadEntries = (from: number, to: number) => Promise<readonly string[]>;

type Growth = Pick<LedgerInfo, 'size' | 'checkpoint' | 'key'>;

/** So many at a time: the page must stay at hand between two parts. */
const PART = 500;

export class PartProver {
  readonly #read: ReadEntries;
  readonly #tell: (state: ProofState | null) => void;
  readonly #shown = new Map<number, EventRow>();
  #proof: Proof | null = null;
  #grown: Growth | null = null;
  #working = false;

  constructor(read: ReadEntries, tell: (state: ProofState | null) => void) {
    this.#read = read;
    this.#tell = tell;
  }

  begin(info: LedgerInfo): void {
    try {
      this.#proof = new Proof(info);
    } catch {
      const why = `What is told of the entries before #${info.begin} cannot be: nothing can be proved from there on`;
      this.#tell({ verified: info.begin, root: null, checkpoint: null, broken: { at: null, why } });
    }
  }

  shown(page: RowPage): void {
    for (const row of unpackRows(page)) this.#shown.set(row.log_index, row);
  }

  leafOf(at: number): Promise<string | null> {
    return Promise.resolve(this.#proof?.leafOf(at) ?? null);
  }

  grown(growth: Growth): void {
    this.#grown = growth;
    if (!this.#working) void this.#work();
  }

  /** Until it has done all that it was told of: a log may grow, or be signed, at any moment of this. */
  async #work(): Promise<void> {
    const proof = this.#proof;
    if (proof === null) return;
    this.#working = true;
    try {
      for (let done: Growth | null = null; this.#grown !== null && done !== this.#grown;) {
        const now: Growth = this.#grown;
        await proof.checkpoint(now.checkpoint, now.key);
        if (proof.next < now.size && proof.broken === null) await this.#part(proof, now.size);
        else done = now;
        this.#tell(await proof.state());
      }
    } catch {
      this.#tell(null);
    }
    this.#working = false;
  }

  async #part(proof: Proof, end: number): Promise<void> {
    const texts = await this.#read(proof.next, Math.min(end, proof.next + 10 * PART));
    if (texts.length === 0) throw new Error('the entries cannot be had');
    for (let at = 0; at < texts.length && proof.broken === null; at += PART) {
      const from = proof.next;
      const part = texts.slice(at, at + PART);
      await proof.take(part, (index) => this.#shown.get(index) ?? null);
      for (let index = from; index < from + part.length; index += 1) this.#shown.delete(index);
    }
  }
}

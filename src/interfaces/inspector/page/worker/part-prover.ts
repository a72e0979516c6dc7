// Runs the proof: reads the entries of the log and proves them, part by part. The same code runs in a worker and, on a
// single-file page, in the page.

import { nameInLedger } from '../../../../core/contract/entry-name.js';
import type { EventRow, LedgerInfo, RowPage } from '../../../../core/contract/inspection/inspection.js';
import { unpackRows } from '../../contract/event-row.js';
import type { LogGrowth } from '../store/proof-tracker.js';
import { LedgerProof, type ProofState } from './ledger-proof.js';

export type ReadEntries = (from: number, to: number) => Promise<readonly string[]>;
/** The hash that the ledger recorded for an entry, as the service reports it; null if it is unavailable. */
export type ReadRecordedHash = (at: number) => Promise<string | null>;

/** Maximum number of entries that do not fit and are skipped. */
const SKIPPED_MAX = 1_000;
/** Number of entries per part: the page must stay responsive between two parts. */
const PART_ENTRIES = 500;

export class PartProver {
  readonly #read: ReadEntries;
  readonly #onState: (state: ProofState | null) => void;
  readonly #rows = new Map<number, EventRow>();
  #proof: LedgerProof | null = null;
  #growth: LogGrowth | null = null;
  #isWorking = false;
  #skipped = 0;
  readonly #readRecordedHash: ReadRecordedHash;

  constructor(
    read: ReadEntries,
    onState: (state: ProofState | null) => void,
    readRecordedHash: ReadRecordedHash = () => Promise.resolve(null),
  ) {
    this.#read = read;
    this.#readRecordedHash = readRecordedHash;
    this.#onState = onState;
  }

  begin(info: LedgerInfo): void {
    try {
      this.#proof = new LedgerProof(info);
    } catch {
      const why = `The hashes of the entries before ${nameInLedger(info.begin)} are invalid: nothing after them can be proved`;
      const broken = { at: null, why };
      this.#onState({ verified: info.begin, read: info.begin, changed: [], root: null, checkpoint: null, broken });
    }
  }

  addRows(page: RowPage): void {
    for (const row of unpackRows(page)) this.#rows.set(row.log_index, row);
  }

  leafOf(at: number): Promise<string | null> {
    return Promise.resolve(this.#proof?.leafOf(at) ?? null);
  }

  onGrowth(growth: LogGrowth): void {
    this.#growth = growth;
    if (!this.#isWorking) void this.#work();
  }

  /** Runs until everything requested is done: the log may grow, or be signed, at any time. */
  async #work(): Promise<void> {
    const proof = this.#proof;
    if (proof === null) return;
    this.#isWorking = true;
    try {
      for (let done: LogGrowth | null = null; this.#growth !== null && done !== this.#growth;) {
        const now: LogGrowth = this.#growth;
        await proof.checkpoint(now.checkpoint, now.key);
        if (proof.next < now.size && !proof.hasUnfit()) await this.#part(proof, now.size);
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
    const start = proof.next;
    while (proof.next < start + texts.length && !proof.hasUnfit()) {
      const from = proof.next;
      const part = texts.slice(from - start, from - start + PART_ENTRIES);
      await proof.take(part, (index) => this.#rows.get(index) ?? null);
      for (let index = from; index < proof.next; index += 1) this.#rows.delete(index);
      if (proof.hasUnfit()) await this.#skip(proof, texts[proof.next - start] ?? '');
    }
  }

  async #skip(proof: LedgerProof, text: string): Promise<void> {
    if (this.#skipped >= SKIPPED_MAX) return;
    this.#skipped += 1;
    const recorded = await this.#readRecordedHash(proof.next).catch(() => null);
    if (recorded !== null && /^[0-9a-f]{64}$/.test(recorded)) await proof.skip(text, recorded);
  }
}

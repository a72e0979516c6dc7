// The state of the proof as the page shows it: its progress, and whether a proof is possible. It does not depend on who
// runs the proof: a worker, or the page itself in small parts.

import { signal, type ReadonlySignal } from '@preact/signals';
import type { LedgerInfo, ReplayedInfo, RowPage } from '../../../../core/contract/inspection/inspection.js';
import { RowPacker } from '../../contract/event-row.js';
import { toAccessProblem } from '../data/feed.js';
import type { ProofState } from '../worker/ledger-proof.js';
import type { Rows } from './rows/rows.js';

/** How far the log goes, and what is signed of it. */
export type LogGrowth = Pick<LedgerInfo, 'size' | 'checkpoint' | 'key'>;

/** Runs the proof. It receives the displayed rows and the size of the log, and reports its progress. */
export interface Prover {
  readonly begin: (info: LedgerInfo) => void;
  /** Displayed rows, each once and in order. */
  readonly addRows: (page: RowPage) => void;
  readonly onGrowth: (growth: LogGrowth) => void;
  /** The leaf hash of a proved entry; null for any other. */
  readonly leafOf: (at: number) => Promise<string | null>;
}

export type ProofPhase = 'idle' | 'verifying' | 'verified' | 'broken' | 'impossible' | 'failed';

export interface ProofSource {
  readonly rows: Rows;
  readonly info: ReadonlySignal<LedgerInfo | null>;
  readonly feed: { readonly info: () => Promise<LedgerInfo> };
}

const SHOWN_ROWS = 5_000;
/** Requesting more often is useless while nothing new is signed. */
const CHECKPOINT_MS = 5_000;
/** Pause before the retry after a failure, in milliseconds. It doubles with each failure, and retries are limited. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 60_000;
/** Pause before the result of a replay is requested again; it doubles. */
const REPLAY_MS = 250;
const TRIES_MAX = 12;

export class ProofTracker {
  readonly phase = signal<ProofPhase>('idle');
  readonly state = signal<ProofState | null>(null);
  /** What a replay by the program that made the page has found; null while it runs, undefined without one. */
  readonly replayed = signal<ReplayedInfo | null | undefined>(undefined);
  readonly #prover: Prover | null;
  #source: ProofSource | null = null;
  #shown = 0;
  #sentThrough = 0;
  #isFetching = false;
  #ledger = '';
  #begin = 0;
  #tries = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param prover null if this browser cannot hash: neither https nor loopback */
  constructor(prover: ((onState: (state: ProofState | null) => void) => Prover) | null) {
    this.#prover = prover === null ? null : prover((state) => this.#onState(state));
    if (prover === null) this.phase.value = 'impossible';
  }

  begin(source: ProofSource, info: LedgerInfo): void {
    this.#onReplayed(source, info, REPLAY_MS);
    if (this.#prover === null) return;
    this.#source = source;
    this.#ledger = info.ledger_id;
    this.#begin = info.begin;
    this.#shown = source.rows.first;
    this.phase.value = 'verifying';
    this.#prover.begin(info);
    this.#sendRows(info);
  }

  /** Asks again until the replay has ended. */
  #onReplayed(source: ProofSource, info: LedgerInfo, wait: number): void {
    if (info.ledger_id !== source.info.value?.ledger_id) return;
    this.replayed.value = info.replayed;
    if (info.replayed !== null) return;
    const again = (): void => this.#onReplayed(source, info, Math.min(wait * 2, RETRY_MS_MAX));
    setTimeout(() => {
      source.feed.info().then((next) => this.#onReplayed(source, next, wait * 2), again);
    }, wait);
  }

  /** The leaf hash of a proved entry; null for any other. */
  async leafOf(at: number): Promise<string | null> {
    return (await this.#prover?.leafOf(at)) ?? null;
  }

  /** Called when more rows have arrived. */
  onGrowth(): void {
    if (this.#source === null || this.#isFetching || this.#prover === null || this.phase.value === 'broken') return;
    const { rows } = this.#source;
    if (hasUnreadEntries(rows, this.#sentThrough)) void this.#continue();
  }

  /** Called when the source of entries is available again: a failed proof is tried once more, as if it were new. */
  retry(): void {
    this.#tries = 0;
    if (this.phase.value === 'failed') this.#schedule(0);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#continue(), ms);
  }

  async #continue(): Promise<void> {
    this.#isFetching = true;
    try {
      const info = await this.#source?.feed.info();
      // The connection reports another ledger at the same address; that ledger proves nothing about this one.
      if (info?.ledger_id === this.#ledger) this.#sendRows(info);
    } catch (error) {
      // The connection reports the loss; the proved part stays proved.
      if (this.phase.value === 'failed' && toAccessProblem(error) === null) this.#onFailure();
    }
    setTimeout(() => {
      this.#isFetching = false;
      this.onGrowth();
    }, CHECKPOINT_MS);
  }

  #sendRows(info: LedgerInfo): void {
    const { rows } = this.#source ?? {};
    if (rows === undefined || this.#prover === null) return;
    for (; this.#shown < rows.end; this.#shown += SHOWN_ROWS) {
      const to = Math.min(rows.end, this.#shown + SHOWN_ROWS);
      this.#prover.addRows(pageOf(rows, this.#shown, to));
      if (to === rows.end) {
        this.#shown = to;
        break;
      }
    }
    this.#sentThrough = rows.end;
    this.#prover.onGrowth({ size: rows.end, checkpoint: info.checkpoint, key: info.key });
  }

  /** Retries by timer, because a quiet ledger causes no other event. */
  #onFailure(): void {
    this.phase.value = 'failed';
    this.#tries += 1;
    if (this.#tries <= TRIES_MAX) this.#schedule(Math.min(RETRY_MS * 2 ** (this.#tries - 1), RETRY_MS_MAX));
  }

  #onState(state: ProofState | null): void {
    if (state === null) {
      this.#onFailure();
      return;
    }
    this.#tries = 0;
    this.state.value = state;
    if (state.broken !== null) this.phase.value = 'broken';
    else if (state.verified < this.#sentThrough) this.phase.value = 'verifying';
    // An empty log has a root too, but it proves nothing.
    else this.phase.value = state.verified > this.#begin ? 'verified' : 'idle';
  }
}

/** Reading entries is recorded as well: proving those records at once would never end. */
function hasUnreadEntries(rows: Rows, from: number): boolean {
  for (let at = from; at < rows.end; at += 1) if (rows.labels.at(rows.label(at)) !== ACCESS_LABEL) return true;
  return false;
}
const ACCESS_LABEL = 'access';

/** Rows of the list, in the form in which the service sends them. */
function pageOf(rows: Rows, from: number, to: number): RowPage {
  const packer = new RowPacker();
  for (let at = from; at < to; at += 1) {
    const row = rows.row(at);
    if (row !== null) packer.add(row);
  }
  return packer.page();
}

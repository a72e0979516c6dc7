// The rows of a ledger, stored by column: a hundred thousand of them take a few megabytes and no objects. The rows are
// one range, from `first` to the newest, which grows at both ends.

import type { RunCreationFacts, EventRow, RowPage } from '../../../../../core/contract/inspection/inspection.js';
import { NEEDS_APPROVAL } from '../../../../../core/contract/inspection/needs-approval.js';
import { RUN_STATES, type RunState } from '../../../../../core/contract/run/run-context.js';
import { StringTable } from '../../../contract/event-row.js';
import { toneAt, toneNumber } from './tones.js';

/** What is shown as the state of a run or a session. Only a session is paused. */
export type DisplayState = RunState | 'paused' | typeof NEEDS_APPROVAL;

const STATES = ['created', 'running', 'completed', 'failed', 'denied', 'cancelled', 'paused', NEEDS_APPROVAL] as const;
export const displayStateAt = (number: number): DisplayState | null => STATES[number] ?? null;
export const NEEDS_APPROVAL_STATE = STATES.indexOf(NEEDS_APPROVAL);

/** The state of a session after one of its own events; -1 for an event that does not change it. */
export const sessionStateOf = (event: string): number => STATES.findIndex((state) => state === SESSION_STATES[event]);
const SESSION_STATES: Readonly<Record<string, DisplayState>> = {
  start: 'running',
  resume: 'running',
  pause: 'paused',
  fail: 'failed',
  end: 'cancelled',
  spec_complete: 'completed',
};

/** Rows whose worst tone is kept together. */
const BLOCK = 32;

export class Rows {
  /** The first entry of the ledger, and the first loaded row. */
  readonly begin: number;
  first: number;
  /** One past the last loaded row. */
  end: number;
  readonly ids = new StringTable();
  readonly labels = new StringTable();
  readonly types = new StringTable();
  /** The facts from the creation of a run, by the number of its id. */
  readonly creations = new Map<number, RunCreationFacts>();
  #capacity = 0;
  #seq = new Int32Array(0);
  #tree = new Int32Array(0);
  #run = new Int32Array(0);
  #step = new Int32Array(0);
  #label = new Int32Array(0);
  #hash = new Uint32Array(0);
  #type = new Uint8Array(0);
  #tone = new Uint8Array(0);
  /** The worst tone of each block. */
  #worst = new Uint8Array(0);
  #state = new Int8Array(0);
  #time = new Float64Array(0);

  constructor(begin: number, first: number) {
    this.begin = begin;
    this.first = first;
    this.end = first;
    this.#ensureCapacity(Math.max(4096, first - begin + 4096));
  }

  /**
   * Adds a page that continues after the last row, or ends before the first one. It skips rows that are present.
   * @returns whether a row is new; false also for a page that would leave a gap
   */
  addPage(page: RowPage): boolean {
    const to = page.from + page.rows.length;
    if (this.end === this.first || (page.from <= this.end && to > this.end)) {
      if (this.end === this.first) this.first = this.end = page.from;
      const existing = this.end;
      for (let at = existing; at < to; at += 1) this.#put(at, page);
      this.end = to;
      return to > existing;
    }
    if (page.from < this.first && to >= this.first) {
      for (let at = page.from; at < this.first; at += 1) this.#put(at, page);
      this.first = page.from;
      return true;
    }
    return false;
  }

  run(at: number): number {
    return this.#run[at - this.begin] ?? -1;
  }
  tree(at: number): number {
    return this.#tree[at - this.begin] ?? -1;
  }
  tone(at: number): number {
    return this.#tone[at - this.begin] ?? 0;
  }
  /** The worst tone from `from` to before `to`. */
  worstTone(from: number, to: number): number {
    const end = to - this.begin;
    let worst = 0;
    for (let place = from - this.begin; place < end;) {
      const isBlock = place % BLOCK === 0 && place + BLOCK <= end;
      worst = Math.max(worst, (isBlock ? this.#worst[place / BLOCK] : this.#tone[place]) ?? 0);
      place += isBlock ? BLOCK : 1;
    }
    return worst;
  }
  label(at: number): number {
    return this.#label[at - this.begin] ?? -1;
  }
  step(at: number): number {
    return this.#step[at - this.begin] ?? 0;
  }
  state(at: number): number {
    return this.#state[at - this.begin] ?? -1;
  }
  time(at: number): number {
    return this.#time[at - this.begin] ?? 0;
  }
  hash(at: number): number {
    return this.#hash[at - this.begin] ?? 0;
  }
  type(at: number): number {
    return this.#type[at - this.begin] ?? 0;
  }

  has(at: number): boolean {
    return at >= this.first && at < this.end;
  }

  /** One row as an object. */
  row(at: number): EventRow | null {
    if (!this.has(at)) return null;
    const run = this.run(at);
    const state = RUN_STATES.find((one) => one === displayStateAt(this.state(at))) ?? null;
    return {
      log_index: at,
      seq: this.#seq[at - this.begin] ?? 0,
      run_id: this.ids.at(run),
      tree_id: this.ids.at(this.tree(at)),
      type: this.types.at(this.#type[at - this.begin] ?? 0) as EventRow['type'],
      label: this.labels.at(this.label(at)),
      tone: toneAt(this.tone(at)),
      time: this.time(at),
      step: this.step(at),
      hash: hexOf(this.hash(at)),
      state,
      creation: state === 'created' ? (this.creations.get(run) ?? null) : null,
    };
  }

  #put(at: number, { from, texts, time_base, rows }: RowPage): void {
    const tuple = rows[at - from];
    if (tuple === undefined) return;
    const place = at - this.begin;
    if (place >= this.#capacity) this.#ensureCapacity(Math.max(place + 1, this.#capacity * 2));
    const [seq, tree, run, type, label, tone, time, step, hash, state, creation] = tuple;
    const text = (number: number): string => texts[number] ?? '';
    const id = this.ids.add(text(run));
    this.#seq[place] = seq;
    this.#tree[place] = this.ids.add(text(tree));
    this.#run[place] = id;
    this.#type[place] = this.types.add(text(type));
    this.#label[place] = this.labels.add(text(label));
    const toneOfRow = toneNumber(text(tone));
    this.#tone[place] = toneOfRow;
    const block = Math.floor(place / BLOCK);
    this.#worst[block] = Math.max(this.#worst[block] ?? 0, toneOfRow);
    this.#time[place] = time_base + time;
    this.#step[place] = step;
    this.#hash[place] = Number.parseInt(hash, 16);
    this.#state[place] = state < 0 ? -1 : STATES.indexOf(text(state) as RunState);
    // Sent with the entry that creates a run, and accepted only there: no other entry can confirm it.
    if (creation !== undefined && text(state) === 'created' && !this.creations.has(id))
      this.creations.set(id, creation);
  }

  #ensureCapacity(capacity: number): void {
    this.#capacity = capacity;
    this.#seq = growArray(this.#seq, new Int32Array(capacity));
    this.#tree = growArray(this.#tree, new Int32Array(capacity));
    this.#run = growArray(this.#run, new Int32Array(capacity));
    this.#step = growArray(this.#step, new Int32Array(capacity));
    this.#label = growArray(this.#label, new Int32Array(capacity));
    this.#hash = growArray(this.#hash, new Uint32Array(capacity));
    this.#type = growArray(this.#type, new Uint8Array(capacity));
    this.#tone = growArray(this.#tone, new Uint8Array(capacity));
    this.#worst = growArray(this.#worst, new Uint8Array(Math.ceil(capacity / BLOCK)));
    this.#state = growArray(this.#state, new Int8Array(capacity));
    this.#time = growArray(this.#time, new Float64Array(capacity));
  }
}

function growArray<T extends { set: (from: T) => void }>(old: T, wide: T): T {
  wide.set(old);
  return wide;
}

export const hexOf = (hash: number): string => hash.toString(16).padStart(8, '0');

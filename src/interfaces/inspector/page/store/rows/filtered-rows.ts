// Selects the rows of a list. Words are looked up once per label and run; after that only numbers are compared.

import { NEEDS_APPROVAL } from '../../../../../core/contract/inspection/needs-approval.js';
import type { Rows } from './rows.js';
import { NumberList } from './number-list.js';
import { FIRST_PROBLEM, toneAt } from './tones.js';

export interface Filter {
  readonly words: string;
  readonly problems: boolean;
}
export const isFiltering = ({ words, problems }: Filter): boolean => problems || words.trim() !== '';

type RowTest = (at: number) => boolean;

/** Whether a row matches all words: by its event, outcome, run or number, or by the beginning of its hash. */
export function createRowTest(rows: Rows, { words, problems }: Filter): RowTest {
  const tests = words
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => createWordTest(rows, word));
  return (at) => (!problems || rows.tone(at) >= FIRST_PROBLEM) && tests.every((test) => test(at));
}

function createWordTest(rows: Rows, word: string): RowTest {
  const labels = memoize((label) => rows.labels.at(label).toLowerCase().includes(word));
  const runs = memoize((run) => runText(rows, run).includes(word));
  const tones = memoize((tone) => toneText(tone).includes(word));
  const [low, high] = hashRangeOf(word);
  const [, hash, digits] = /^(#?)(\d{1,9})$/.exec(word) ?? [];
  const number = digits === undefined ? -1 : Number(digits);
  const step = hash === '#' ? number : -1;
  return (at) =>
    at === number ||
    (step > 0 && rows.step(at) === step) ||
    tones(rows.tone(at)) ||
    labels(rows.label(at)) ||
    (rows.hash(at) >= low && rows.hash(at) < high) ||
    runs(rows.run(at));
}

/** A proposal that needs an approval is recorded as DENIED, so both words find it. */
function toneText(number: number): string {
  const tone = toneAt(number);
  return (tone === NEEDS_APPROVAL ? `${tone} DENIED` : tone).toLowerCase();
}

/** The hashes with this beginning, as a range of numbers; an empty range for an invalid beginning. */
function hashRangeOf(word: string): readonly [from: number, to: number] {
  if (!/^[0-9a-f]{2,8}$/.test(word)) return [0, 0];
  const wide = 16 ** (8 - word.length);
  const from = Number.parseInt(word, 16) * wide;
  return [from, from + wide];
}

function runText(rows: Rows, run: number): string {
  const born = rows.creations.get(run);
  const names = born === undefined ? [] : [born.kind, born.lane, born.role, born.actor, born.case, born.request];
  return [rows.ids.at(run), ...names].join(' ').toLowerCase();
}

function memoize(of: (key: number) => boolean): (key: number) => boolean {
  const known = new Map<number, boolean>();
  return (key) => {
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    const result = of(key);
    known.set(key, result);
    return result;
  };
}

/** The rows of the whole log that pass a filter. New rows are tested when they arrive. */
export class FilteredRows {
  readonly rows: Rows;
  readonly filter: Filter;
  readonly #test: RowTest;
  readonly places = new NumberList();
  #first = -1;
  #end = -1;

  constructor(rows: Rows, filter: Filter) {
    this.rows = rows;
    this.filter = filter;
    this.#test = createRowTest(rows, filter);
  }

  isFor(rows: Rows, { words, problems }: Filter): boolean {
    return this.rows === rows && this.filter.words === words && this.filter.problems === problems;
  }

  update(): this {
    const { first, end } = this.rows;
    if (first !== this.#first) {
      this.places.clear();
      this.#end = first;
    }
    for (let at = this.#end; at < end; at += 1) if (this.#test(at)) this.places.push(at);
    this.#first = first;
    this.#end = end;
    return this;
  }
}

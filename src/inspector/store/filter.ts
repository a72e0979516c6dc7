// Which rows a list shows. Words are looked up once for each label and run, and then only numbers are compared.

import type { Rows } from './rows.js';
import { Numbers } from './numbers.js';
import { PROBLEM, TONES } from './tones.js';

export interface Filter {
  readonly words: string;
  readonly problems: boolean;
}
export const isFiltering = ({ words, problems }: Filter): boolean => problems || words.trim() !== '';

type Test = (at: number) => boolean;

/** Whether a row has all of the words: in what happened, its outcome, its run, its number, or as its hash begins. */
export function testOf(rows: Rows, { words, problems }: Filter): Test {
  const tests = words
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => wordTest(rows, word));
  return (at) => (!problems || rows.tone(at) >= PROBLEM) && tests.every((test) => test(at));
}

function wordTest(rows: Rows, word: string): Test {
  const labels = memo((label) => rows.labels.at(label).toLowerCase().includes(word));
  const runs = memo((run) => runText(rows, run).includes(word));
  const tones = memo((tone) => (TONES[tone] ?? '').toLowerCase().includes(word));
  const [low, high] = hashesWith(word);
  const [, hash, digits] = /^(#?)(\d{1,9})$/.exec(word) ?? [];
  const number = digits === undefined ? -1 : Number(digits);
  const step = hash === '#' ? number : -1;
  return (at) =>
    at === number ||
    (step > 0 && rows.step(at) === step) ||
    tones(rows.tone(at)) ||
    labels(rows.label(at)) ||
    (high > 0 && rows.hash(at) >= low && rows.hash(at) < high) ||
    runs(rows.run(at));
}

/** The hashes that begin so, as numbers from and to; none for what is no beginning of a hash. */
function hashesWith(word: string): readonly [from: number, to: number] {
  if (!/^[0-9a-f]{2,8}$/.test(word)) return [0, 0];
  const wide = 16 ** (8 - word.length);
  const from = Number.parseInt(word, 16) * wide;
  return [from, from + wide];
}

/** Put together once for each run: with every letter that is typed they are all looked at. */
const texts = new WeakMap<Rows, Map<number, string>>();

function runText(rows: Rows, run: number): string {
  const known = texts.get(rows) ?? new Map<number, string>();
  texts.set(rows, known);
  const had = known.get(run);
  if (had !== undefined) return had;
  const born = rows.born.get(run);
  const told = born === undefined ? [] : [born.kind, born.lane, born.role, born.actor, born.case, born.request];
  const text = [rows.ids.at(run), ...told].join(' ').toLowerCase();
  if (born !== undefined) known.set(run, text);
  return text;
}

function memo(of: (key: number) => boolean): (key: number) => boolean {
  const known = new Map<number, boolean>();
  return (key) => {
    const had = known.get(key);
    if (had !== undefined) return had;
    const is = of(key);
    known.set(key, is);
    return is;
  };
}

/** Rows of the whole log that pass a filter, found once and then only for what comes. */
export class Found {
  readonly of: Rows;
  readonly filter: Filter;
  readonly #test: Test;
  readonly places = new Numbers();
  #first = -1;
  #end = -1;

  constructor(rows: Rows, filter: Filter) {
    this.of = rows;
    this.filter = filter;
    this.#test = testOf(rows, filter);
  }

  isFor(rows: Rows, { words, problems }: Filter): boolean {
    return this.of === rows && this.filter.words === words && this.filter.problems === problems;
  }

  update(): this {
    const { first, end } = this.of;
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

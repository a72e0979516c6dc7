// The contents of the event list: the whole log, or one run with its moves, each with an optional filter, or a
// comparison of two runs or steps. A list is rebuilt when its inputs change, and is otherwise only read by index.

import { computed, type ReadonlySignal } from '@preact/signals';
import type { Course, Move } from '../../../../core/contract/inspection/inspection.js';
import { alignSequences, type AlignedPair } from '../../../../core/align-sequences.js';
import { FilteredRows, isFiltering, createRowTest, type Filter } from './rows/filtered-rows.js';
import { entriesWithCauses, isUntil, momentAfter, nthOf, RunMarks, type RunMark } from './run-marks.js';
import { lowerBound, NumberList } from './rows/number-list.js';
import { countMovesUntil, movesOf, type Moment } from './path.js';
import type { PageView } from './address.js';
import type { Courses } from './courses.js';
import type { Rows } from './rows/rows.js';
import type { Run, Runs } from './rows/runs.js';

export interface ListItem extends RunMark {
  /** The run of the item; in a comparison also the side. */
  readonly run: Run | null;
  readonly course: Course | null;
  readonly side: 'a' | 'b' | 'both' | null;
}

/** The part of the store that lists need. */
export interface ListSource {
  readonly view: ReadonlySignal<PageView>;
  readonly comparison: ReadonlySignal<PageView['cmp']>;
  readonly rows: Rows;
  readonly runs: Runs;
  readonly courses: Courses;
}

export interface ItemList {
  readonly length: number;
  readonly get: (place: number) => ListItem | null;
  /** The last item at or before a position, or -1. */
  readonly placeOf: (moment: Moment) => number;
}

const NO_COURSE: readonly never[] = [];

export class Lists {
  readonly #store: ListSource;
  #filtered: FilteredRows | null = null;
  #marks: { readonly of: string; readonly marks: RunMarks } | null = null;
  readonly list;

  constructor(store: ListSource) {
    this.#store = store;
    this.list = computed<ItemList>(() => this.#createList());
  }

  #createList(): ItemList {
    const { run: id, own, filter: words, problems, step, tab } = this.#store.view.value;
    const cmp = this.#store.comparison.value;
    const filter = { words, problems };
    const run = id === null ? null : this.#store.runs.byId(id);
    if (cmp !== null && run !== null) return this.#listComparison(run, tab === 'run' ? 0 : step, cmp);
    return own && run !== null ? this.#listRun(run, filter) : this.#listLedger(filter);
  }

  #listLedger(filter: Filter): ItemList {
    const { rows } = this.#store;
    const item = (at: number): ListItem => ({
      at,
      nth: 0,
      move: -1,
      run: this.#store.runs.get(rows.run(at)),
      course: null,
      side: null,
    });
    if (!isFiltering(filter)) {
      return {
        length: rows.end - rows.first,
        get: (place) => (rows.has(rows.first + place) && place >= 0 ? item(rows.first + place) : null),
        placeOf: ({ at }) => Math.min(rows.end - 1, at) - rows.first,
      };
    }
    if (this.#filtered?.isFor(rows, filter) !== true) this.#filtered = new FilteredRows(rows, filter);
    const { places } = this.#filtered.update();
    return {
      length: places.length,
      get: (place) => (place >= 0 && place < places.length ? item(places.at(place)) : null),
      placeOf: ({ at }) => places.countBelow(at + 1) - 1,
    };
  }

  #listRun(run: Run, filter: Filter): ItemList {
    const course = this.#store.courses.course(run);
    const marks = this.#marksOf(run, course);
    const item = (mark: RunMark | null): ListItem | null =>
      mark === null ? null : { ...mark, run, course, side: null };
    if (!isFiltering(filter)) {
      return {
        length: marks.length,
        get: (place) => item(marks.get(place)),
        placeOf: (moment) => marks.placeOf(moment),
      };
    }
    const test = createRowTest(this.#store.rows, filter);
    const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
    const filtered: RunMark[] = [];
    for (let place = 0; place < marks.length; place += 1) {
      const mark = marks.get(place);
      if (mark === null) continue;
      const isPassing =
        mark.move < 0
          ? test(mark.at)
          : !filter.problems && words.every((word) => moveText(course, mark.move).includes(word));
      if (isPassing) filtered.push(mark);
    }
    return {
      length: filtered.length,
      get: (place) => item(filtered[place] ?? null),
      placeOf: (moment) => lowerBound(filtered.length, (place) => isUntil(filtered[place], moment)) - 1,
    };
  }

  #marksOf(run: Run, course: Course | null): RunMarks {
    const { rows } = this.#store;
    const through = Math.min(course?.through ?? 0, rows.end);
    const of = `${run.id}/${run.rows.length}/${run.rows.at(0)}/${course?.moves.length ?? 0}/${through}/${rows.first}`;
    if (this.#marks?.of !== of)
      this.#marks = { of, marks: this.#createMarks(run.rows, run, course?.moves ?? NO_COURSE) };
    return this.#marks.marks;
  }

  /** The marks of a run, without moves after the last listed entry. */
  #createMarks(entries: NumberList, { tree }: Run, moves: readonly Move[]): RunMarks {
    const { rows, runs } = this.#store;
    const shown = moves.slice(0, countMovesUntil(moves, momentAfter(rows.end - 1)));
    return new RunMarks(entriesWithCauses(entries, shown, runs.inputsOf(tree)), shown);
  }

  #listComparison(run: Run, step: number, cmp: { readonly run: string; readonly step: number }): ItemList {
    const other = this.#store.runs.byId(cmp.run);
    const [a, b] = [this.#sideItemsOf(run, step), this.#sideItemsOf(other, cmp.step)];
    const rows = alignSequences(
      a.map(({ text }) => text),
      b.map(({ text }) => text),
    );
    const items = rows.map((aligned) => toSideItem(aligned, a, b));
    const own = items.filter(({ side }) => side !== 'b');
    return {
      length: items.length,
      get: (place) => items[place] ?? null,
      placeOf: (moment) => {
        const last = own[lowerBound(own.length, (place) => isUntil(own[place], moment)) - 1];
        return last === undefined ? -1 : items.indexOf(last);
      },
    };
  }

  /** The compared items: of a step its moves and its trace, of a run its moves and all its entries. */
  #sideItemsOf(run: Run | null, step: number): readonly SideItem[] {
    const course = this.#store.courses.course(run);
    if (run === null) return [];
    const { rows } = this.#store;
    const trace = step > 0 ? run.traces.at(step - 1) : -1;
    const entries = new NumberList();
    if (step === 0) for (let place = 0; place < run.rows.length; place += 1) entries.push(run.rows.at(place));
    else for (const at of [course?.steps[step - 1] ?? -1, trace]) if (at >= 0) entries.push(at);
    const own = course === null ? [] : movesOf(course, step);
    const marks = this.#createMarks(entries, run, own);
    const places = course === null ? [] : course.moves.flatMap((move, place) => (move[1] === step ? [place] : []));
    return Array.from({ length: marks.length }, (_, place) => {
      const mark = marks.get(place) ?? { at: 0, nth: 0, move: -1 };
      const move = mark.move < 0 ? -1 : (places[mark.move] ?? -1);
      const text = move < 0 ? rows.labels.at(rows.label(mark.at)) : moveText(course, move);
      const nth = move < 0 ? 0 : nthOf(course?.moves ?? NO_COURSE, move);
      return { at: mark.at, nth, move, run, course, text };
    });
  }
}

interface SideItem extends RunMark {
  readonly run: Run;
  readonly course: Course | null;
  readonly text: string;
}

function toSideItem({ a, b }: AlignedPair, ours: readonly SideItem[], theirs: readonly SideItem[]): ListItem {
  const item = (a === null ? null : ours[a]) ?? (b === null ? null : theirs[b]);
  const side = a === null ? 'b' : b === null ? 'a' : 'both';
  return {
    at: item?.at ?? 0,
    nth: item?.nth ?? 0,
    move: item?.move ?? -1,
    run: item?.run ?? null,
    course: item?.course ?? null,
    side,
  };
}

const moveText = (course: Course | null, place: number): string =>
  (course?.edges[course.moves[place]?.[2] ?? -1] ?? '').toLowerCase();

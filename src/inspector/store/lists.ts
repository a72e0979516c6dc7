// What the list of events shows: the whole log or one run with its moves, all of it or what passes the filter, or two
// runs or steps side by side. Each is made when something that it is made of changes, and else only looked at by place.

import { computed, type ReadonlySignal } from '@preact/signals';
import type { Course } from '../../contract/inspection.js';
import { alignment, type Aligned } from './align.js';
import { Found, isFiltering, testOf, type Filter } from './filter.js';
import { Marks, type Mark } from './marks.js';
import { lowerBound, Numbers } from './numbers.js';
import { movesOf, type Moment } from './path.js';
import type { View } from './address.js';
import type { Courses } from './courses.js';
import type { Rows } from './rows.js';
import type { Run, Runs } from './runs.js';
import { heed } from './heed.js';

export interface Item extends Mark {
  /** Whose it is; of a list that compares, also of which side. */
  readonly run: Run | null;
  readonly course: Course | null;
  readonly side: 'a' | 'b' | 'both' | null;
}

/** What is needed of the store. */
export interface ListSource {
  readonly rev: ReadonlySignal<number>;
  readonly view: ReadonlySignal<View>;
  readonly rows: Rows;
  readonly runs: Runs;
  readonly courses: Courses;
}

export interface List {
  readonly length: number;
  readonly get: (place: number) => Item | null;
  /** The last item at or before a moment, or -1. */
  readonly placeOf: (moment: Moment) => number;
}

const NO_COURSE: readonly never[] = [];

export class Lists {
  readonly #store: ListSource;
  #found: Found | null = null;
  #marks: { readonly of: string; readonly marks: Marks } | null = null;
  readonly list;

  constructor(store: ListSource) {
    this.#store = store;
    this.list = computed<List>(() => this.#make());
  }

  #make(): List {
    const { run: id, own, filter: words, problems, cmp, step, tab } = this.#store.view.value;
    heed(this.#store.rev);
    const filter = { words, problems };
    const run = id === null ? null : this.#store.runs.byId(id);
    if (cmp !== null && run !== null) return this.#compared(run, tab === 'run' ? 0 : step, cmp);
    return own && run !== null ? this.#ofRun(run, filter) : this.#ofAll(filter);
  }

  #ofAll(filter: Filter): List {
    const { rows } = this.#store;
    const item = (at: number): Item => ({
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
    if (this.#found?.isFor(rows, filter) !== true) this.#found = new Found(rows, filter);
    const { places } = this.#found.update();
    return {
      length: places.length,
      get: (place) => (place >= 0 && place < places.length ? item(places.at(place)) : null),
      placeOf: ({ at }) => places.below(at + 1) - 1,
    };
  }

  #ofRun(run: Run, filter: Filter): List {
    const course = this.#store.courses.course(run);
    const marks = this.#marksOf(run, course);
    const item = (mark: Mark | null): Item | null => (mark === null ? null : { ...mark, run, course, side: null });
    if (!isFiltering(filter)) {
      return {
        length: marks.length,
        get: (place) => item(marks.get(place)),
        placeOf: (moment) => marks.placeOf(moment),
      };
    }
    const test = testOf(this.#store.rows, filter);
    const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
    const kept: Mark[] = [];
    for (let place = 0; place < marks.length; place += 1) {
      const mark = marks.get(place);
      if (mark === null) continue;
      const passes =
        mark.move < 0
          ? test(mark.at)
          : !filter.problems && words.every((word) => moveText(course, mark.move).includes(word));
      if (passes) kept.push(mark);
    }
    return {
      length: kept.length,
      get: (place) => item(kept[place] ?? null),
      placeOf: (moment) => lowerBound(kept.length, (place) => isUntil(kept[place], moment)) - 1,
    };
  }

  #marksOf(run: Run, course: Course | null): Marks {
    const of = `${run.id}/${run.rows.length}/${run.rows.at(0)}/${course?.moves.length ?? 0}/${course?.through ?? 0}`;
    if (this.#marks?.of !== of) this.#marks = { of, marks: new Marks(run.rows, course?.moves ?? NO_COURSE) };
    return this.#marks.marks;
  }

  #compared(run: Run, step: number, cmp: { readonly run: string; readonly step: number }): List {
    const other = this.#store.runs.byId(cmp.run);
    const [a, b] = [this.#sideOf(run, step), this.#sideOf(other, cmp.step)];
    const rows = alignment(
      a.map(({ text }) => text),
      b.map(({ text }) => text),
    );
    const items = rows.map((aligned) => sideItem(aligned, a, b));
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

  /** What is compared: of a step its moves and its trace, of a run its moves and all its entries. */
  #sideOf(run: Run | null, step: number): readonly SideItem[] {
    const course = this.#store.courses.course(run);
    if (run === null) return [];
    const { rows } = this.#store;
    const trace = step > 0 ? run.traces.at(step - 1) : -1;
    const entries = new Numbers();
    if (step === 0) for (let place = 0; place < run.rows.length; place += 1) entries.push(run.rows.at(place));
    else for (const at of [course?.steps[step - 1] ?? -1, trace]) if (at >= 0) entries.push(at);
    const own = course === null ? [] : movesOf(course, step);
    const marks = new Marks(entries, own);
    const places = course === null ? [] : course.moves.flatMap((move, place) => (move[1] === step ? [place] : []));
    return Array.from({ length: marks.length }, (_, place) => {
      const mark = marks.get(place) ?? { at: 0, nth: 0, move: -1 };
      const move = mark.move < 0 ? -1 : (places[mark.move] ?? -1);
      const text = move < 0 ? rows.labels.at(rows.label(mark.at)) : moveText(course, move);
      return { at: mark.at, nth: mark.nth, move, run, course, text };
    });
  }
}

interface SideItem extends Mark {
  readonly run: Run;
  readonly course: Course | null;
  readonly text: string;
}

function sideItem({ a, b }: Aligned, ours: readonly SideItem[], theirs: readonly SideItem[]): Item {
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

const isUntil = (mark: Mark | undefined, { at, moves }: Moment): boolean =>
  mark !== undefined && (mark.at < at || (mark.at === at && mark.nth <= moves));

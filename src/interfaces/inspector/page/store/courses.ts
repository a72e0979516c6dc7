// Courses and charts of the displayed runs: fetched when first needed, and updated while they grow.

import { signal } from '@preact/signals';
import type { Course } from '../../../../core/contract/inspection/inspection.js';
import { appendCourse } from './run-marks.js';
import { ChartIndex, movesOf, Path } from './path.js';
import { toAccessProblem, type Feed } from '../data/feed.js';
import type { Rows } from './rows/rows.js';
import { firstEntryOf, type Run, type Runs } from './rows/runs.js';

/** Shortest interval between requests for a course that grows, in milliseconds. */
const REFETCH_MS = 400;
/** The number of requests for one course without a pause. */
const FETCHES_MAX = 4;
const RETRY_MS = 2_000;
const RETRY_MS_MAX = 60_000;

/** The part of the store that courses need. */
export interface CourseSource {
  readonly feed: Feed;
  readonly runs: Runs;
  readonly rows: Pick<Rows, 'end'>;
}

interface CourseEntry {
  course: Course | null;
  state: 'asking' | 'here' | 'none' | 'failed';
  /** The last entry of the tree at the time of the request. A failed request counts as complete for a while. */
  requestedThrough: number;
  /** The pause after the next failure, in milliseconds. */
  retryMs: number;
  /** The current request. */
  request: Promise<void>;
  /** Whether the run is displayed again, and its course was not requested since. */
  isBehind: boolean;
}

/** `asking` is displayed as loading; an unavailable chart is displayed as such. */
export type ChartState = ChartIndex | 'asking' | 'none';

export class Courses {
  readonly #store: CourseSource;
  readonly #courses = new Map<string, CourseEntry>();
  readonly #charts = new Map<string, ChartState>();
  readonly #paths = new Map<string, Path>();
  /** Increases with every response. */
  readonly rev = signal(0);

  constructor(store: CourseSource) {
    this.#store = store;
  }

  /** The course of a run as far as it is known; requests the missing part. */
  course(run: Run | null): Course | null {
    if (run === null) return null;
    const entry = this.#entryOf(run);
    if (entry === undefined) {
      const fresh: CourseEntry = {
        course: null,
        state: 'asking',
        requestedThrough: this.#lastOf(run),
        retryMs: RETRY_MS,
        request: Promise.resolve(),
        isBehind: false,
      };
      this.#courses.set(run.id, fresh);
      fresh.request = this.#fetchCourse(run, fresh, 0);
      return null;
    }
    // A course that was cut short never continues: only new entries justify a request.
    const last = this.#lastOf(run);
    const through = entry.course?.through ?? 0;
    const isIdle = !entry.isBehind && (entry.state === 'here' || entry.state === 'failed');
    if (isIdle && through <= last && entry.requestedThrough < last) {
      entry.requestedThrough = last;
      entry.state = 'asking';
      entry.request = new Promise((resolve) => setTimeout(resolve, REFETCH_MS)).then(() =>
        this.#fetchCourse(run, entry, through),
      );
    }
    return entry.isBehind ? null : entry.course;
  }

  /** Called when a run is displayed. A course that is behind is not shown: it would be of an earlier revision. */
  open(run: Run): void {
    const entry = this.#courses.get(run.id);
    if (entry === undefined || entry.course === null || entry.course.through > this.#lastOf(run)) return;
    entry.isBehind = true;
    void this.prepare(run, this.#lastOf(run)).then(() => {
      entry.isBehind = false;
      this.rev.value += 1;
    });
  }

  /** Fetches the part of a displayed course up to an entry that is not shown yet. A failure changes nothing. */
  async prepare(run: Run, through: number): Promise<void> {
    const entry = this.#courses.get(run.id);
    while (entry?.state === 'asking') await entry.request;
    if (entry?.state !== 'here' || (entry.course?.through ?? 0) > through) return;
    entry.requestedThrough = Math.max(entry.requestedThrough, through);
    entry.state = 'asking';
    entry.request = this.#fetchCourse(run, entry, entry.course?.through ?? 0);
    await entry.request;
  }

  /** The number of entries that the drawn course of a run covers: all that are shown, unless it is behind. */
  revisionOf(run: Run): number {
    const through = this.course(run)?.through ?? Infinity;
    const { rows } = this.#store;
    return this.#lastOf(run) < through ? rows.end : through;
  }

  #lastOf(run: Run): number {
    return this.#store.runs.lastOfTree(run.tree);
  }

  stateOf(run: Run): CourseEntry['state'] {
    return this.#entryOf(run)?.state ?? 'asking';
  }

  /** Whatever reads it is drawn again with every response. */
  #entryOf(run: Run): CourseEntry | undefined {
    this.rev.valueOf();
    return this.#courses.get(run.id);
  }

  chart(hash: string | null): ChartState {
    this.rev.valueOf();
    if (hash === null || hash === '') return 'none';
    const known = this.#charts.get(hash);
    if (known !== undefined) return known;
    this.#charts.set(hash, 'asking');
    void this.#fetchChart(hash);
    return 'asking';
  }

  /** The path of a run, or of one of its steps, before any position; `seekTo` moves it. */
  path(run: Run | null, step: number): Path | null {
    const course = this.course(run);
    if (course === null || run === null) return null;
    const chart = this.chart(step > 0 ? course.step_chart : course.chart);
    if (!(chart instanceof ChartIndex)) return null;
    const key = `${run.id}:${step}`;
    const known = this.#paths.get(key);
    const path =
      known?.course === course && known.index === chart ? known : new Path(chart, course, movesOf(course, step));
    path.born = step > 0 ? (course.steps[step - 1] ?? 0) : firstEntryOf(run);
    if (path === known) return path;
    if (this.#paths.size > 12) this.#paths.clear();
    this.#paths.set(key, path);
    return path;
  }

  async #fetchCourse(run: Run, entry: CourseEntry, after: number): Promise<void> {
    try {
      entry.course = await this.#fetchThrough(run, entry.course, after);
      entry.state = entry.course === null ? 'none' : 'here';
      entry.retryMs = RETRY_MS;
    } catch (error) {
      entry.state = entry.course === null ? 'failed' : 'here';
      entry.requestedThrough = Infinity;
      if (toAccessProblem(error) === null) void this.#retryLater(entry);
    }
    this.rev.value += 1;
  }

  /** Fetches until the course covers what is shown: that may grow while the answer is on its way. */
  async #fetchThrough(run: Run, known: Course | null, after: number): Promise<Course | null> {
    let [course, from] = [known, after];
    for (let tries = 0; tries < FETCHES_MAX; tries += 1) {
      const more = await this.#store.feed.course(run.id, from);
      if (more === null) return course;
      course = appendCourse(course, more);
      from = course.through;
      if (from > this.#lastOf(run)) break;
    }
    return course;
  }

  async #retryLater(entry: CourseEntry): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, entry.retryMs));
    entry.retryMs = Math.min(2 * entry.retryMs, RETRY_MS_MAX);
    entry.requestedThrough = -1;
    this.rev.value += 1;
  }

  async #fetchChart(hash: string): Promise<void> {
    try {
      const chart = await this.#store.feed.chart(hash);
      this.#charts.set(hash, chart === null ? 'none' : new ChartIndex(chart));
    } catch (error) {
      // A refused token is still refused two seconds later.
      if (toAccessProblem(error) !== null) return;
      // The request failed, which does not mean that there is no course: request it again if it is still needed.
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      this.#charts.delete(hash);
    }
    this.rev.value += 1;
  }
}

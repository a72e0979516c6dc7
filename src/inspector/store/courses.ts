// Courses and charts of the displayed runs: fetched when first needed, and updated while they grow.

import { signal, type ReadonlySignal } from '@preact/signals';
import type { Course } from '../../contract/inspection/inspection.js';
import { appendCourse } from './run-marks.js';
import { ChartIndex, movesOf, Path } from './path.js';
import { toAccessProblem, type Feed } from '../data/feed.js';
import { firstEntryOf, type Run, type Runs } from './rows/runs.js';
import { trackSignals } from './track-signals.js';

/** Shortest interval between requests for a course that grows, in milliseconds. */
const REFETCH_MS = 400;
const RETRY_MS = 2_000;
const RETRY_MS_MAX = 60_000;

/** The part of the store that courses need. */
export interface CourseSource {
  readonly feed: Feed;
  readonly rev: ReadonlySignal<number>;
  readonly runs: Runs;
}

interface CourseEntry {
  course: Course | null;
  state: 'asking' | 'here' | 'none' | 'failed';
  /** The last entry of the tree at the time of the request. A failed request counts as complete for a while. */
  requestedThrough: number;
  /** The pause after the next failure, in milliseconds. */
  retryMs: number;
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
    trackSignals(this.rev);
    trackSignals(this.#store.rev);
    if (run === null) return null;
    const entry = this.#courses.get(run.id);
    if (entry === undefined) {
      this.#courses.set(run.id, {
        course: null,
        state: 'asking',
        requestedThrough: this.#lastOf(run),
        retryMs: RETRY_MS,
      });
      void this.#fetchCourse(run, 0);
      return null;
    }
    // A course that was cut short never continues: only new entries justify a request.
    const last = this.#lastOf(run);
    const through = entry.course?.through ?? 0;
    if ((entry.state === 'here' || entry.state === 'failed') && through <= last && entry.requestedThrough < last) {
      entry.requestedThrough = last;
      void this.#fetchCourse(run, through);
    }
    return entry.course;
  }

  #lastOf(run: Run): number {
    return this.#store.runs.lastOfTree(run.tree);
  }

  stateOf(run: Run): CourseEntry['state'] {
    trackSignals(this.rev);
    return this.#courses.get(run.id)?.state ?? 'asking';
  }

  chart(hash: string | null): ChartState {
    trackSignals(this.rev);
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

  async #fetchCourse(run: Run, after: number): Promise<void> {
    const entry = this.#courses.get(run.id);
    if (entry === undefined) return;
    if (after > 0) {
      entry.state = 'asking';
      await new Promise((resolve) => setTimeout(resolve, REFETCH_MS));
    }
    try {
      const more = await this.#store.feed.course(run.id, after);
      entry.course = more === null ? entry.course : appendCourse(entry.course, more);
      entry.state = more === null ? 'none' : 'here';
      entry.retryMs = RETRY_MS;
    } catch (error) {
      entry.state = entry.course === null ? 'failed' : 'here';
      entry.requestedThrough = Infinity;
      this.rev.value += 1;
      if (toAccessProblem(error) !== null) return;
      await new Promise((resolve) => setTimeout(resolve, entry.retryMs));
      entry.retryMs = Math.min(2 * entry.retryMs, RETRY_MS_MAX);
      entry.requestedThrough = -1;
    }
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

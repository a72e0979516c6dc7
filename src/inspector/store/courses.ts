// Courses and charts of the runs that are looked at: fetched when they are first wanted, and followed while they grow.

import { signal, type ReadonlySignal } from '@preact/signals';
import type { Course } from '../../contract/inspection.js';
import { joined } from './marks.js';
import { ChartIndex, movesOf, Path } from './path.js';
import { refusalOf, type Feed } from '../data/feed.js';
import { bornAt, type Run, type Runs } from './runs.js';
import { heed } from './heed.js';

/** At most so often is a course that grows asked for again. */
const AGAIN_MS = 400;
const FAILED_MS = 2_000;
const FAILED_MS_MAX = 60_000;

/** What is needed of the store. */
export interface CourseSource {
  readonly feed: Feed;
  readonly rev: ReadonlySignal<number>;
  readonly runs: Runs;
}

interface Kept {
  course: Course | null;
  state: 'asking' | 'here' | 'none' | 'failed';
  /** The last entry of its tree when it was asked for; what failed was for a while asked for to the end. */
  asked: number;
  /** How long it rests after the next failure. */
  rest: number;
}

/** `asking` is shown as such; a chart that is not to be had is said. */
export type ChartState = ChartIndex | 'asking' | 'none';

export class Courses {
  readonly #store: CourseSource;
  readonly #courses = new Map<string, Kept>();
  readonly #charts = new Map<string, ChartState>();
  readonly #paths = new Map<string, Path>();
  /** Goes up with every answer. */
  readonly rev = signal(0);

  constructor(store: CourseSource) {
    this.#store = store;
  }

  /** The course of a run as far as it is known; asks for what is missing. */
  course(run: Run | null): Course | null {
    heed(this.rev);
    heed(this.#store.rev);
    if (run === null) return null;
    const kept = this.#courses.get(run.id);
    if (kept === undefined) {
      this.#courses.set(run.id, { course: null, state: 'asking', asked: this.#lastOf(run), rest: FAILED_MS });
      void this.#ask(run, 0);
      return null;
    }
    // What is cut short does not go on, however often it is asked for: only what is new is worth a question.
    const last = this.#lastOf(run);
    const through = kept.course?.through ?? 0;
    if ((kept.state === 'here' || kept.state === 'failed') && through <= last && kept.asked < last) {
      kept.asked = last;
      void this.#ask(run, through);
    }
    return kept.course;
  }

  #lastOf(run: Run): number {
    return this.#store.runs.lastOfTree(run.tree);
  }

  stateOf(run: Run): Kept['state'] {
    heed(this.rev);
    return this.#courses.get(run.id)?.state ?? 'asking';
  }

  chart(hash: string | null): ChartState {
    heed(this.rev);
    if (hash === null || hash === '') return 'none';
    const known = this.#charts.get(hash);
    if (known !== undefined) return known;
    this.#charts.set(hash, 'asking');
    void this.#askChart(hash);
    return 'asking';
  }

  /** The way of a run, or of one of its steps, at no particular moment yet: `seekTo` brings it there. */
  path(run: Run | null, step: number): Path | null {
    const course = this.course(run);
    if (course === null || run === null) return null;
    const chart = this.chart(step > 0 ? course.step_chart : course.chart);
    if (!(chart instanceof ChartIndex)) return null;
    const key = `${run.id}:${step}`;
    const known = this.#paths.get(key);
    const path = known?.of === course && known.index === chart ? known : new Path(chart, course, movesOf(course, step));
    path.born = step > 0 ? (course.steps[step - 1] ?? 0) : bornAt(run);
    if (path === known) return path;
    if (this.#paths.size > 12) this.#paths.clear();
    this.#paths.set(key, path);
    return path;
  }

  async #ask(run: Run, after: number): Promise<void> {
    const kept = this.#courses.get(run.id);
    if (kept === undefined) return;
    if (after > 0) {
      kept.state = 'asking';
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    try {
      const more = await this.#store.feed.course(run.id, after);
      kept.course = more === null ? kept.course : joined(kept.course, more);
      kept.state = more === null ? 'none' : 'here';
      kept.rest = FAILED_MS;
    } catch (error) {
      kept.state = kept.course === null ? 'failed' : 'here';
      kept.asked = Infinity;
      this.rev.value += 1;
      if (refusalOf(error) !== null) return;
      await new Promise((resolve) => setTimeout(resolve, kept.rest));
      kept.rest = Math.min(2 * kept.rest, FAILED_MS_MAX);
      kept.asked = -1;
    }
    this.rev.value += 1;
  }

  async #askChart(hash: string): Promise<void> {
    try {
      const chart = await this.#store.feed.chart(hash);
      this.#charts.set(hash, chart === null ? 'none' : new ChartIndex(chart));
    } catch (error) {
      // Whoever is not let in is not let in two seconds later either.
      if (refusalOf(error) !== null) return;
      // It could not be asked for, which is not to say that it is not there: asked again, when it is still wanted.
      await new Promise((resolve) => setTimeout(resolve, FAILED_MS));
      this.#charts.delete(hash);
    }
    this.rev.value += 1;
  }
}

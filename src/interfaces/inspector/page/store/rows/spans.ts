// The duration of each run of a tree, up to a position. A run that has not ended lasts until the time of that position.

import { lowerBound } from './number-list.js';
import type { Rows } from './rows.js';
import { firstEntryOf, stateOf, type Run, type Runs } from './runs.js';

export interface Span {
  readonly run: Run;
  readonly depth: number;
  readonly from: number;
  /** The time of its end; for a run that has not ended, the time of the position. */
  readonly to: number;
  readonly ended: boolean;
}

const ENDED = ['completed', 'failed', 'denied', 'cancelled'];

/** A position, and the time at it in milliseconds. */
export interface SpanEnd {
  readonly at: number;
  readonly now: number;
}

/** Each run below its parent; only runs that exist at entry `at`. */
export function listSpans(rows: Rows, runs: Runs, root: Run, end: SpanEnd): readonly Span[] {
  const spans: Span[] = [];
  const visit = (run: Run, depth: number): void => {
    const own = ownSpan(rows, run, depth, end);
    if (own !== null) spans.push(own);
    for (const key of run.children) {
      const child = runs.get(key);
      if (child === null || firstEntryOf(child) > end.at) break;
      visit(child, depth + 1);
    }
  };
  visit(root, 0);
  return spans;
}

function ownSpan(rows: Rows, run: Run, depth: number, { at, now }: SpanEnd): Span | null {
  const seen = lowerBound(run.rows.length, (place) => run.rows.at(place) <= at);
  if (seen === 0) return null;
  const ended = ENDED.includes(stateOf(run, at) ?? '');
  // Content may be read long after the run has ended: that is recorded in the run, and does not extend it.
  const moved = lowerBound(run.changed.length, (place) => run.changed.at(place) <= at);
  const last = rows.time(ended ? run.changed.at(moved - 1) : run.rows.at(seen - 1));
  return { run, depth, from: rows.time(run.rows.at(0)), to: ended ? last : Math.max(last, now), ended };
}

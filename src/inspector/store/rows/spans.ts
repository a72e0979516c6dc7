// The duration of each run of a tree, up to a position.

import { lowerBound } from './number-list.js';
import type { Rows } from './rows.js';
import { firstEntryOf, stateOf, type Run, type Runs } from './runs.js';

export interface Span {
  readonly run: Run;
  readonly depth: number;
  readonly from: number;
  readonly to: number;
  readonly ended: boolean;
}

const ENDED = ['completed', 'failed', 'denied', 'cancelled'];

/** Each run below its parent; only runs that exist at entry `at`. */
export function listSpans(rows: Rows, runs: Runs, root: Run, at: number): readonly Span[] {
  const spans: Span[] = [];
  const visit = (run: Run, depth: number): void => {
    const place = spans.length;
    const own = ownSpan(rows, run, depth, at);
    if (own !== null) spans.push(own);
    let to = own?.to ?? 0;
    for (const key of run.children) {
      const child = runs.get(key);
      if (child === null || firstEntryOf(child) > at) break;
      visit(child, depth + 1);
    }
    // A run that has not ended lasts as long as its descendants.
    for (const span of spans.slice(place + 1)) to = Math.max(to, span.to);
    if (own !== null && !own.ended) spans[place] = { ...own, to };
  };
  visit(root, 0);
  return spans;
}

function ownSpan(rows: Rows, run: Run, depth: number, at: number): Span | null {
  const seen = lowerBound(run.rows.length, (place) => run.rows.at(place) <= at);
  if (seen === 0) return null;
  const ended = ENDED.includes(stateOf(run, at) ?? '');
  // Content may be read long after the run has ended: that is recorded in the run, and does not extend it.
  const moved = lowerBound(run.changed.length, (place) => run.changed.at(place) <= at);
  const last = ended ? run.changed.at(moved - 1) : run.rows.at(seen - 1);
  return { run, depth, from: rows.time(run.rows.at(0)), to: rows.time(last), ended };
}

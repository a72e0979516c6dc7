// How long each run of a tree took, up to a moment.

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

/** Each below the one that started it; only those that there were at the entry `at`. */
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
    // What is not over lasts as long as what is below it.
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
  // Somebody may read what it wrote long after it was over: that is told of it, and is no part of it.
  const moved = lowerBound(run.changed.length, (place) => run.changed.at(place) <= at);
  const last = ended ? run.changed.at(moved - 1) : run.rows.at(seen - 1);
  return { run, depth, from: rows.time(run.rows.at(0)), to: rows.time(last), ended };
}

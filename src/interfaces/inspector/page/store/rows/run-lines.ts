// Run trees as lines: all runs for the list, newest root first and expanded nodes below it, or the durations of the
// runs of one tree. Runs that start after the cursor are omitted.

import { lowerBound } from './number-list.js';
import type { Rows } from './rows.js';
import { firstEntryOf, stateOf, type Run, type Runs } from './runs.js';

export interface TreeLine {
  readonly run: Run;
  readonly depth: number;
  readonly open: boolean;
  readonly hasChildren: boolean;
}

/** How many of a list of runs, oldest first, exist at the position. */
const countCreatedUntil = (runs: Runs, keys: readonly number[], at: number): number =>
  lowerBound(keys.length, (place) => {
    const run = runs.get(keys[place] ?? -1);
    return run !== null && firstEntryOf(run) <= at;
  });

/** Lines are created only when they are displayed: a ledger may have many thousand roots. */
export function treeLines(runs: Runs, at: number, opened: ReadonlySet<string>): readonly TreeLine[] {
  const lines: TreeLine[] = [];
  const visit = (keys: readonly number[], depth: number, newestFirst: boolean): void => {
    const count = countCreatedUntil(runs, keys, at);
    for (let place = 0; place < count; place += 1) {
      const run = runs.get(keys[newestFirst ? count - 1 - place : place] ?? -1);
      if (run === null) continue;
      const hasChildren = countCreatedUntil(runs, run.children, at) > 0;
      const open = hasChildren && opened.has(run.id);
      lines.push({ run, depth, open, hasChildren });
      if (open) visit(run.children, depth + 1, false);
    }
  };
  visit(runs.roots, 0, true);
  return lines;
}

/** The run and its ancestors, from the root. */
export function ancestorsOf(runs: Runs, id: string): readonly string[] {
  const found: string[] = [];
  for (let at: string | null = id; at !== null;) {
    found.unshift(at);
    const run = runs.byId(at);
    at = run === null ? null : runs.parentOf(run);
  }
  return found;
}

/** The duration of a run, up to a position. */
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
  const seen = run.rows.countBelow(at + 1);
  if (seen === 0) return null;
  const ended = ENDED.includes(stateOf(run, at) ?? '');
  // Content may be read long after the run has ended: that is recorded in the run, and does not extend it.
  const moved = run.changed.countBelow(at + 1);
  const last = rows.time(ended ? run.changed.at(moved - 1) : run.rows.at(seen - 1));
  return { run, depth, from: rows.time(run.rows.at(0)), to: ended ? last : Math.max(last, now), ended };
}

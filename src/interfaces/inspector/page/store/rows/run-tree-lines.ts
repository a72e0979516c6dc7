// The run tree as lines: newest root first, expanded nodes below it. Runs that start after the cursor are omitted.

import { lowerBound } from './number-list.js';
import { firstEntryOf, type Run, type Runs } from './runs.js';

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

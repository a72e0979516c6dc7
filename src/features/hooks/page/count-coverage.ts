// The coverage of a session of a coding agent, up to a position.

import { CoverageCounter, type CallCoverage } from '../comparisons/call-coverage.js';
import type { Rows } from '../../../interfaces/inspector/page/store/rows/rows.js';
import type { Run, Runs } from '../../../interfaces/inspector/page/store/rows/runs.js';

/** @returns null for a tree without calls of a coding agent before the position */
export function countCoverage(rows: Rows, runs: Runs, root: Run, at: number): CallCoverage | null {
  const counter = new CoverageCounter();
  const visit = (run: Run): void => {
    const count = run.rows.countBelow(at + 1);
    for (let place = 0; place < count; place += 1) {
      const row = rows.row(run.rows.at(place));
      if (row !== null) counter.add(row);
    }
    for (const key of run.children) {
      const child = runs.get(key);
      if (child !== null) visit(child);
    }
  };
  visit(root);
  return counter.counts();
}

// Random trees, checked one by one. A tree that violates a rule is shrunk to the smallest plot that still violates one,
// and the report contains the seed and the path that reproduce it.

import fc from 'fast-check';
import { allFaultsOf } from './checks.js';
import { play, type Played } from './play.js';
import { Tally } from './tally.js';
import { PLOT } from './turns.js';

/** XState's own actors are slow: they run only for one tree in this number. */
const ORACLE_EVERY = 20;
const FAULTS_SHOWN = 8;

export interface Campaign {
  readonly seed: number;
  readonly trees: number;
  /** The position in the shrinking of an earlier campaign at which to start. */
  readonly path?: string;
  readonly onTree?: (done: number) => void;
  /** A planted bug, for tests of the checks. */
  readonly check?: (played: Played) => readonly string[];
}

export interface Outcome {
  readonly tally: Tally;
  /** How a rule was violated, with seed, path and the smallest plot; null if none was. */
  readonly violation: string | null;
}

export function campaign({ seed, trees, path, onTree, check }: Campaign): Outcome {
  const tally = new Tally();
  let done = 0;
  const holds = fc.property(PLOT, (plot) => {
    const played = play(plot);
    done += 1;
    tally.count(played);
    onTree?.(done);
    const faults = check === undefined ? allFaultsOf(played, done % ORACLE_EVERY === 0) : check(played);
    if (faults.length > 0) throw new Error(faults.slice(0, FAULTS_SHOWN).join('\n'));
  });
  // Without fast-check's bias to small values: short lives show little, and shrinking makes them short anyway.
  const parameters = { seed, numRuns: trees, includeErrorInReport: true, unbiased: true };
  const details = fc.check(holds, path === undefined ? parameters : { ...parameters, path });
  return { tally, violation: details.failed ? (fc.defaultReportMessage(details) ?? '') : null };
}

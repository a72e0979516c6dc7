// Random trees, checked one by one. A tree that breaks a rule is shrunk to the smallest plot that still breaks one, and
// the report names the seed and the path that lead to it again.

import fc from 'fast-check';
import { allFaultsOf } from './checks.js';
import { play, type Played } from './play.js';
import { Tally } from './tally.js';
import { PLOT } from './turns.js';

/** XState's own actors are slow: every so many trees they are asked as well. */
const ORACLE_EVERY = 20;
const FAULTS_SHOWN = 8;

export interface Campaign {
  readonly seed: number;
  readonly trees: number;
  /** Where in the shrinking of an earlier campaign to begin. */
  readonly path?: string;
  readonly onTree?: (done: number) => void;
  /** What shall be wrong with a tree, for tests of the checks. */
  readonly check?: (played: Played) => readonly string[];
}

export interface Outcome {
  readonly tally: Tally;
  /** How a rule was broken, with seed, path and the smallest plot; null when none was. */
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
  // Without fast-check's preference for what is small: short lives show little, and shrinking makes them short anyway.
  const parameters = { seed, numRuns: trees, includeErrorInReport: true, unbiased: true };
  const details = fc.check(holds, path === undefined ? parameters : { ...parameters, path });
  return { tally, violation: details.failed ? (fc.defaultReportMessage(details) ?? '') : null };
}

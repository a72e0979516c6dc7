// Planted faults: the campaign runs on workers that have one, until the checks find it.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCase, type CaseOptions } from './campaign.js';
import type { Fault } from './faults.js';
import { WORKER_PLANTS, type Plant } from './worker-options.js';

interface Search {
  /** The faults that reveal it. */
  readonly only: readonly Fault[];
  /** What the checks report. */
  readonly finds: RegExp;
  /** Whether it needs several workers on one tree. */
  readonly isContested?: boolean;
  /** Whether it needs slow tools. */
  readonly isSlow?: boolean;
}

const SEARCHES: Readonly<Record<Exclude<Plant, 'none'>, Search>> = {
  'no compare-and-set': {
    only: ['delay', 'cut'],
    finds: /verif|is ok, and recorded 0 times|is not in the ledger/,
    isContested: true,
  },
  'number before the locks': { only: ['delay'], finds: /numbered in the wrong order/, isContested: true },
  'effect before commit': { only: ['cut', 'kill'], finds: /happened 2 times|which is of undefined|planted/ },
  'interrupted without proof': {
    only: ['no network', 'half-open'],
    isSlow: true,
    finds: /the ledger says failed|happened 1 times/,
  },
  'guard without grace': { only: ['stop at an answer'], finds: /after its settlement/ },
  'key by rename': { only: ['delay'], finds: /cannot be read|gave up|artifact.unreadable/ },
  'double integration': { only: ['delay'], finds: /verif/ },
  'signing before commit': {
    only: ['kill at an integration', 'cut at a statement'],
    finds: /were stored|is not of this log/,
  },
  'decided again after a cut': { only: ['cut at a statement'], finds: /still|recorded|outcomes/ },
};

/** Faults of one case, and the cases until the search is given up. */
const FAULTS = 25;
const SEEDS_MAX = 6;

type SearchedPlant = keyof typeof SEARCHES;

/** @param name the fault; empty: all */
export const plantsNamed = (name: string): readonly SearchedPlant[] =>
  WORKER_PLANTS.flatMap((plant) => (plant !== 'none' && (name === '' || name === plant) ? [plant] : []));

/** Searches for a planted fault. @returns what was found; null if it was not found */
export async function findPlanted(options: Omit<CaseOptions, 'faults'>, plant: SearchedPlant): Promise<string | null> {
  const { only, finds, isContested = false, isSlow = false } = SEARCHES[plant];
  for (let index = 0; index < SEEDS_MAX; index += 1) {
    const folder = join(options.folder, 'planted');
    const seed = options.seed + index;
    const { tally } = await runCase({ ...options, folder, seed, faults: FAULTS, only, plant, isContested, isSlow });
    for (const line of tally.violations.slice(0, 3)) process.stderr.write(`  ${plant}, ${seed}: ${line}\n`);
    rmSync(folder, { recursive: true, force: true });
    const found = tally.violations.find((line) => finds.test(line));
    if (found !== undefined) return `found in seed ${seed}: ${found}`;
  }
  return null;
}

// Planted faults that the campaign must find, because a check that cannot fail proves nothing.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { inHome, type CampaignOptions } from './campaign.js';
import { checkKilled, checkReopened } from './check-home.js';
import { Victim } from './children.js';
import type { Planted } from './executor.js';
import { Tally } from './tally.js';
import { torn } from './torn.js';

interface Plant {
  readonly planted: Exclude<Planted, 'none'>;
  /** The lives of the process; the planted fault is in the last one. */
  readonly lives: readonly (readonly string[])[];
  /** Kill the last life after this many lines of output. */
  readonly lines?: number;
  /** The finding that must be reported. */
  readonly finds: RegExp;
}

const PLANTS: readonly Plant[] = [
  { planted: 'ack-before-commit', lives: [[]], lines: 9, finds: /in the ledger 0 times|BELOW_HEAD|ledger says/ },
  { planted: 'effect-twice', lives: [[]], finds: /was performed 2 times/ },
  {
    planted: 'settle-performs',
    lives: [
      ['--kill-at', 'effect.performed:1'],
      ['--open-only', '--life', '2'],
    ],
    finds: /was performed 2 times/,
  },
  {
    planted: 'settle-guesses',
    lives: [
      ['--kill-at', 'effect.performed:4'],
      ['--open-only', '--life', '2'],
    ],
    finds: /settled as done, not unknown/,
  },
];

/** The faults of the process, and the finding when no head file covers anything. */
export async function plantedFaults(options: CampaignOptions): Promise<Tally> {
  const tally = await plantedVictims(options);
  const folder = join(options.folder, 'planted');
  const unguarded = await torn({ ...options, folder, samples: 0, kinds: ['killed'], unguarded: true });
  tally.cases += 1;
  const silent = unguarded.violations.filter((each) => each.includes('silently lost'));
  tally.that(silent.length > 0, () => 'without a head file, no loss was seen: so its loss would not be seen with one');
  tally.note('no head file', silent.length);
  rmSync(folder, { recursive: true, force: true });
  return tally;
}

export async function plantedVictims(options: CampaignOptions): Promise<Tally> {
  const tally = new Tally('planted faults');
  const folder = join(options.folder, 'planted');
  for (const plant of PLANTS) {
    const found = await violationsOf({ ...options, folder }, plant);
    tally.cases += 1;
    const isFound = found.some((each) => plant.finds.test(each));
    tally.that(isFound, () => `${plant.planted} was not found; instead: ${found.join('; ') || 'nothing'}`);
    tally.note(plant.planted, found.length);
  }
  rmSync(folder, { recursive: true, force: true });
  return tally;
}

async function violationsOf(options: CampaignOptions, plant: Plant): Promise<readonly string[]> {
  const { planted, lives, lines } = plant;
  const tally = new Tally(planted);
  await inHome(tally, options, planted, async (places, label) => {
    const said = [];
    for (const [index, life] of lives.entries()) {
      const last = index === lives.length - 1;
      const argv = ['--folder', places.folder, '--seed', String(options.seed), ...life];
      const victim = new Victim(options.program, [...argv, ...(last ? ['--planted', planted] : [])]);
      if (last && lines !== undefined) {
        await victim.lines(lines);
        victim.kill();
      }
      said.push(...(await victim.ended).said);
    }
    await checkKilled(tally, places, said, label);
    await checkReopened(tally, places, said, label);
  });
  return tally.violations;
}

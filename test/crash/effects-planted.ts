// Planted faults that the counting must find: an effect before its commit, a repeated effect, a guessed outcome, rows
// outside of the transaction of their outcome.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { die, inServiceHome } from './effects-campaign.js';
import type { CampaignOptions } from './campaign.js';
import { checkKilledEffects, checkReopenedEffects } from './effects-check.js';
import type { EffectsPlanted } from './effects-service.js';
import { Tally } from './tally.js';

interface Plant {
  readonly planted: Exclude<EffectsPlanted, 'none'>;
  /** When the process is killed: the same in every life of it. */
  readonly moment: string;
  /** The finding that must be reported. */
  readonly finds: RegExp;
}

const PLANTS: readonly Plant[] = [
  { planted: 'before-commit', moment: 'commit.before:2', finds: /w1-billing.charge has happened without an intent/ },
  { planted: 'called-again', moment: 'effect.performed:1', finds: /w1-billing.charge has happened 2 times/ },
  { planted: 'guessed', moment: 'effect.performed:3', finds: /w1-bank.transfer has happened 1 times .* is failed/ },
  { planted: 'own-outside', moment: 'effect.performed:4', finds: /row w1-facts: 1, run none/ },
  { planted: 'not-noted', moment: 'effect.performed:6', finds: /w1-orders has happened 1 times .* is failed/ },
];

export async function plantedEffects(options: CampaignOptions): Promise<Tally> {
  const tally = new Tally('planted effects');
  for (const plant of PLANTS) {
    const found = await violationsOf(options, plant);
    tally.cases += 1;
    const isFound = found.some((each) => plant.finds.test(each));
    tally.that(isFound, () => `${plant.planted} was not found; instead: ${found.join('; ') || 'nothing'}`);
    tally.note(plant.planted, found.length);
  }
  return tally;
}

async function violationsOf(options: CampaignOptions, { planted, moment }: Plant): Promise<readonly string[]> {
  const tally = new Tally(planted);
  const folder = join(options.folder, 'planted');
  await inServiceHome(tally, { ...options, folder }, `${planted} ${moment}`, async (places, label) => {
    await die(tally, options, places, label, ['--planted', planted, '--kill-at', moment]);
    await checkKilledEffects(tally, places, label);
    await checkReopenedEffects(tally, places, label, { planted });
  });
  rmSync(folder, { recursive: true, force: true });
  return tally.violations;
}

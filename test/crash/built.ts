// The victims for the tests. Killed processes are plain Node programs, and an enumeration starts one for each kill
// point. `npm run campaign -- crash` uses programs that are compiled file by file, as the package is.

import { expect } from '@jest/globals';
import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import type { CampaignOptions } from './campaign.js';
import type { Tally } from './tally.js';

const PLACE = 'build/test/crash';

/** Builds the victims from the current sources into `folder`. @returns the path of the first one */
export async function builtVictim(folder: string): Promise<string> {
  const names = ['victim', 'effects-victim', 'full-disk'];
  await bundled(folder, Object.fromEntries(names.map((name) => [`${PLACE}/${name}`, `test/crash/${name}.ts`])));
  return join(folder, PLACE, 'victim.js');
}

/** The options of a suite that kills the victims, which are built first. */
export async function suiteOptions(name: string, seed: number): Promise<CampaignOptions> {
  const folder = diskFolder(name);
  return { folder: join(folder, 'homes'), program: await builtVictim(folder), seed };
}

/** No violations, and checks were made. */
export function expectNothing({ violations, cases, checks }: Tally): void {
  expect(violations).toEqual([]);
  expect(cases).toBeGreaterThan(0);
  expect(checks).toBeGreaterThanOrEqual(cases);
}

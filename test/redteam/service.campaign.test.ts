// One hostile token against the service, in small: for a few seconds, on a machine that may have much else to do.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { attackService, type Aims, type ServiceCampaign } from './service/campaign.js';

// As deep as the compiled sources: what looks for the package's own files counts folders from where it is.
const PLACE = 'build/test/redteam';
/**
 * Other work on the machine makes everything slower, and nothing larger: so only memory and failed steps are held here.
 * `npm run redteam -- --only service` holds the times as well.
 */
const AIMS: Aims = { slower: Infinity, throughput: 0, livenessMs: Infinity, memoryMb: 370 };

let folder: string;
beforeAll(async () => {
  folder = diskFolder('redteam-programs');
  const names = ['server', 'victim', 'probe', 'attacker'];
  await bundled(
    folder,
    Object.fromEntries(names.map((name) => [`${PLACE}/${name}`, `test/redteam/service/${name}.ts`])),
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const attacked = (options: Partial<ServiceCampaign>) =>
  attackService({
    seed: 1,
    seconds: 6,
    entries: 20_000,
    say: () => undefined,
    programs: join(folder, PLACE),
    // No figure of the quiet service is compared.
    quietMs: 300,
    aims: AIMS,
    ...options,
  });

test('one hostile token fails no step of another, and does not fill the memory', async () => {
  expect((await attacked({})).failures).toEqual([]);
});

test('a planted fault is found: a controller without bounds for a token', async () => {
  let failures: readonly string[] = [];
  // How fast memory fills depends on the machine: a longer attack follows on one that was too short.
  for (let seconds = 4; seconds < 60 && failures.length === 0; seconds *= 2) {
    ({ failures } = await attacked({ fault: 'no-token-bound', attacks: ['unread-entries'], seconds }));
  }
  expect(failures).not.toEqual([]);
}, 300_000);

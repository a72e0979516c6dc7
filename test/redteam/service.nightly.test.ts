// A small campaign of one hostile token against the service: a few seconds, on a machine that may be busy.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import type { Fault } from './service/protocol.js';
import { AIMS as SERVICE_AIMS, attackService, type Aims, type ServiceCampaign } from './service/campaign.js';

// At the depth of the compiled sources: code that looks for the package's files counts folders from its own place.
const PLACE = 'build/test/redteam';
/**
 * Other work on the machine makes everything slower, but nothing larger. So this test checks memory, failed steps and
 * counts. `npm run campaign -- redteam --only service` checks the times as well.
 */
const AIMS: Aims = {
  ...SERVICE_AIMS,
  ...{ slower: Infinity, throughput: 0, livenessMs: Infinity, memoryMb: 370 },
};

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

test.each<readonly [string, Fault, RegExp]>([
  ['a controller without bounds for a token', 'no-token-bound', /steps of one token during a step of another/],
  ['answers that are made whole for clients that do not read', 'no-backpressure', /bytes of an unread response/],
  ['steps of one token that leave no room for others', 'no-bulk-lane', /steps of one token during a step of another/],
])('a planted fault is found: %s', async (_what, fault, expected) => {
  const { failures } = await attacked({ fault, attacks: ['unread-entries'], seconds: 1 });
  expect(failures).toEqual(expect.arrayContaining([expect.stringMatching(expected)]));
});

// A short case: `npm run campaign -- cluster-chaos` runs longer ones, with full disks and planted faults.

import { afterAll, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';
import { startPostgres } from '../fixtures/postgres.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { runCase } from './campaign.js';

const MS_MAX = 300_000;
const WORKER = 'build/test/cluster/worker';
const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

test(
  'D4, D8: workers that are killed, stopped and cut off lose nothing, and do nothing twice',
  async () => {
    if (server === null) return;
    const folder = diskFolder('cluster');
    await bundled(folder, { [WORKER]: 'test/cluster/worker.ts' });
    const program = join(folder, `${WORKER}.js`);
    const { tally, faults } = await runCase({ server, program, smallDisk: null, folder, seed: 1, faults: 20 });
    expect(tally.violations).toEqual([]);
    expect([...faults.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(20);
    expect(tally.notes.get('effects')).toBeGreaterThan(5);
  },
  MS_MAX,
);

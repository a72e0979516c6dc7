// A short run: `npm run campaign -- cluster-chaos --overtaking 10000` is a long one.

import { afterAll, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';
import { startPostgres } from '../fixtures/postgres.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { runOvertaking } from './overtaking.js';

const MS_MAX = 300_000;
const WORKER = 'build/test/cluster/worker';
const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

test(
  'D4: a repeat that overtakes its first request at another worker gets the same answer, and no run ends',
  async () => {
    if (server === null) return;
    const folder = diskFolder('overtaking');
    await bundled(folder, { [WORKER]: 'test/cluster/worker.ts' });
    const program = join(folder, `${WORKER}.js`);
    const report = await runOvertaking({ server, program, folder, seed: 1, repeats: 200 });
    expect(report.tally.violations).toEqual([]);
    expect(report.falseEnds).toBe(0);
    expect(report.overtaking).toBeGreaterThan(50);
  },
  MS_MAX,
);

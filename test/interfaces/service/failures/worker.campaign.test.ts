// `turnpike worker` has no HTTP service: its admin listener alone tells whether it works.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startPostgres, type Postgres } from '../../../fixtures/postgres.js';
import { diskFolder } from '../../../fixtures/temp-folder.js';
import { buildMain, ServedProcess, WAIT_MS } from './served-process.js';

const MS_MAX = 4 * WAIT_MS;
const folder = diskFolder('worker');
const server = await startPostgres({ isDurable: true });
const onPostgres = server === null ? test.skip : test;
let main: string;
beforeAll(async () => {
  main = await buildMain(join(folder, 'built'));
}, MS_MAX);
afterAll(() => server?.stop());

onPostgres(
  'a worker is ready while it has a session with the database, and says so again after the database was away',
  async () => {
    const database = server as Postgres;
    const init = `init --store ${database.url}`;
    const command = 'worker';
    const worker = ServedProcess.start({ main, folder: mkdtempSync(join(folder, 'case-')), init, command });
    await worker.until('it prints its admin address', () => worker.adminUrl !== '');
    await worker.untilReady();
    const names = [
      'startup',
      'shutdown',
      'ledger-write',
      'ledger-read',
      'disk',
      'policy',
      'keys',
      'clock',
      'database',
      'later-trees',
    ];
    const lines = names.map((name) => `[+]${name} ok`);
    expect((await worker.admin('/readyz?verbose')).split('\n')).toEqual([...lines, 'readyz check passed', '']);
    const metrics = await worker.admin('/metrics');
    for (const metric of ['turnpike_ready 1', 'turnpike_ledger_failed 0', 'turnpike_cluster_performers 1']) {
      expect(metrics.split('\n')).toContain(metric);
    }
    await database.restart(() =>
      worker.until('it is not ready', async () =>
        (await worker.admin('/readyz')).includes('[-]database failed: the database cannot be reached\n'),
      ),
    );
    await worker.untilReady();
    expect(await worker.stop()).toBe(0);
  },
  MS_MAX,
);

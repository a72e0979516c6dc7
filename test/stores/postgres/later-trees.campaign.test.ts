// A worker and run trees that a later version started, on one ledger: it leaves them to workers of that version, and
// says so. The later version is this program with one more flag, in processes of its own.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openPostgresCluster } from '../../../src/stores/postgres/cluster/postgres-cluster.js';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { POLL_MS } from '../../../src/engine/writers/shared-writer.js';
import { openTurnpike, winstonLog, type Turnpike } from '../../../src/index.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';
import { ROOT } from '../../root.js';
import { ledgerPlace, type LedgerPlace } from './postgres-harness.js';
import { buildVersion, VersionWorker } from './version-harness.js';

const MS_MAX = 120_000;
const TRIES_MAX = 300;
const PARTS = ['src', 'machines', 'policies', 'package.json'];
const EXPORTS = ['openTurnpike', 'createPostgresStore', 'openPostgresStore', 'openPostgresCluster', 'FLAGS'];
const WRITE = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }));

const server = await startPostgres({ isDurable: true });
const folder = tempFolder('later-trees');
let program = '';

beforeAll(async () => {
  if (server === null) return;
  const sources = join(folder, 'later');
  mkdirSync(sources, { recursive: true });
  for (const part of PARTS) cpSync(join(ROOT, part), join(sources, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(sources, 'node_modules'));
  program = await buildVersion(sources, EXPORTS);
}, MS_MAX);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const openWorker = async (place: LedgerPlace): Promise<Turnpike> =>
  openTurnpike({
    store: await openPostgresStore({ ...place, caseKeysDir: join(place.folder, 'case-keys') }),
    sandbox: join(place.folder, 'sandbox'),
    restarts: 'automatic',
    control: false,
    log: winstonLog('silent'),
  });

/** Waits until the statement returns this row. */
async function untilRow(place: LedgerPlace, sql: string, row: object): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const [found] = await place.exec(sql);
    if (JSON.stringify(found) === JSON.stringify(row)) return;
    await delay(POLL_MS / 10);
  }
  expect(await place.exec(sql)).toEqual([row]);
}

const campaign = server === null ? describe.skip : describe;

campaign('run trees of a later version', () => {
  test(
    'a worker of an earlier version gives their leases back, so that a later one settles them',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      const lost = new VersionWorker(program, place, { later: 'http://127.0.0.1:1' });
      expect(await lost.next()).toBe('joined');
      const run_id = (await lost.ask({ attached: { case: 'case-0001' } })) as string;
      const tree_id = run_id.split('.')[0] ?? '';
      const earlier = await openWorker(place);
      await lost.kill();
      const cluster = openPostgresCluster({ url: place.url, schema: place.schema });
      const [, own] = (await cluster.status()).workers;
      const holders = 'SELECT count(*)::int AS leases FROM leases JOIN workers USING (worker_id)';
      // It has met the tree, and no longer has what it claimed.
      for (let tries = 0; earlier.vitals.condition().laterTrees === 0 && tries < TRIES_MAX; tries += 1)
        await delay(POLL_MS / 10);
      expect(earlier.vitals.condition()).toMatchObject({ state: 'running', laterTrees: 1 });
      await untilRow(place, `${holders} WHERE over_at IS NULL`, { leases: 0 });
      expect(await place.exec(holders)).toEqual([{ leases: 1 }]);
      await delay(2.5 * POLL_MS);
      expect(await place.exec(`${holders} WHERE worker_id = ${own?.worker_id ?? 0}`)).toEqual([{ leases: 0 }]);
      const later = new VersionWorker(program, place, { joins: true, later: 'http://127.0.0.1:2' });
      expect(await later.next()).toBe('joined');
      await untilRow(place, `SELECT ended FROM trees WHERE tree_id = '${tree_id}'`, { ended: true });
      await later.end();
      await earlier.close();
      await cluster.close();
      await place.remove();
    },
    MS_MAX,
  );

  test(
    'it refuses their inputs, leaves their timers alone, and is not ready while a later worker can take them',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      const address = 'http://127.0.0.1:7391';
      const later = new VersionWorker(program, place, { later: address });
      expect(await later.next()).toBe('joined');
      const run_id = (await later.ask({ start: { case: 'case-0001' } })) as string;
      const tree_id = run_id.split('.')[0] ?? '';
      const earlier = await openWorker(place);
      const cluster = openPostgresCluster({ url: place.url, schema: place.schema });
      const { addDatabaseCheck } = await import('../../../src/host/readiness/turnpike-readiness.js');
      addDatabaseCheck(earlier, cluster, '1.0.0');
      const reasons = async () =>
        (await earlier.readiness.report()).checks.filter(
          ({ name, reason }) => name === 'later-trees' && reason !== null,
        );
      expect(await reasons()).toEqual([]);
      await expect(earlier.submit(run_id, WRITE, { inputId: 'one' })).rejects.toMatchObject({
        code: 'LEDGER_OF_LATER_VERSION',
      });
      expect(await later.ask({ run_id, proposal: WRITE, inputId: 'one' })).toMatchObject({ outcome: 'SUCCESS' });
      expect(await reasons()).toMatchObject([{ reason: expect.stringContaining('of a later version') }]);
      // A tree of its own goes on meanwhile.
      const own = await earlier.remoteAgents.start({ case: 'case-0002' });
      expect(await earlier.submit(own.run_id, WRITE, { inputId: 'own' })).toMatchObject({ outcome: 'SUCCESS' });
      await later.kill();
      const due = new Date(Date.now() - 1_000).toISOString();
      await place.exec(`UPDATE trees SET wake_at = '${due}' WHERE tree_id = '${tree_id}'`);
      await delay(2.5 * POLL_MS);
      expect(await place.exec(`SELECT wake_at FROM trees WHERE tree_id = '${tree_id}'`)).toEqual([{ wake_at: due }]);
      expect(await reasons()).toEqual([]);
      await earlier.close();
      await cluster.close();
      await place.remove();
    },
    MS_MAX,
  );
});

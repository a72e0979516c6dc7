import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { hasPostgresLedger, openPostgresCluster } from '../../../../src/stores/postgres/cluster/postgres-cluster.js';
import { createPostgresStore } from '../../../../src/stores/postgres/index.js';
import { FORMAT_VERSION } from '../../../../src/stores/postgres/postgres-tables.js';
import { startPostgres } from '../../../fixtures/postgres.js';
import { ledgerPlace, type LedgerPlace } from '../postgres-harness.js';

const server = await startPostgres({ isDurable: true });
const campaign = server === null ? describe.skip : describe;
let place: LedgerPlace;

afterAll(() => server?.stop());
beforeEach(() => {
  if (server !== null) place = ledgerPlace(server.url);
});

const REPORT = {
  version: '1.2.3',
  address: 'http://a',
  volume_id: 'vol_1',
  overlay_epoch: 3,
  refuses: 'LEDGER_BELOW_HEAD',
  later_trees: 0,
};

campaign('the list of workers', () => {
  test('knows whether a schema has a ledger', async () => {
    expect(await hasPostgresLedger(place)).toBe(false);
    await (await createPostgresStore(place)).close();
    expect(await hasPostgresLedger(place)).toBe(true);
    await place.remove();
  });

  test('records one installation, and refuses to write on a read-only connection', async () => {
    await (await createPostgresStore(place)).close();
    const [cluster, reader] = [openPostgresCluster(place), openPostgresCluster({ ...place, readOnly: true })];
    expect(await cluster.installation()).toBeNull();
    const installation = { ledger_id: 'led_1', vkey: 'a+b', volume_id: 'vol_1' };
    await expect(reader.install(installation)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(await cluster.install(installation)).toEqual(installation);
    expect(await cluster.install({ ...installation, ledger_id: 'led_2' })).toEqual(installation);
    await Promise.all([cluster.close(), reader.close()]);
    await place.remove();
  });

  test('lists what a worker reports until it is over without leases, with what waits', async () => {
    const store = await createPostgresStore(place);
    const cluster = openPostgresCluster(place);
    await cluster.report(REPORT);
    expect((await cluster.status()).workers).toEqual([]);
    expect(await cluster.isActive()).toBe(false);
    const worker_id = await store.join();
    expect(await cluster.isActive()).toBe(true);
    await cluster.report(REPORT);
    const reported = { worker_id, pid: process.pid, over_at: null, connected: true, effects: 0, callers: 0, ...REPORT };
    expect(await cluster.status()).toMatchObject({ format: FORMAT_VERSION, entries: 0, workers: [reported] });
    await place.exec(`INSERT INTO leases (kind, run_id, tree_id, worker_id) VALUES ('effect', 'r', 't', ${worker_id});
      INSERT INTO pending (commit_no, tree_id, seq, since) VALUES (1, 't', 0, now() - interval '1 hour');
      INSERT INTO trees (tree_id, opened, wake_at) VALUES ('t', 1, '2026-01-01T00:00:00.000Z')`);
    const waiting = await cluster.status();
    expect(waiting).toMatchObject({
      workers: [{ worker_id, effects: 1 }],
      pending: { commits: 1 },
      timers: { due: 1 },
      standby_lag_ms: null,
    });
    expect(waiting.pending.oldest_ms).toBeGreaterThanOrEqual(3_600_000);
    expect(waiting.timers.oldest_ms).toBeGreaterThan(0);
    await store.close();
    expect(await cluster.isActive()).toBe(false);
    expect((await cluster.status()).workers).toMatchObject([{ connected: false, over_at: null }]);
    await cluster.endLost();
    expect((await cluster.status()).workers).toMatchObject([{ worker_id, over_at: expect.any(String) }]);
    await place.exec('DELETE FROM leases');
    expect((await cluster.status()).workers).toEqual([]);
    await cluster.close();
    await place.remove();
  });
});

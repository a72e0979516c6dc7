// The migrations of a ledger in PostgreSQL, with a planted second format, and tables whose format this version refuses.

import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openPostgresCluster } from '../../../src/stores/postgres/cluster/postgres-cluster.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { MIGRATIONS, type PostgresMigration } from '../../../src/stores/postgres/postgres-tables.js';
import { openTurnpike, winstonLog, type Turnpike } from '../../../src/index.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { join } from 'node:path';
import { all, audited, opening, scribeOf, treeId } from '../../fixtures/entries.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { proposal } from '../../fixtures/tree.js';
import { ledgerPlace, type LedgerPlace } from './postgres-harness.js';

const MS_MAX = 120_000;
const A = treeId(1);
const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

/** The second format: a table with one row for each block. */
const SECOND: PostgresMigration = {
  from: 1,
  to: 2,
  apply: async (send) => {
    await send({ text: 'CREATE TABLE planted AS SELECT tree_id FROM blocks' });
  },
};
const PLANTED = [...MIGRATIONS, SECOND];
/** Fails after it has changed the tables. */
const FAILING: readonly PostgresMigration[] = [
  ...MIGRATIONS,
  {
    ...SECOND,
    apply: async (send) => {
      await SECOND.apply(send);
      await send({ text: 'CREATE TABLE planted (x integer)' });
    },
  },
];

/** The table meta as versions before formats began again at 1 made it. */
const AS_OLD =
  'ALTER TABLE meta RENAME COLUMN ledger_format TO format; ALTER TABLE meta DROP rotations, DROP is_rotating';

const entriesOf = async (store: LedgerStore) => (await all(store.log())).map(({ text }) => text);
const tablesOf = (place: LedgerPlace) => place.exec(`SELECT to_regclass('planted') IS NOT NULL AS planted`);
const formatOf = (place: LedgerPlace) => place.exec('SELECT ledger_format FROM meta');

(server === null ? describe.skip : describe)('the tables of a ledger', () => {
  let place: LedgerPlace;
  beforeEach(async () => {
    place = ledgerPlace(server?.url ?? '');
    const store = await createPostgresStore(place);
    const scribe = await scribeOf(store);
    await scribe.write(store, [opening(A), audited(A)], { ended: [A] });
    await store.close();
  }, MS_MAX);
  afterEach(() => place.remove());

  test(
    'of format 1 are migrated by an opening for writing, and keep their entries',
    async () => {
      expect(await formatOf(place)).toEqual([{ ledger_format: 1 }]);
      const refused = { code: 'LEDGER_UNSUPPORTED', message: expect.stringContaining('open it for writing once') };
      await expect(openPostgresStore({ ...place, migrations: PLANTED, readOnly: true })).rejects.toMatchObject(refused);
      const before = await openPostgresStore({ ...place, readOnly: true });
      const entries = await entriesOf(before);
      await before.close();
      const store = await openPostgresStore({ ...place, migrations: PLANTED });
      expect(await formatOf(place)).toEqual([{ ledger_format: 2 }]);
      expect(await place.exec('SELECT tree_id FROM planted')).toEqual([{ tree_id: A }]);
      expect(await entriesOf(store)).toEqual(entries);
      const scribe = await scribeOf(store);
      await scribe.write(store, [opening(treeId(2))]);
      expect(await entriesOf(store)).toHaveLength(entries.length + 1);
      await store.close();
    },
    MS_MAX,
  );

  test(
    'stay as they are if the migration fails in the middle',
    async () => {
      await expect(openPostgresStore({ ...place, migrations: FAILING })).rejects.toThrow();
      expect([await formatOf(place), await tablesOf(place)]).toEqual([[{ ledger_format: 1 }], [{ planted: false }]]);
      const store = await openPostgresStore(place);
      expect(await entriesOf(store)).toHaveLength(2);
      await store.close();
    },
    MS_MAX,
  );

  test(
    'of format 2 are refused by code that knows format 1',
    async () => {
      await (await openPostgresStore({ ...place, migrations: PLANTED })).close();
      for (const readOnly of [true, false]) {
        await expect(openPostgresStore({ ...place, readOnly })).rejects.toMatchObject({
          code: 'LEDGER_UNSUPPORTED',
          message: expect.stringMatching(/has format 2.*knows 1/),
        });
      }
    },
    MS_MAX,
  );

  test(
    'from before formats began again at 1 are refused, and the message says what to do',
    async () => {
      await place.exec(AS_OLD);
      const refused = {
        code: 'LEDGER_UNSUPPORTED',
        message: expect.stringContaining('`turnpike ledger export` of that version'),
      };
      for (const readOnly of [true, false])
        await expect(openPostgresStore({ ...place, readOnly })).rejects.toMatchObject(refused);
      const cluster = openPostgresCluster(place);
      await expect(cluster.status()).rejects.toMatchObject(refused);
      await cluster.close();
    },
    MS_MAX,
  );

  test(
    'that a later version migrates meanwhile refuse a worker that joins again',
    async () => {
      const current: Turnpike = await openTurnpike({
        store: await openPostgresStore({ ...place, caseKeysDir: join(place.folder, 'case-keys') }),
        sandbox: join(place.folder, 'sandbox'),
        restarts: 'automatic',
        control: false,
        log: winstonLog('silent'),
      });
      const { run_id } = await current.remoteAgents.start({ case: 'case-local' });
      const write = (path: string): string =>
        JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${path}`, content: 'x' }));
      await place.exec('UPDATE meta SET ledger_format = 2');
      expect(await current.submit(run_id, write('a.md'))).toMatchObject({ outcome: 'SUCCESS' });
      await place.exec('SELECT pg_terminate_backend(backend_pid, 5000) FROM workers WHERE over_at IS NULL');
      const after = await current.submit(run_id, write('b.md')).catch((error: unknown) => error);
      expect(JSON.stringify(after)).toContain('AUDIT_FAILURE');
      await expect(current.restart()).rejects.toMatchObject({
        code: 'LEDGER_UNSUPPORTED',
        message: expect.stringContaining('use the version that wrote it'),
      });
      await current.close().catch(() => undefined);
    },
    MS_MAX,
  );
});

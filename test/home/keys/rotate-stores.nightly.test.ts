// A ledger whose key was rotated moves between SQLite and PostgreSQL, into backups and out of them, and is rotated in
// both. Every bundle verifies with the first key.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { overlayFile, overlayFiles } from '../../../src/home/policy/overlay-file.js';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { noteVerifier, type NoteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { backupHome } from '../../../src/features/backup/backup-home.js';
import { restoreHome } from '../../../src/features/backup/restore-home.js';
import { copyHome } from '../../../src/features/backup/copy/copy-home.js';
import { resolveLocation, type LedgerLocation } from '../../../src/home/ledger-location.js';
import { readHomeHistory, readLedgerVerifier } from '../../../src/home/ledger-key.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { execute } from '../../stores/postgres/postgres-harness.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { createRichLedger, frozenClock, serviceOptions } from '../../features/backup/copy/rich-ledger.js';
import { bundleProblem } from './bundle-problem.js';

const BY = { actor: 'otto operator', role: 'operator' } as const;
const MS_MAX = 240_000;
const server = await startPostgres({ isDurable: true });
const url = server?.url ?? '';
afterAll(() => server?.stop());

let folder: string;
let ids = 20_000;
let schemas = 0;
let firstKey: NoteVerifier;

const inFolder = (name: string): string => join(folder, name);
const onPostgres = (name: string): LedgerLocation =>
  resolveLocation(url, { home: inFolder(name), schema: `rotated_${(schemas += 1)}` });
const keyOf = ({ paths }: LedgerLocation): string => readLedgerVerifier(paths.ledgerKey)?.vkey ?? '';
const rotationsOf = ({ paths }: LedgerLocation): number => readHomeHistory(paths.ledgerKey)?.rotations.length ?? 0;

/** Opens a ledger as a service does, alone if it is in PostgreSQL. */
async function open({ paths, postgres }: LedgerLocation, alone: boolean): Promise<Turnpike> {
  const common = { ...serviceOptions(folder, (ids += 1_000)), clock: frozenClock(Date.parse('2026-03-02')) };
  const options = { ...common, exports: join(paths.home, 'exports') };
  if (postgres === null) return openTurnpike({ ...options, home: paths.home });
  const store = await openPostgresStore({ ...postgres, caseKeysDir: paths.caseKeys, alone });
  // Workers of one ledger share the emergency overlay in the key folder.
  const overlay = overlayFile(overlayFiles(paths.overlay, paths.keys));
  return openTurnpike({ ...options, store, overlay, keys: paths.keys, state: paths.state, sandbox: paths.sandbox });
}

/** Rotates the key, works with the new one, and verifies everything. */
async function rotate(location: LedgerLocation): Promise<void> {
  const before = rotationsOf(location);
  const turnpike = await open(location, true);
  expect(await turnpike.rotateLedgerKey(BY)).toMatchObject({ number: before + 1 });
  await turnpike.close();
  await work(location);
}

/** As a worker among others: what a rotation has left would stop it. */
async function work(location: LedgerLocation): Promise<void> {
  const turnpike = await open(location, false);
  await (await turnpike.startAgent({ case: 'case-a' })).end();
  expect(await turnpike.ledger.verify()).toMatchObject({ verdict: 'by_hash_alone', problems: [] });
  expect(await turnpike.replay()).toMatchObject({ difference: null });
  await turnpike.close();
  expect(await bundleProblem(location, firstKey)).toBeNull();
}

const isRotating = async ({ postgres }: LedgerLocation): Promise<unknown> =>
  ((await execute(url, `SELECT is_rotating FROM ${postgres?.schema ?? ''}.meta`))[0] as { is_rotating: unknown })
    .is_rotating;

(server === null ? describe.skip : describe)('C97: a ledger whose key was rotated', () => {
  let home: LedgerLocation;
  let postgres: LedgerLocation;
  beforeAll(async () => {
    folder = tempFolder('rotate-stores');
    home = resolveLocation(await createRichLedger(folder));
    await (await open(home, false)).close();
    firstKey = noteVerifier(keyOf(home))!;
    await rotate(home);
  }, MS_MAX);

  test(
    'is copied to PostgreSQL, and rotated there',
    async () => {
      postgres = onPostgres('pg');
      expect(await copyHome({ from: home, to: postgres })).toMatchObject({ verdict: { problems: [] } });
      expect(await isRotating(postgres)).toBe(false);
      await work(postgres);
      await rotate(postgres);
      expect(rotationsOf(postgres)).toBe(2);
      expect(await execute(url, `SELECT vkey FROM ${postgres.postgres?.schema ?? ''}.installation`)).toEqual([
        { vkey: keyOf(postgres) },
      ]);
    },
    MS_MAX,
  );

  test(
    'is backed up from PostgreSQL while it is there, restored, copied back and rotated again',
    async () => {
      const made = { madeBy: '0.0.0', madeAt: '2026-03-01T12:00:00.000Z', contract: null } as const;
      await backupHome({ from: postgres, to: inFolder('backup'), ...made, keys: true });
      await rotate(postgres);
      for (const [name, keys] of [
        ['restored', null],
        ['restored-later', postgres.paths.keys],
      ] as const) {
        const restored = await restoreHome({
          backup: inFolder('backup'),
          home: inFolder(name),
          keys,
          erasures: keys === null ? 'none' : null,
          heads: [],
          policies: manifestPolicySource(inFolder('contract')),
          actor: 'otto operator',
          log: winstonLog('silent'),
        });
        expect(restored.verdict).toMatchObject({ problems: [] });
        const location = resolveLocation(inFolder(name));
        expect(rotationsOf(location)).toBe(keys === null ? 2 : 3);
        const back = onPostgres(`${name}-pg`);
        expect(await copyHome({ from: location, to: back })).toMatchObject({ verdict: { problems: [] } });
        await work(back);
        await rotate(back);
      }
    },
    MS_MAX,
  );

  test(
    'is copied back to SQLite, and rotated there',
    async () => {
      const back = resolveLocation(inFolder('back'));
      expect(await copyHome({ from: postgres, to: back })).toMatchObject({ verdict: { problems: [] } });
      await work(back);
      await rotate(back);
      expect(rotationsOf(back)).toBe(4);
    },
    MS_MAX,
  );
});

// Copies between an SQLite home and a real PostgreSQL: equal in everything, usable afterwards, and safe to kill.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openBagFolder } from '../../../../src/features/exports/bag/bag-folder.js';
import { openPostgresStore } from '../../../../src/stores/postgres/postgres-ledger-store.js';
import { noteVerifier } from '../../../../src/core/ledger/proof/signed-note.js';
import { copyHome, reopenHome } from '../../../../src/features/backup/copy/copy-home.js';
import { overlayFile, overlayFiles } from '../../../../src/home/policy/overlay-file.js';
import { sharedExports } from '../../../../src/home/store-home.js';
import { resolveLocation, type LedgerLocation } from '../../../../src/home/ledger-location.js';
import { verifyExportBag } from '../../../../src/features/exports/verify/verify-export-bag.js';
import { openTurnpike, type Turnpike } from '../../../../src/host/turnpike.js';
import { execute } from '../../../stores/postgres/postgres-harness.js';
import { bundled } from '../../../fixtures/bundled.js';
import { startPostgres } from '../../../fixtures/postgres.js';
import { diskFolder, tempFolder } from '../../../fixtures/temp-folder.js';
import { proposal } from '../../../fixtures/tree.js';
import { ROOT } from '../../../root.js';
import { createRichLedger, exportCase, serviceOptions } from './rich-ledger.js';
import { dumpLedger, type LedgerDump } from './same-ledger.js';

const server = await startPostgres({ isDurable: true });
const url = server?.url ?? '';
/** How many kills each direction has. */
const KILLS = 14;
/** Ids of what is done after a copy begin here. */
const LATER_ID = 10_000;

/** The agent that a remote caller may continue. */
const REMOTE_AGENT = 'run_000000000000000001008.1';

let folder: string;
let source: LedgerLocation;
let expected: LedgerDump;
let places = 0;

beforeAll(async () => {
  if (server === null) return;
  folder = tempFolder('copies');
  source = resolveLocation(await createRichLedger(folder));
  expected = await dumpLedger(source);
});
afterAll(() => server?.stop());

const place = (name: string): string => join(folder, `${name}-${(places += 1)}`);
const newHome = (): LedgerLocation => resolveLocation(place('home'));
const newPostgres = (): LedgerLocation => {
  const home = place('pg');
  return resolveLocation(url, { home, schema: `copy_${process.pid}_${places}` });
};

/** Opens a copy, as a service does. */
async function open({ paths, postgres }: LedgerLocation): Promise<Turnpike> {
  const options = { ...serviceOptions(folder, LATER_ID), exports: join(paths.home, 'exports') };
  if (postgres === null) return openTurnpike({ ...options, home: paths.home });
  const store = await openPostgresStore({ ...postgres, caseKeysDir: paths.caseKeys });
  const overlay = overlayFile(overlayFiles(paths.overlay, paths.keys));
  return openTurnpike({ ...options, overlay, store, keys: paths.keys, state: paths.state, sandbox: paths.sandbox });
}

/** Copies without a verification by replay, because a kill comes before it. */
const copy = (from: LedgerLocation, to: LedgerLocation) => copyHome({ from, to, keepSource: true });

(server === null ? describe.skip : describe)('home copy with PostgreSQL', () => {
  test('a ledger is the same in PostgreSQL, in a second database, and again in SQLite', async () => {
    const [postgres, second, home] = [newPostgres(), newPostgres(), newHome()];
    const report = await copy(source, postgres);
    expect(report).toMatchObject({ entries: expected.entries.length, trees: expected.trees.length });
    expect(await dumpLedger(postgres)).toEqual(expected);
    expect((await copy(postgres, home)).root).toBe(report.root);
    expect(await dumpLedger(home)).toEqual(expected);
    await copy(postgres, second);
    expect(await dumpLedger(second)).toEqual(expected);
    const exportsOf = [sharedExports(postgres.paths.sandbox), join(home.paths.home, 'exports')];
    for (const [index, { paths }] of [postgres, home].entries()) {
      const verifier = noteVerifier(readFileSync(paths.ledgerKey.publicKey, 'utf8').trim());
      const bag = openBagFolder(join(exportsOf[index] ?? '', 'first'));
      expect(await verifyExportBag(bag, verifier)).toMatchObject({ valid: true });
    }
  });

  test('every copy continues: unfinished work is settled, agents go on, and an export has the same bytes', async () => {
    const [postgres, home] = [newPostgres(), newHome()];
    await copy(source, postgres);
    await copy(postgres, home);
    const bags = [];
    const think = JSON.stringify(proposal('THINK', {}));
    const read = JSON.stringify(proposal('READ_FILE', { path: '/sandbox/medium.txt' }));
    for (const location of [home, postgres]) {
      const turnpike = await open(location);
      const settled = turnpike.recovery.settled + turnpike.recovery.interrupted;
      expect(settled).toBe(2);
      expect(await turnpike.submit(REMOTE_AGENT, think)).toMatchObject({ outcome: 'SUCCESS' });
      await exportCase(turnpike, 'case-a', 'second');
      // Facts about a file have its inode, which differs.
      const agent = await turnpike.startAgent({ case: 'case-a' });
      expect(await agent.submit(read)).toMatchObject({ outcome: 'SUCCESS' });
      await agent.end();
      expect(await turnpike.ledger.verify()).toMatchObject({ verdict: 'by_hash_alone', problems: [] });
      expect(await turnpike.replay()).toMatchObject({ difference: null });
      bags.push(join(location.paths.home, 'exports', 'second'));
      await turnpike.close();
    }
    const { status, stdout } = spawnSync('diff', ['-r', ...bags], { encoding: 'utf8' });
    expect([status, stdout.slice(0, 2_000)]).toEqual([0, '']);
  });

  test('a worker settles what the former writer left unfinished in the copy', async () => {
    const postgres = newPostgres();
    await copy(source, postgres);
    const sql = `SET search_path TO ${postgres.postgres?.schema ?? ''}; SELECT kind FROM leases ORDER BY kind`;
    expect(await execute(url, sql)).toEqual([{ kind: 'caller' }, { kind: 'effect' }]);
    await (await open(postgres)).close();
    expect(await execute(url, sql)).not.toContainEqual({ kind: 'effect' });
  });

  test('an unfinished copy, a full schema, another source and an open source are refused', async () => {
    const [postgres, other] = [newPostgres(), newPostgres()];
    await copy(source, postgres);
    const again = { ...newPostgres(), postgres: postgres.postgres };
    await expect(copy(source, again)).rejects.toMatchObject({ code: 'USAGE', message: /not empty/ });
    await expect(copy(source, { ...other, paths: postgres.paths })).rejects.toMatchObject({ code: 'USAGE' });
    const { schema } = postgres.postgres ?? { schema: '' };
    await execute(url, `CREATE TABLE ${schema}.unfinished_copy AS SELECT '/elsewhere'::text AS source`);
    await expect(copy(source, { ...newPostgres(), postgres: postgres.postgres })).rejects.toMatchObject({
      code: 'USAGE',
      message: /unfinished copy of \/elsewhere/,
    });
    await expect(open(postgres)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE', message: /home copy/ });
    await execute(url, `DROP TABLE ${schema}.unfinished_copy`);
    const turnpike = await open(postgres);
    await expect(copy(postgres, newHome())).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    await turnpike.close();
  });

  test('keys of another ledger are refused', async () => {
    const [postgres, home] = [newPostgres(), newHome()];
    await copy(source, postgres);
    const wrong = place('wrong');
    const stranger = await openTurnpike({ home: wrong, control: false });
    await stranger.close();
    const { schema } = postgres.postgres ?? {};
    const from = resolveLocation(url, { home: wrong, schema: schema ?? '' });
    await expect(copy(from, home)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    await expect(open(home)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
  });

  test('a missing key of a case leaves an unfinished copy, and the copy with the key succeeds', async () => {
    const postgres = newPostgres();
    await copy(source, postgres);
    const home = newHome();
    const key = join(postgres.paths.caseKeys, 'case-a.1.key');
    const kept = `${place('kept')}.key`;
    cpSync(key, kept);
    rmSync(key);
    await expect(copy(postgres, home)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    await expect(open(home)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    cpSync(kept, key);
    await copy(postgres, home);
    expect(await dumpLedger(home)).toEqual(expected);
  });

  test('a ledger that was copied is not written any more until it is opened again, by no process', async () => {
    const [postgres, home] = [newPostgres(), newHome()];
    await copy(source, postgres);
    const { schema } = postgres.postgres ?? { schema: '' };
    const early = await openPostgresStore({ url, schema, caseKeysDir: postgres.paths.caseKeys });
    const copied = { code: 'LEDGER_COPIED' };
    await copyHome({ from: postgres, to: home });
    await expect(early.join()).rejects.toMatchObject(copied);
    await expect(early.acquire()).rejects.toMatchObject(copied);
    await early.close();
    await expect(open(postgres)).rejects.toMatchObject(copied);
    await expect(copy(postgres, newHome())).rejects.toMatchObject(copied);
    expect(await dumpLedger(postgres)).toEqual(expected);
    expect(await reopenHome(postgres)).toBe(home.paths.home);
    expect(await reopenHome(postgres)).toBeNull();
    await (await open(postgres)).close();
  });

  test('a source whose lock was lost during the copy stays as it was, and the copy does not open', async () => {
    const [postgres, home] = [newPostgres(), newHome()];
    await copy(source, postgres);
    const { schema } = postgres.postgres ?? { schema: '' };
    const lock = `locktype = 'advisory' AND mode = 'ExclusiveLock' AND objid = '${schema}.meta'::regclass::oid`;
    let lost = 0;
    const onProgress = (): void => {
      if (lost > 0) return;
      lost = 1;
      spawnSync('psql', [url, '-c', `SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE ${lock}`]);
    };
    const message = expect.stringContaining('the lock of the source was lost');
    await expect(copyHome({ from: postgres, to: home, onProgress })).rejects.toMatchObject({ message });
    expect(lost).toBe(1);
    await expect(open(home)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    await (await open(postgres)).close();
  });

  test('a worker whose session was lost while its ledger was copied does not continue', async () => {
    const postgres = newPostgres();
    await copy(source, postgres);
    const { schema } = postgres.postgres ?? { schema: '' };
    const worker = await openPostgresStore({ url, schema, caseKeysDir: postgres.paths.caseKeys });
    await worker.join();
    await execute(url, `SELECT pg_terminate_backend(backend_pid, 5000) FROM ${schema}.workers WHERE over_at IS NULL`);
    await execute(url, `UPDATE ${schema}.workers SET over_at = now(), is_dead = true`);
    await copyHome({ from: postgres, to: newHome() });
    await expect(worker.join()).rejects.toMatchObject({ code: 'LEDGER_COPIED' });
    await worker.close();
  });

  describe('killed at many moments', () => {
    const programs = diskFolder('copy-victim');
    const victim = join(programs, 'build/test/copy/copy-victim.js');
    const preload = join(ROOT, 'test/features/backup/copy/kill-at.mjs');
    beforeAll(() => bundled(programs, { 'build/test/copy/copy-victim': 'test/features/backup/copy/copy-victim.ts' }));

    const nameOf = ({ paths, postgres }: LedgerLocation) =>
      postgres === null ? [paths.home] : [postgres.url, { home: paths.home, schema: postgres.schema }];
    const run = (from: LedgerLocation, to: LedgerLocation, env: Readonly<Record<string, string>>) =>
      spawnSync(process.execPath, ['--import', preload, victim, JSON.stringify([nameOf(from), nameOf(to)])], {
        env: { ...process.env, ...env },
        encoding: 'utf8',
      });

    test.each(['SQLite to PostgreSQL', 'PostgreSQL to SQLite'])(
      '%s',
      async (direction) => {
        const isToPostgres = direction === 'SQLite to PostgreSQL';
        const newTarget = isToPostgres ? newPostgres : newHome;
        const from = isToPostgres ? source : newPostgres();
        if (!isToPostgres) await copy(source, from);
        mkdirSync(programs, { recursive: true });
        const stepsFile = join(programs, 'steps');
        const whole = run(from, newTarget(), { STEPS: stepsFile });
        expect([whole.status, whole.stderr]).toEqual([0, '']);
        expect(await reopenHome(from)).not.toBeNull();
        const steps = Number(readFileSync(stepsFile, 'utf8'));
        expect(steps).toBeGreaterThan(2 * KILLS);
        for (let kill = 1; kill <= KILLS; kill += 1) {
          const to = newTarget();
          // The last kills are one operation apart: at the end the marks are removed.
          const at = kill <= KILLS / 2 ? Math.ceil((2 * steps * kill) / KILLS) - kill : steps - (KILLS - kill);
          expect(run(from, to, { KILL_AT: String(Math.max(at, 1)) }).signal).toBe('SIGKILL');
          const copiedTo = await reopenHome(from);
          const isThere = existsSync(to.paths.keys);
          const opened = await open(to).then(
            async (turnpike) => turnpike.close().then(() => 'opened'),
            (error: unknown) => (error as { code?: string }).code,
          );
          // A kill after the last mark was removed leaves a whole copy; one before the first mark leaves nothing.
          if (opened === 'opened') {
            if (isThere) expect(copiedTo).not.toBeNull();
            continue;
          }
          expect(opened).toBe('LEDGER_UNAVAILABLE');
          await copy(from, to);
          expect(await dumpLedger(to)).toEqual(expected);
        }
      },
      480_000,
    );
  });
});

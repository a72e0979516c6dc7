// A short form of `npm run campaign -- backups`, on SQLite and on PostgreSQL; and kills before each of the last disk
// operations.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isFinishedBackup } from '../../src/features/backup/backup-manifest.js';
import { turnpike } from '../interfaces/cli/fake-io.js';
import { bundled } from '../fixtures/bundled.js';
import { startPostgres } from '../fixtures/postgres.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';
import { restore, runBackups } from './campaign.js';

const KILLS = 4;
/** Operations before the end of a backup before which it is killed. */
const LAST_STEPS = 14;
const MS_MAX = 600_000;

const server = await startPostgres({ isDurable: true });
const folder = diskFolder('backups');
const programs = join(folder, 'programs');
const program = (name: string): string => join(programs, `build/test/backup/${name}.js`);

beforeAll(() => {
  chmodSync(folder, 0o711);
  mkdirSync(programs);
  const names = ['backup-service', 'backup-victim'];
  const entries = names.map((name) => [`build/test/backup/${name}`, `test/backup/${name}.ts`] as const);
  return bundled(programs, Object.fromEntries(entries));
}, MS_MAX);
afterAll(() => server?.stop());

async function initialised(home: string, options: readonly string[] = []): Promise<string> {
  const said = await turnpike(folder, ['init', '--home', home, '--contract', `${home}-contract`, ...options]);
  expect([said.code, said.stderr]).toEqual([0, '']);
  return home;
}

describe.each(['SQLite', 'PostgreSQL'])('%s, with 64 callers', (store) => {
  test(
    'every finished backup restores, verifies and replays; an unfinished one is never taken for finished',
    async () => {
      if (store === 'PostgreSQL' && server === null) return;
      const at = join(folder, store);
      mkdirSync(at);
      let drawn = 0;
      const { violations, ...tally } = await runBackups({
        folder: at,
        service: program('backup-service'),
        victim: program('backup-victim'),
        kills: KILLS,
        killsPerLedger: KILLS,
        newHome: (name) =>
          initialised(
            join(at, name),
            store === 'SQLite' ? [] : ['--store', server?.url ?? '', '--schema', name.replace('-', '_')],
          ),
        // At the beginning, in the middle, near the end, and after it.
        random: () => [0.1, 0.45, 0.7, 0.95][drawn++] ?? 0.5,
      });
      expect(violations).toEqual([]);
      expect(tally.finished).toBeGreaterThanOrEqual(1);
      expect(tally.unfinished).toBeGreaterThanOrEqual(1);
    },
    MS_MAX,
  );
});

test(
  'killed before each of its last disk operations, a backup is finished or refused',
  async () => {
    const home = await initialised(join(folder, 'quiet'));
    const preload = join(ROOT, 'test/features/backup/copy/kill-at.mjs');
    const backUp = (to: string, env: Readonly<Record<string, string>>) =>
      spawnSync(process.execPath, ['--import', preload, program('backup-victim'), home, to], {
        env: { ...process.env, ...env },
        encoding: 'utf8',
      });
    const steps = join(folder, 'steps');
    expect(backUp(join(folder, 'whole'), { STEPS: steps })).toMatchObject({ status: 0, stderr: '' });
    const all = Number(readFileSync(steps, 'utf8'));
    expect(all).toBeGreaterThan(LAST_STEPS);
    const found = { finished: 0, unfinished: 0 };
    const keys = join(home, 'keys');
    for (let at = all - LAST_STEPS; at <= all; at += 1) {
      const to = join(folder, `killed-${at}`);
      expect(backUp(to, { KILL_AT: String(at) }).signal).toBe('SIGKILL');
      const restored = join(folder, `restored-${at}`);
      if (isFinishedBackup(to)) {
        found.finished += 1;
        expect((await restore(to, restored, { keys })).verdict).toMatchObject({ verdict: 'verified' });
      } else {
        found.unfinished += 1;
        await expect(restore(to, restored, { keys })).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
        expect(existsSync(restored)).toBe(false);
        const again = join(folder, `again-${at}`);
        cpSync(to, again, { recursive: true });
        expect(backUp(again, {})).toMatchObject({ status: 0, stderr: '' });
        expect((await restore(again, `${restored}-again`, { keys })).verdict).toMatchObject({ verdict: 'verified' });
        rmSync(again, { recursive: true });
      }
    }
    expect(found.finished).toBeGreaterThan(0);
    expect(found.unfinished).toBeGreaterThan(0);
  },
  MS_MAX,
);

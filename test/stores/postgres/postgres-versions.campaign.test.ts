// Two versions of the program on one ledger, as during a rolling upgrade: an earlier commit of this repository, built
// from its own sources, and the current one.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { FORMAT_ROTATED, FORMAT_VERSION } from '../../../src/stores/postgres/postgres-schema.js';
import { openTurnpike, winstonLog, type Turnpike } from '../../../src/index.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';
import { ROOT } from '../../root.js';
import { AS_FORMAT_1, ledgerPlace, type LedgerPlace } from './postgres-harness.js';
import { buildVersion, VersionWorker } from './version-harness.js';

/** A commit whose tables have format 2. */
const EARLIER = '2a731fbb13cc4fafbdcdbfe0bc5216bc4e59b9fb';
const PARTS = ['src', 'machines', 'policies', 'package.json'];
const MS_MAX = 120_000;

const server = await startPostgres({ isDurable: true });
const folder = tempFolder('versions');

/** Whether the repository has the earlier commit: a package or a shallow clone does not. */
function hasEarlier(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${EARLIER}^{commit}`], { cwd: ROOT, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Builds the program of the earlier commit. */
async function buildEarlier(): Promise<string> {
  const sources = join(folder, 'earlier');
  mkdirSync(sources, { recursive: true });
  const archive = execFileSync('git', ['archive', EARLIER, ...PARTS], { cwd: ROOT, maxBuffer: 268_435_456 });
  execFileSync('tar', ['-x', '-C', sources], { input: archive });
  symlinkSync(join(ROOT, 'node_modules'), join(sources, 'node_modules'));
  return buildVersion(sources, ['openTurnpike', 'createPostgresStore']);
}

const campaign = server === null || !hasEarlier() ? describe.skip : describe;
let program = '';
beforeAll(async () => {
  if (server !== null && hasEarlier()) program = await buildEarlier();
}, MS_MAX);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const openCurrent = async (place: LedgerPlace): Promise<Turnpike> =>
  openTurnpike({
    store: await openPostgresStore({ ...place, caseKeysDir: join(place.folder, 'case-keys') }),
    sandbox: join(place.folder, 'sandbox'),
    restarts: 'automatic',
    control: false,
    log: winstonLog('silent'),
  });

const write = (path: string, content: string): string =>
  JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${path}`, content }));

campaign('two versions on one ledger', () => {
  test(
    'the later one migrates the tables and serves every tree, the earlier one those that it can judge',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      const earlier = new VersionWorker(program, place);
      expect(await earlier.next()).toBe('joined');
      expect(await place.exec('SELECT format FROM meta')).toEqual([{ format: 2 }]);
      const current = await openCurrent(place);
      expect(await place.exec('SELECT format FROM meta')).toEqual([{ format: FORMAT_VERSION }]);
      const shared = (await earlier.ask({ start: { case: 'case-0001' } })) as string;
      const newer = (await current.remoteAgents.start({ case: 'case-0001' })).run_id;
      for (let step = 0; step < 12; step += 1) {
        const text = write(`note-${step % 4}.md`, `step ${step}`);
        const inputId = `s${step}`;
        const isEarlier = step % 2 === 0;
        const response = isEarlier
          ? await earlier.ask({ run_id: shared, proposal: text, inputId })
          : await current.submit(shared, text, { inputId, integrated: true });
        expect(response).toMatchObject({ outcome: 'SUCCESS' });
        // A client that has lost the answer asks the other version.
        const again = isEarlier
          ? current.submit(shared, text, { inputId })
          : earlier.ask({ run_id: shared, proposal: text, inputId });
        expect(await again).toEqual(response);
        // The earlier version does not know the flags of this tree, and does not guess.
        const refused = { code: 'LEDGER_TAMPERED' };
        expect(await earlier.ask({ run_id: newer, proposal: text, inputId })).toMatchObject(refused);
        expect(await current.submit(newer, text, { inputId })).toMatchObject({ outcome: 'SUCCESS' });
      }
      const runs = [shared, newer];
      await earlier.end();
      for (const run_id of runs) {
        expect(await current.submit(run_id, write('last.md', 'x'), { inputId: 'last' })).toMatchObject({
          outcome: 'SUCCESS',
        });
        await current.remoteAgents.end(run_id);
      }
      expect(await current.ledger.verify()).toMatchObject({ verdict: 'verified' });
      expect(await current.replay()).toMatchObject({ difference: null });
      await current.close();
      await place.remove();
    },
    MS_MAX,
  );

  test(
    'a worker goes on while a later version migrates the tables from format 1',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      await (await createPostgresStore({ ...place, caseKeysDir: join(place.folder, 'case-keys') })).close();
      const current = await openCurrent(place);
      const { run_id } = await current.remoteAgents.start({ case: 'case-local' });
      await place.exec(AS_FORMAT_1);
      const state = { isOver: false };
      const working = (async () => {
        for (let step = 0; !state.isOver; step += 1)
          expect(await current.submit(run_id, write('a.md', `${step}`))).toMatchObject({ outcome: 'SUCCESS' });
      })();
      const later = await openCurrent(place);
      expect(await place.exec('SELECT format FROM meta')).toEqual([{ format: FORMAT_VERSION }]);
      expect(await later.submit(run_id, write('b.md', 'x'))).toMatchObject({ outcome: 'SUCCESS' });
      state.isOver = true;
      await working;
      expect(await later.ledger.verify()).toMatchObject({ verdict: 'verified' });
      await current.close();
      await later.close();
      await place.remove();
    },
    MS_MAX,
  );

  test(
    'a version that does not know the format of the tables is refused when it joins again, and writes nothing',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      await (await createPostgresStore({ ...place, caseKeysDir: join(place.folder, 'case-keys') })).close();
      const current = await openCurrent(place);
      const { run_id } = await current.remoteAgents.start({ case: 'case-local' });
      // As if a later version had migrated the tables while this one works.
      await place.exec(`UPDATE meta SET format = ${FORMAT_ROTATED + 1}`);
      expect(await current.submit(run_id, write('a.md', 'x'))).toMatchObject({ outcome: 'SUCCESS' });
      await place.exec(`SELECT pg_terminate_backend(backend_pid, 5000) FROM performers WHERE over_at IS NULL`);
      const after = await current.submit(run_id, write('b.md', 'x')).catch((error: unknown) => error);
      expect(JSON.stringify(after)).toContain('AUDIT_FAILURE');
      await expect(current.restart()).rejects.toMatchObject({
        code: 'LEDGER_UNAVAILABLE',
        message: expect.stringContaining('newer version'),
      });
      await current.close().catch(() => undefined);
      await place.remove();
    },
    MS_MAX,
  );
});

// `turnpike keys rotate --case` on a ledger in PostgreSQL: another worker that knows the old key uses the new one.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openPostgresStore } from '../../../../../src/stores/postgres/postgres-ledger-store.js';
import { openTurnpike, winstonLog, type Turnpike } from '../../../../../src/index.js';
import { homePaths } from '../../../../../src/home/home-paths.js';
import { erasureSealOf } from '../../../../../src/home/home.js';
import { execute } from '../../../../stores/postgres/postgres-harness.js';
import { startPostgres } from '../../../../fixtures/postgres.js';
import { proposal } from '../../../../fixtures/tree.js';
import { finish, tempFolder, turnpike, write, type Said } from '../../fake-io.js';

const BY = { actor: 'otto operator', role: 'operator' };
const server = await startPostgres({ isDurable: true });
const url = server?.url ?? '';
afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('keys rotate --case on PostgreSQL', () => {
  let folder: string;
  const here = (...argv: string[]): Promise<Said> => turnpike(folder, [...argv, '--home', 'home']);
  const rotate = (...argv: string[]): Promise<Said> =>
    here('keys', 'rotate', ...argv, '--actor', BY.actor, '--role', BY.role);
  const keyFiles = (): readonly string[] =>
    readdirSync(join(folder, 'home/keys/cases')).filter((name) => /^case-.*(?:key|replaced)$/.test(name));
  const keyNumbers = async (case_id: string): Promise<readonly number[]> => {
    const rows = await execute(url, `SELECT DISTINCT key_no FROM turnpike.artifacts WHERE case_id = '${case_id}'`);
    return (rows as { readonly key_no: number }[]).map(({ key_no }) => key_no).sort();
  };

  beforeAll(async () => {
    folder = tempFolder('rotate-case-pg');
    expect(await turnpike(folder, ['init', '--store', url, '--home', 'home'])).toMatchObject({ code: 0 });
    for (const name of ['case-one', 'case-two']) {
      const stdin = [write('/sandbox/a.txt', name), finish()].join('\n');
      const said = await turnpike(folder, ['run', '-', '--home', 'home', '--case', name], { stdin });
      expect(said).toMatchObject({ code: 0 });
    }
  }, 120_000);

  const openWorker = async (): Promise<Turnpike> => {
    const paths = homePaths(join(folder, 'home'));
    return openTurnpike({
      store: await openPostgresStore({
        url,
        caseKeysDir: paths.caseKeys,
        erasureSeal: erasureSealOf(paths, { readOnly: false }),
      }),
      keys: paths.keys,
      sandbox: paths.sandbox,
      control: false,
      log: winstonLog('silent'),
    });
  };

  test('the first rotation of a ledger needs no worker stopped: one that writes meanwhile stores nothing under the old key', async () => {
    const [one, other] = [await openWorker(), await openWorker()];
    const agent = await one.startAgent({ case: 'case-three' });
    let writes = 0;
    const submit = () =>
      agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/b.md', content: `text ${(writes += 1)}` })));
    expect(await submit()).toMatchObject({ outcome: 'SUCCESS' });
    expect(keyFiles()).toEqual(['case-one.1.key', 'case-three.1.key', 'case-two.1.key']);
    const rotation = other.rotateCaseKeys({ case: 'case-three', ...BY });
    let hasEnded = false;
    const isRotating = (): boolean => !hasEnded;
    const settled = rotation.finally(() => (hasEnded = true));
    while (isRotating()) expect(await submit()).toMatchObject({ outcome: 'SUCCESS' });
    expect((await settled).rotations).toMatchObject([{ case_id: 'case-three', key_no: 1, resumed: false }]);
    expect(writes).toBeGreaterThan(1);
    expect(await submit()).toMatchObject({ outcome: 'SUCCESS' });
    await agent.end();
    await one.close();
    await other.close();
    expect(await keyNumbers('case-three')).toEqual([2]);
    expect(keyFiles()).toEqual(['case-one.1.key', 'case-three.1.replaced', 'case-three.2.key', 'case-two.1.key']);
    expect(await here('replay')).toMatchObject({ code: 0 });
  }, 120_000);

  test('replaces the keys, and everything verifies and replays', async () => {
    expect(await rotate('--case', 'case-one')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('case-one: key 2 replaces key 1'),
    });
    expect(keyFiles().filter((name) => !name.startsWith('case-three'))).toEqual([
      'case-one.1.replaced',
      'case-one.2.key',
      'case-two.1.key',
    ]);
    expect([await keyNumbers('case-one'), await keyNumbers('case-two')]).toEqual([[2], [1]]);
    expect(await rotate('--cases', '--json')).toMatchObject({ code: 0 });
    expect([await keyNumbers('case-one'), await keyNumbers('case-two')]).toEqual([[3], [2]]);
    expect(await here('ledger', 'verify')).toMatchObject({ code: 0 });
    expect(await here('replay')).toMatchObject({ code: 0 });
  }, 120_000);

  test('a worker that knows the old key stores nothing under it', async () => {
    const [one, other] = [await openWorker(), await openWorker()];
    const agent = await one.startAgent({ case: 'case-two' });
    const submit = (text: string) =>
      agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/b.md', content: text })));
    expect(await submit('before')).toMatchObject({ outcome: 'SUCCESS' });
    await other.rotateCaseKeys({ case: 'case-two', ...BY });
    expect(await submit('after')).toMatchObject({ outcome: 'SUCCESS' });
    expect(await agent.end()).toBeDefined();
    await one.close();
    await other.close();
    expect(await keyNumbers('case-two')).toEqual([3]);
    expect(await here('replay')).toMatchObject({ code: 0 });
  }, 120_000);
});

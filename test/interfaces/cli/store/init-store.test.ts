// `turnpike init --store` in a real PostgreSQL, and without one.

import { afterAll, describe, expect, test } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { importWithPackage } from '../../../../src/interfaces/cli/store/shared-home.js';
import { startPostgres } from '../../../fixtures/postgres.js';
import { tempFolder, turnpike } from '../fake-io.js';

const server = await startPostgres({ isDurable: true });
const testOnPostgres = server === null ? test.skip : test;
afterAll(() => server?.stop());

const MISSING: string = 'no-such-package';

/** A port on which nothing listens. */
const NOWHERE = 'postgres://unknown@127.0.0.1:1/none';

describe('init --store', () => {
  testOnPostgres('writes the example too, as without a store', async () => {
    const folder = tempFolder();
    const { url } = server!;
    const said = await turnpike(folder, ['init', '--store', url, '--schema', 'with_example', '--json']);
    expect(said).toMatchObject({ stderr: '', code: 0 });
    const { files } = JSON.parse(said.stdout) as { readonly files: readonly { readonly name: string }[] };
    expect(files.map(({ name }) => name)).toContain('proposals.jsonl');
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['.turnpike', 'contract', 'proposals.jsonl']));
  });

  test.each([
    ['the folders by default', []],
    ['a key folder of its own', ['--keys', 'shared/keys']],
    ['a volume of its own', ['--sandbox', 'volume']],
  ])('leaves nothing behind when the database is away: %s', async (_, options) => {
    const folder = tempFolder();
    const said = await turnpike(folder, ['init', '--store', NOWHERE, ...options]);
    expect(said.code).not.toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });

  testOnPostgres('leaves nothing behind when the tables cannot be made', async () => {
    const folder = tempFolder();
    const { url } = server!;
    const said = await turnpike(folder, ['init', '--store', url, '--schema', 'pg_reserved', '--keys', 'keys']);
    expect(said.code).not.toBe(0);
    expect(existsSync(join(folder, 'keys'))).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('names the package that a ledger in PostgreSQL needs', async () => {
    const load = () => import(MISSING);
    await expect(importWithPackage('no-such-package', load)).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('npm install no-such-package'),
    });
    await expect(importWithPackage('pg', load)).rejects.not.toMatchObject({ code: 'USAGE' });
  });
});

test('a token says which of its parts is not valid', async () => {
  const folder = tempFolder();
  expect(await turnpike(folder, ['init'])).toMatchObject({ code: 0 });
  const mint = (actor: string, role: string) =>
    turnpike(folder, ['token', '--actor', actor, '--role', role, '--right', 'observe']);
  expect(await mint('al', 'ATTORNEY_ADMIN')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/actor: .*"al".* is too short/),
  });
  expect(await mint('alice', 'no role')).toMatchObject({ code: 2, stderr: expect.stringContaining('role:') });
});

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../root.js';

let folder: string;
beforeAll(() => {
  folder = tempFolder('agents');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a client that declares another version of Node is installed, also below `npm run` with engine-strict', () => {
  const source = join(folder, 'source');
  mkdirSync(source);
  const manifest = { name: 'a-client', version: '1.0.0', engines: { node: '>=999' } };
  writeFileSync(join(source, 'package.json'), JSON.stringify(manifest));
  const module = JSON.stringify(join(ROOT, 'test/agents/install-clients.mjs'));
  const program = `const { installPackages } = await import(${module});
    installPackages('a-client', { 'a-client': ${JSON.stringify(`file:${source}`)} });`;
  // npm gives what it runs the settings of the checkout as variables.
  const env = { ...process.env, TURNPIKE_AGENTS_CACHE: join(folder, 'cache'), npm_config_engine_strict: 'true' };
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    env,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
  expect(existsSync(join(folder, 'cache/a-client/node_modules/a-client/package.json'))).toBe(true);
});

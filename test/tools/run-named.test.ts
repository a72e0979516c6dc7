// `npm run bench` and `npm run campaign`: every name has its program, and its exit code is passed on.

import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { filesIn, ROOT, textOf } from '../sources.js';

const PROGRAM = join(ROOT, 'tools/run-named.mjs');
const { TABLES } = (await import(pathToFileURL(PROGRAM).href)) as {
  readonly TABLES: Readonly<Record<string, Readonly<Record<string, { readonly args: readonly string[] }>>>>;
};

function run(...args: string[]): { readonly status: number | null; readonly stderr: string } {
  return spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });
}

test('every program of a name exists, compiled or as its source', () => {
  const programs = Object.values(TABLES).flatMap((table) => Object.values(table).flatMap(({ args }) => args));
  const files = programs.filter((word) => word.includes('/'));
  expect(files.length).toBe(Object.values(TABLES).reduce((sum, table) => sum + Object.keys(table).length, 0));
  const sources = files.map((file) => file.replace(/^build\/(.*)\.js$/, '$1.ts'));
  expect(sources.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test.each(['bench', 'campaign'])('%s lists its names without a name, and with an unknown one', (kind) => {
  const { status, stderr } = run(kind);
  expect(status).toBe(2);
  for (const name of Object.keys(TABLES[kind] ?? {})) expect(stderr).toMatch(new RegExp(`^ {2}${name} +\\S`, 'm'));
  expect(run(kind, 'nothing')).toMatchObject({ status: 2, stderr: `unknown ${kind} "nothing"\n${stderr}` });
});

test('passes arguments and exit code on', () => {
  expect(run('campaign', 'stable', '--times', '0')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('usage: npm run campaign -- stable SUITES'),
  });
});

test('every name that a page or a comment gives exists', () => {
  const files = [...filesIn('docs', /\.md$/), ...filesIn('test', /\.(?:ts|mjs)$/), 'README.md', 'SECURITY.md'];
  const named = files.flatMap((file) =>
    [...textOf(file).matchAll(/npm run (bench|campaign) -- ([a-z-]+)/g)].map(([, kind = '', name = '']) => ({
      file,
      kind,
      name,
    })),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ kind, name }) => TABLES[kind]?.[name] === undefined)).toEqual([]);
});

// Paths of a coding agent as the kernel follows them (0064). The oracle is the kernel: what looks inside is inside.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { projectPath } from '../../../src/system/files/project-path.js';
import { randomFrom } from '../../fixtures/hooks/secret-events.js';

let folder: string;
let project: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'turnpike-paths-')));
  project = join(folder, 'project');
  for (const name of ['project/src/deep', 'outside/sub']) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['project/a', 'project/src/b', 'outside/secret', 'outside/sub/c'])
    writeFileSync(join(folder, name), name);
  for (const [name, target] of [
    ['out', '../outside'],
    ['sub', '../outside/sub'],
    ['in', 'src'],
    ['dangling', '../outside/new'],
    ['loop', 'loop'],
    ['chain', 'out/sub'],
    ['file', '../outside/secret'],
    ['src/up', '..'],
  ] as const)
    symlinkSync(target, join(project, name));
});
afterAll(() => rmSync(folder, { recursive: true }));
const path = (text: string, cwd = project): string => projectPath(text, project, cwd).replace(folder, '@');

test.each([
  ['.', '.'],
  ['', '.'],
  ['./', '.'],
  ['a', 'a'],
  ['./src//b', 'src/b'],
  ['src/../a', 'a'],
  ['in/b', 'src/b'],
  ['src/up/a', 'a'],
  ['out', '@/outside'],
  ['out/secret', '@/outside/secret'],
  ['chain/c', '@/outside/sub/c'],
  ['file', '@/outside/secret'],
  ['../outside', '@/outside'],
  ['../project/a', 'a'],
  ['/etc/passwd', '/etc/passwd'],
  ['new/file', 'new/file'],
  ['a/x', 'a/x'],
])('0064: %s is %s', (text, expected) => {
  expect(path(text)).toBe(expected);
});

test('0064: an absolute path of the project is inside', () => {
  expect(path(join(project, 'src/b'))).toBe('src/b');
  expect(path(project)).toBe('.');
  expect(path('b', join(project, 'src'))).toBe('src/b');
  expect(projectPath('~/x', project, project)).toBe(join(realpathSync(homedir()), 'x'));
});

test('0064: a link to a file that does not exist yet leads to that file', () => {
  expect(path('dangling')).toBe('@/outside/new');
});

test.each([65, 70, 200, 1_000])('0064: %d missing folders below a link out of the project are outside', (folders) => {
  expect(path(`out/${'x/'.repeat(folders)}y`)).toMatch(/^@\/outside\/x/);
});

test.each(['sub/../secret', 'out/../project/a', 'loop', 'loop/x'])(
  '0064: a path that the kernel and a client without links read differently is not canonical: %s',
  (text) => {
    expect(path(text)).toMatch(/\/\.\.$/);
  },
);

test('0064: of 3,000 random paths, each that is inside by its form is where the kernel finds it', () => {
  const random = randomFrom(3);
  const names = [
    'out',
    'sub',
    'in',
    'dangling',
    'chain',
    'file',
    'src',
    'up',
    'deep',
    'a',
    'b',
    'c',
    'secret',
    '..',
    '.',
    '',
    'new',
  ];
  let found = 0;
  for (let round = 0; round < 3_000; round += 1) {
    const text = `./${Array.from({ length: 1 + random(6) }, () => names[random(names.length)]).join('/')}`;
    const said = projectPath(text, project, project);
    let real: string;
    try {
      // The kernel resolves the text as it is; `join` would remove `..` first.
      readFileSync(`${project}/${text}`);
      real = realpathSync.native(`${project}/${text}`);
    } catch {
      continue;
    }
    found += 1;
    if (said.endsWith('/..')) continue;
    expect([text, said.startsWith('/') ? said : join(project, said)]).toEqual([text, real]);
  }
  expect(found).toBeGreaterThan(50);
});

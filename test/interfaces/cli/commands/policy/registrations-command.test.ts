// `turnpike registrations`: from the module of a service to the file that `policy check --registrations` takes.

import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../../root.js';
import { initialised, put, tempFolder, turnpike } from '../../fake-io.js';

const MODULE = join(ROOT, 'test/fixtures/service-module.mjs');

interface Written {
  readonly actions: readonly { readonly name: string }[];
  readonly tools: readonly { readonly name: string }[];
  readonly targets: readonly { readonly name: string }[];
}
const names = (list: readonly { readonly name: string }[]): readonly string[] => list.map(({ name }) => name);

describe('turnpike registrations', () => {
  test('prints all definitions that a module exports, each once and sorted', async () => {
    const { code, stdout, stderr } = await turnpike(tempFolder(), ['registrations', MODULE]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { actions, tools, targets } = JSON.parse(stdout) as Written;
    expect([actions, tools, targets].map(names)).toEqual([
      ['ANSWER'],
      ['orders.cancel', 'orders.look_up'],
      ['tickets'],
    ]);
  });

  test('writes the file that `policy check --registrations` needs for a policy that lists an action of the service', async () => {
    const folder = await initialised();
    const path = join(folder, 'contract/policy/actions.yaml');
    put(
      folder,
      'contract/policy/actions.yaml',
      readFileSync(path, 'utf8').replace('actions:\n', 'actions:\n  - action: ANSWER\n'),
    );
    expect(await turnpike(folder, ['policy', 'check'])).toMatchObject({ code: 1 });
    expect(await turnpike(folder, ['registrations', MODULE, '--out', 'r.json'])).toMatchObject({
      code: 0,
      stderr: 'r.json: 2 tools, 1 target, 1 action\n',
    });
    const checked = await turnpike(folder, ['policy', 'check', '--registrations', 'r.json', '--json']);
    expect(checked.stdout).not.toContain('ANSWER');
  });

  test.each([
    ['is missing', 'none.mjs', null, /"none\.mjs" does not exist/],
    [
      'exports nothing of Turnpike',
      'a.mjs',
      'export const tools = [{ name: "x" }];',
      /exports no tool, target or action/,
    ],
    ['exports nothing at all', 'b.mjs', 'const x = 1;', /exports no tool, target or action/],
    ['throws', 'c.mjs', 'throw new Error("no database");', /cannot be loaded: no database/],
    ['is no JavaScript', 'd.mjs', 'export const = 1;', /cannot be loaded: /],
    ['is TypeScript', 'e.ts', 'export {};', /is TypeScript: compile it/],
  ])('refuses a module that %s', async (_name, name, text, message) => {
    const folder = tempFolder();
    if (text !== null) put(folder, name, text);
    expect(await turnpike(folder, ['registrations', name])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  });

  test('refuses a file that cannot be written', async () => {
    expect(await turnpike(tempFolder(), ['registrations', MODULE, '--out', 'no/r.json'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot write no/r.json: ENOENT'),
    });
  });
});

// The key of a ledger is replaced: what old and new keys verify afterwards, alone and through the history.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyFacts } from '../../../../../src/home/keys/list-keys.js';
import { lockWriter } from '../../../../../src/stores/sqlite/writer-lock.js';
import {
  copyOf,
  finish,
  initialised,
  linesOf,
  ownLedger,
  tempFolder,
  turnpike,
  write,
  type Said,
} from '../../fake-io.js';

const BY = ['--actor', 'otto operator', '--role', 'operator'];
const ROTATE = ['keys', 'rotate', '--signing', ...BY];

let folder: string;
let away: string;
/** The keys in their order, the first one first. */
const keys: string[] = [];

const here = (...argv: string[]): Promise<Said> => turnpike(folder, argv);
const there = (...argv: string[]): Promise<Said> => turnpike(away, argv);
const vkey = (): string => readFileSync(join(folder, '.turnpike/keys/ledger.vkey'), 'utf8').trim();
const work = (): Promise<Said> =>
  turnpike(folder, ['run', '-'], { stdin: [write('/sandbox/a.txt', 'a'), finish()].join('\n') });
const nameOf = (key: string): string => key.split('+').slice(0, 2).join('+');

async function collect(name: string): Promise<void> {
  expect((await here('ledger', 'export', `bundle-${name}`)).stderr).toBe('');
  writeFileSync(join(folder, `checkpoint-${name}`), (await here('ledger', 'checkpoint')).stdout);
  expect((await here('ledger', 'prove', '@0', '--out', `proof-${name}`)).code).toBe(0);
  for (const file of ['bundle', 'checkpoint', 'proof'])
    copyFileSync(join(folder, `${file}-${name}`), join(away, `${file}-${name}`));
}

beforeAll(async () => {
  folder = await initialised();
  away = tempFolder();
  await work();
  keys.push(vkey());
  await collect('0');
  for (const round of ['1', '2']) {
    expect(await turnpike(folder, ROTATE)).toMatchObject({ code: 0, stderr: '' });
    keys.push(vkey());
    await work();
    await collect(round);
  }
  copyFileSync(join(folder, '.turnpike/keys/key-history.list'), join(away, 'history'));
});

describe('keys rotate --signing', () => {
  test('replaces the key, destroys the old private keys, and records each rotation', async () => {
    expect(new Set(keys).size).toBe(3);
    expect(new Set(keys.map((key) => key.split('+')[0])).size).toBe(1);
    expect(readdirSync(join(folder, '.turnpike/keys')).filter((name) => /^ledger/.test(name))).toEqual([
      'ledger.key',
      'ledger.vkey',
    ]);
    expect(await here('ledger', 'verify')).toMatchObject({ code: 0, stderr: '' });
    expect(await here('replay')).toMatchObject({ code: 0 });
    const { stdout } = await here('runs', '--json');
    const rotations = linesOf(stdout).filter((line) => line.includes('key-rotation-'));
    expect(rotations).toHaveLength(2);
    expect(readFileSync(join(folder, '.turnpike/ledger.head'), 'latin1')).not.toContain('turnpike-head 1 head');
  });

  test('lists each key with its entries and no secret', async () => {
    const said = await here('keys', 'list', '--json');
    const listed = linesOf(said.stdout).map((line) => JSON.parse(line) as KeyFacts);
    const ledger = listed.filter(({ purpose }) => purpose === 'ledger');
    expect(ledger.map(({ id, state }) => [id, state])).toEqual([
      [nameOf(keys[0] ?? ''), 'retired'],
      [nameOf(keys[1] ?? ''), 'retired'],
      [nameOf(keys[2] ?? ''), 'current'],
    ]);
    expect(ledger.map(({ from, to }) => [from, to])).toEqual([
      [0, ledger[1]?.from],
      [ledger[1]?.from, ledger[2]?.from],
      [ledger[2]?.from, null],
    ]);
    expect(listed.some(({ purpose, state }) => purpose === 'case' && state === 'current')).toBe(true);
    const secret = readFileSync(join(folder, '.turnpike/keys/ledger.key'), 'utf8').trim().split('+').slice(4).join('+');
    expect(secret.length).toBeGreaterThan(40);
    const text = (await here('keys', 'list')).stdout;
    expect(said.stdout + text).not.toContain(secret);
    expect(text).toMatch(/retired .*entries @0 to @\d+/);
  });

  test.each(['0', '1', '2'])('a bundle after %s rotations verifies with its own key, offline', async (name) => {
    const own = keys[Number(name)] ?? '';
    expect(await there('ledger', 'verify', `bundle-${name}`, '--no-replay', '--key', own)).toMatchObject({ code: 0 });
    expect(await there('replay', `bundle-${name}`, '--key', own)).toMatchObject({ code: 0 });
    expect(await there('ledger', 'check-proof', `proof-${name}`, '--key', own)).toMatchObject({ code: 0 });
  });

  test('a later bundle verifies with any earlier key, through the history in it', async () => {
    for (const key of keys) {
      expect(await there('ledger', 'verify', 'bundle-2', '--no-replay', '--key', key)).toMatchObject({
        code: 0,
        stderr: '',
      });
    }
    const foreign = readFileSync(join(await ownLedger(), '.turnpike/keys/ledger.vkey'), 'utf8').trim();
    expect(await there('ledger', 'verify', 'bundle-2', '--key', foreign)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('does not contain the key that must have signed'),
    });
  });

  test('an earlier bundle or proof verifies with a later key and the history', async () => {
    for (const argv of [
      ['ledger', 'verify', 'bundle-0'],
      ['ledger', 'check-proof', 'proof-0'],
    ]) {
      const later = [...argv, '--key', keys[2] ?? ''];
      expect(await there(...later)).toMatchObject({ code: 1 });
      expect(await there(...later, '--key-history', 'history')).toMatchObject({ code: 0 });
    }
    const first = ['ledger', 'check-proof', 'proof-2', '--key', keys[0] ?? ''];
    expect(await there(...first)).toMatchObject({ code: 1 });
    expect(await there(...first, '--key-history', 'history')).toMatchObject({ code: 0 });
  });

  test('a consistency proof from a checkpoint of the old key verifies with either key', async () => {
    expect(await here('ledger', 'prove', '--from', 'checkpoint-0', '--out', 'extends')).toMatchObject({ code: 0 });
    copyFileSync(join(folder, 'extends'), join(away, 'extends'));
    for (const key of keys) {
      expect(await there('ledger', 'check-proof', 'extends', '--key', key)).toMatchObject({ code: 0 });
    }
  });

  test('is refused while another process has the home directory', async () => {
    const lock = lockWriter(join(folder, '.turnpike/ledger.db'));
    try {
      const said = await turnpike(folder, ROTATE);
      expect([said.code, said.stderr]).toEqual([3, expect.stringContaining('another process has')]);
    } finally {
      lock.release();
    }
    expect(vkey()).toBe(keys[2]);
  });

  test('doctor reports the age of the key, and a private key that an interrupted rotation left', async () => {
    expect((await here('doctor')).stdout).toMatch(/the ledger key is 0 days old/);
    const left = join(folder, '.turnpike/keys/ledger.retired.key');
    writeFileSync(left, 'left', { mode: 0o600 });
    const said = await here('doctor');
    expect(said.stdout).toContain('a private key of it still exists');
    await work();
    expect(existsSync(left)).toBe(false);
    expect((await here('doctor')).stdout).not.toContain('a private key of it still exists');
  });
});

describe('a damaged history of a home directory', () => {
  const history = '.turnpike/keys/key-history.list';
  const withHistory = async (edit: (lines: string[]) => readonly string[], argv: readonly string[]): Promise<Said> => {
    const copy = copyOf(folder);
    const lines = readFileSync(join(copy, history), 'utf8').trimEnd().split('\n');
    writeFileSync(join(copy, history), `${edit(lines).join('\n')}\n`);
    return turnpike(copy, argv);
  };

  test.each([
    ['whose last rotation is missing', (lines: string[]) => lines.slice(0, -1), 'does not contain the key'],
    ['whose first rotation is missing', ([header, , ...rest]: string[]) => [header ?? '', ...rest], 'missing or moved'],
    [
      'whose rotations are exchanged',
      ([header = '', first = '', second = '']: string[]) => [header, second, first],
      'missing or moved',
    ],
  ])('%s is rejected', async (_, edit, message) => {
    for (const argv of [
      ['ledger', 'verify'],
      ['keys', 'list'],
    ]) {
      const said = await withHistory(edit, argv);
      expect([said.code === 0, said.stderr]).toEqual([false, expect.stringContaining(message)]);
    }
  });

  test('that is missing is found in the log', async () => {
    const copy = copyOf(folder);
    rmSync(join(copy, history));
    const verified = await turnpike(copy, ['ledger', 'verify']);
    expect([verified.code, verified.stdout]).toEqual([1, expect.stringContaining('key history does not have it')]);
    const opened = await turnpike(copy, ROTATE);
    expect([opened.code, opened.stderr]).toEqual([3, expect.stringContaining('restore key-history.list')]);
  });
});

// `turnpike keys rotate --case` and `--cases`, and what backups, archives and erasures from before and after have.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { caseCipher } from '../../../../../src/stores/keys/case-keys.js';
import { lockWriter } from '../../../../../src/stores/sqlite/writer-lock.js';
import { sha256 } from '../../../../../src/core/contract/hash.js';
import type { KeyFacts } from '../../../../../src/home/keys/list-keys.js';
import { copyOf, fastClock, finish, initialised, jsonLines, read, turnpike, write, type Said } from '../../fake-io.js';

const BY = ['--actor', 'otto operator', '--role', 'operator'];
const CANARY = 'canary-in-a-file';
/** More than a row of the database may have. */
const LARGE = `${CANARY} ${'x'.repeat(300_000)}`;
const CASES = ['case-one', 'case-two'];

/** A home with two cases, before any rotation. */
let model: string;

const rotate = (folder: string, ...argv: string[]): Promise<Said> =>
  turnpike(folder, ['keys', 'rotate', ...argv, ...BY]);
const keyFiles = (folder: string): readonly string[] =>
  readdirSync(join(folder, '.turnpike/keys/cases')).filter((name) => /^case-/.test(name));
const work = (folder: string, name: string, content: string): Promise<Said> =>
  turnpike(folder, ['run', '-', '--case', name], {
    stdin: [write('/sandbox/a.txt', content), read('/sandbox/a.txt'), finish()].join('\n'),
  });
const filesWith = (folder: string, bytes: string | Buffer): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const path = join(folder, name);
    return !name.startsWith('sandbox') && statSync(path).isFile() && readFileSync(path).includes(bytes);
  });
/** Every command that reads content of the ledger. */
async function expectVerified(folder: string, code = 0): Promise<void> {
  for (const argv of [['ledger', 'verify'], ['replay']]) {
    const said = await turnpike(folder, argv);
    expect([said.code, said.stderr, said.stdout.includes('not what it was')]).toEqual([code, '', false]);
  }
}

beforeAll(async () => {
  model = await initialised();
  for (const name of CASES) expect(await work(model, name, LARGE)).toMatchObject({ code: 0 });
}, 60_000);

describe('keys rotate --case', () => {
  test('encrypts the contents again, destroys the old key, records it, and shows both keys', async () => {
    const folder = copyOf(model);
    const line = readFileSync(join(folder, '.turnpike/keys/cases/case-one.1.key'), 'utf8').trim();
    const old = caseCipher(Buffer.from(line.split(' ')[1] ?? '', 'base64'));
    const sealed = old.seal(Buffer.from(LARGE), Buffer.from(sha256(LARGE), 'hex')).subarray(0, 24);
    const said = await rotate(folder, '--case', 'case-one', '--json');
    const [rotation] = jsonLines(said.stdout);
    expect([said.code, said.stderr, rotation]).toEqual([
      0,
      '',
      {
        ...{ purpose: 'case', case_id: 'case-one', old_key: 1, new_key: 2, contents: expect.any(Number) },
        ...{ at: expect.any(String), actor: 'otto operator', role: 'operator', resumed: false },
      },
    ]);
    expect(keyFiles(folder)).toEqual(['case-one.1.replaced', 'case-one.2.key', 'case-two.1.key']);
    const home = join(folder, '.turnpike');
    expect(filesWith(home, sealed)).toEqual([]);
    expect(filesWith(home, line.split(' ')[1] ?? '')).toEqual([]);
    expect(filesWith(home, CANARY)).toEqual([]);
    await expectVerified(folder);
    const runs = (await turnpike(folder, ['runs', '--json'])).stdout;
    expect(runs).toContain('case-key-rotation-case-one-1');
    const listed = jsonLines<KeyFacts>((await turnpike(folder, ['keys', 'list', '--json'])).stdout);
    expect(listed.filter(({ purpose }) => purpose === 'case').map(({ id, state }) => [id, state])).toEqual([
      ['case-one.1', 'retired'],
      ['case-one.2', 'current'],
      ['case-two.1', 'current'],
    ]);
    expect((await turnpike(folder, ['doctor'])).stdout).toContain('no replaced key of a case exists');
    expect(await work(folder, 'case-one', 'after')).toMatchObject({ code: 0 });
    await expectVerified(folder);
    const erased = await turnpike(folder, ['ledger', 'erase', 'case-one', '--actor', 'otto operator', '--yes']);
    expect(erased).toMatchObject({ code: 0 });
    expect(keyFiles(folder)).toEqual(['case-one.1.replaced', 'case-one.2.erased', 'case-two.1.key']);
    await expectVerified(folder, 4);
  }, 60_000);

  test('--cases replaces the key of each case, with a progress bar, and prints one line for each', async () => {
    const folder = copyOf(model);
    const argv = ['keys', 'rotate', '--cases', ...BY];
    const said = await turnpike(folder, argv, { stderrTTY: true, clock: fastClock() });
    expect(said.stderr).toMatch(/encrypting contents again: \d+ of \d+ contents/);
    expect(said.stdout).toMatch(
      /^case-one: key 2 replaces key 1 \(\d+ contents\)\ncase-two: key 2 replaces key 1 \(\d+ contents\)\n\d+ contents encrypted again; /,
    );
    expect(keyFiles(folder).filter((name) => name.endsWith('.key'))).toEqual(['case-one.2.key', 'case-two.2.key']);
    await expectVerified(folder);
    expect(await rotate(folder, '--cases')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('key 3 replaces key 2'),
    });
    await expectVerified(folder);
    expect(await rotate(folder, '--signing')).toMatchObject({ code: 0 });
    expect(await rotate(folder, '--case', 'case-two')).toMatchObject({ code: 0 });
    await expectVerified(folder);
  }, 60_000);

  test('is refused without a case that has a key, and while another process has the home', async () => {
    const folder = copyOf(model);
    expect(await rotate(folder, '--case', '../x')).toMatchObject({ code: 2 });
    expect(await rotate(folder, '--case', 'case-three')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the case case-three has no key'),
    });
    const lock = lockWriter(join(folder, '.turnpike/ledger.db'));
    try {
      expect(await rotate(folder, '--cases')).toMatchObject({
        code: 3,
        stderr: expect.stringContaining('another process has'),
      });
    } finally {
      lock.release();
    }
    expect(keyFiles(folder)).toEqual(['case-one.1.key', 'case-two.1.key']);
  }, 60_000);

  test('a forged or changed note is refused by every command, and the content is kept', async () => {
    const folder = copyOf(model);
    expect(await rotate(folder, '--case', 'case-one')).toMatchObject({ code: 0 });
    const path = join(folder, '.turnpike/keys/cases/case-one.1.replaced');
    const note = readFileSync(path, 'utf8');
    for (const changed of [note.replace('otto operator', 'nina operator'), note.replace('\n1\n', '\n2\n'), 'x']) {
      writeFileSync(path, changed);
      expect(await work(folder, 'case-one', 'refused')).not.toMatchObject({ code: 0 });
      expect(await rotate(folder, '--case', 'case-one')).toMatchObject({ code: 3 });
      expect((await turnpike(folder, ['doctor'])).stdout).toContain('does not say, under the key of this ledger');
    }
    writeFileSync(path, note);
    await expectVerified(folder);
  }, 60_000);
});

describe('a case key that was rotated, and', () => {
  const backup = (folder: string, to: string, ...argv: string[]): Promise<Said> =>
    turnpike(folder, ['backup', to, ...argv]);
  const restore = (folder: string, from: string, ...argv: string[]): Promise<Said> =>
    turnpike(folder, ['restore', from, ...argv, '--actor', 'otto operator']);

  test('backups from before and after it: each is restored with its own keys, or with the keys of now', async () => {
    const folder = copyOf(model);
    expect(await backup(folder, 'before')).toMatchObject({ code: 0, stderr: '' });
    expect(await backup(folder, 'before-with-keys', '--with-keys')).toMatchObject({ code: 0 });
    expect(await rotate(folder, '--cases')).toMatchObject({ code: 0 });
    expect(await backup(folder, 'after')).toMatchObject({ code: 0 });
    expect(readdirSync(join(folder, 'after/data/keys/cases')).sort()).toEqual([
      'case-one.1.replaced',
      'case-two.1.replaced',
    ]);
    expect(await rotate(folder, '--case', 'case-one')).toMatchObject({ code: 0 });
    const keys = ['--keys', '.turnpike/keys'];
    for (const [name, ...argv] of [['before', ...keys], ['before-with-keys'], ['after', ...keys]] as const) {
      const home = `restored-${name}`;
      const restored = await restore(folder, name, '--home', home, ...argv, '--no-erasures');
      expect([name, restored.code, restored.stderr]).toEqual([name, 0, '']);
      const own = ['--home', home];
      expect([name, await turnpike(folder, ['ledger', 'verify', ...own])]).toMatchObject([name, { code: 0 }]);
      // A rotation of what was restored moves the contents of the backup to a new key. It needs no acknowledgement.
      expect([name, await rotate(folder, '--cases', ...own)]).toMatchObject([name, { code: 0 }]);
      expect([name, await turnpike(folder, ['replay', ...own])]).toMatchObject([name, { code: 0 }]);
    }
  }, 120_000);

  test('a restore says which key is missing, if the key folder has the note of a replaced key and no key that opens it', async () => {
    const folder = copyOf(model);
    expect(await backup(folder, 'before')).toMatchObject({ code: 0 });
    expect(await rotate(folder, '--case', 'case-one')).toMatchObject({ code: 0 });
    rmSync(join(folder, '.turnpike/keys/cases/case-one.2.key'));
    const restored = await restore(folder, 'before', '--home', 'restored', '--keys', '.turnpike/keys', '--no-erasures');
    expect(restored.code).not.toBe(0);
    expect(restored.stdout + restored.stderr).toMatch(
      /case-one\.1\.key was replaced on \S+ by otto operator, and no key of this folder opens it: restore \S+case-one\.2\.key from a backup/,
    );
    // It stays marked as unfinished.
    expect(await turnpike(folder, ['runs', '--home', 'restored'])).not.toMatchObject({ code: 0 });
  }, 60_000);

  test('an erasure after it: no backup from before brings the content back', async () => {
    const folder = copyOf(model);
    expect(await backup(folder, 'before')).toMatchObject({ code: 0 });
    expect(await backup(folder, 'before-with-keys', '--with-keys')).toMatchObject({ code: 0 });
    expect(await rotate(folder, '--case', 'case-one')).toMatchObject({ code: 0 });
    expect(await backup(folder, 'between', '--with-keys')).toMatchObject({ code: 0 });
    const erase = ['ledger', 'erase', 'case-one', '--actor', 'otto operator', '--yes'];
    expect(await turnpike(folder, erase)).toMatchObject({ code: 0 });
    const list = ['--erasures', '.turnpike/keys/cases/erasures.list'];
    const keys = ['--keys', '.turnpike/keys'];
    for (const [name, ...argv] of [
      ['before', ...keys],
      ['before-with-keys', ...list],
      ['between', ...list],
    ] as const) {
      const home = `restored-${name}`;
      const restored = await restore(folder, name, '--home', home, ...argv);
      expect([name, restored.stderr]).toEqual([name, '']);
      expect([name, restored.code]).toEqual([name, 4]);
      const left = readdirSync(join(folder, home, 'keys/cases')).filter((one) => /^case-one.*key$/.test(one));
      expect([name, left]).toEqual([name, []]);
      // The number of the erased key is not used again.
      expect([name, existsSync(join(folder, home, 'keys/cases/case-one.2.erased'))]).toEqual([name, true]);
      expect([name, existsSync(join(folder, home, 'artifacts/case-one')) && name !== 'before']).toEqual([name, false]);
      const again = await turnpike(folder, ['replay', '--home', home]);
      expect([name, again.code, again.stdout]).toEqual([name, 4, expect.stringContaining('erased with case case-one')]);
    }
  }, 120_000);

  test('archives from before and after it: both are read, because their content is not under a case key', async () => {
    const folder = copyOf(model);
    expect(await turnpike(folder, ['ledger', 'archive', 'first'])).toMatchObject({ code: 0 });
    expect(await work(folder, 'case-one', 'later')).toMatchObject({ code: 0 });
    expect(await rotate(folder, '--cases')).toMatchObject({ code: 0 });
    expect(await turnpike(folder, ['ledger', 'archive', 'second'])).toMatchObject({ code: 0 });
    expect(await rotate(folder, '--cases')).toMatchObject({ code: 0 });
    const archives = ['--archive', 'first', '--archive', 'second'];
    expect(await turnpike(folder, ['ledger', 'verify', ...archives])).toMatchObject({ code: 0 });
    const vkey = readFileSync(join(folder, '.turnpike/keys/ledger.vkey'), 'utf8').trim();
    // The entries before those of `second` are in `first`, and not checked.
    for (const [name, code] of [
      ['first', 0],
      ['second', 4],
    ] as const) {
      const [verified, replayed] = [
        await turnpike(folder, ['ledger', 'verify', name, '--key', vkey]),
        await turnpike(folder, ['replay', name, '--key', vkey]),
      ];
      expect([name, verified.code, replayed.code]).toEqual([name, code, code]);
      expect([verified, replayed].map(({ stdout }) => stdout.includes('are archived'))).toEqual(
        Array(2).fill(code === 4),
      );
    }
  }, 120_000);
});

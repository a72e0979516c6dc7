// Evidence bundles: one file that a third party verifies without the home directory.

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { copyFileSync, cpSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type {
  EvidenceEntry,
  EvidenceStatement,
  SignedStatement,
} from '../../../src/core/contract/evidence/evidence.js';
import { shippedContract } from '../../../src/runtime/shipped-contract.js';
import {
  finish,
  initialised,
  linesOf,
  ownLedger,
  read,
  tempFolder,
  think,
  turnpike,
  write,
  type Said,
} from './fake-io.js';

let folder: string;
let away: string;
let key: string;
const there = (...argv: string[]): Promise<Said> => turnpike(away, argv);

beforeAll(async () => {
  folder = await initialised();
  const stdin = [write('/sandbox/a.txt', 'a'), write('/sandbox/a.sh', 'x'), read('/sandbox/a.txt'), think(), finish()];
  for (let runs = 0; runs < 2; runs += 1) await turnpike(folder, ['run', '-'], { stdin: stdin.join('\n') });
  const said = await turnpike(folder, ['ledger', 'export', 'bundle']);
  expect(said).toMatchObject({ code: 0, stderr: '' });
  key = readFileSync(join(folder, '.turnpike/keys/ledger.vkey'), 'utf8').trim();
});

/** The ledger in one file, in an otherwise empty folder. */
beforeEach(() => {
  away = tempFolder();
  copyFileSync(join(folder, 'bundle'), join(away, 'bundle'));
});

const lines = (): string[] => linesOf(readFileSync(join(away, 'bundle'), 'utf8'));
const putLines = (all: readonly string[]): void => writeFileSync(join(away, 'bundle'), `${all.join('\n')}\n`);

describe('a bundle', () => {
  test('is verified and replayed without other data, with the same result as the home directory', async () => {
    const verified = await there('ledger', 'verify', 'bundle', '--key', key);
    expect(verified).toEqual({ ...(await turnpike(folder, ['ledger', 'verify'])), log: [] });
    const replayed = await there('replay', 'bundle', '--key', key, '--json');
    expect(replayed).toMatchObject({ code: 0, stderr: '' });
    expect(replayed.stdout).toBe((await turnpike(folder, ['replay', '--json'])).stdout);
    // A second export has the same bytes.
    expect((await there('replay', 'bundle', '--key', key, '--json')).stdout).toBe(replayed.stdout);
  });

  test('U-06: shows the state of every run after an entry, like the home directory', async () => {
    for (const until of ['@0', '@17', '@40', 'last']) {
      const said = await there('replay', 'bundle', '--key', key, '--until', until, '--all', '--json');
      expect(said).toEqual({ ...(await turnpike(folder, ['replay', '--until', until, '--all', '--json'])), log: [] });
      expect(said.code).toBe(0);
    }
    expect(await there('replay', 'bundle', '--key', key, '--until', '@9999')).toMatchObject({ code: 2 });
    expect(await there('replay', 'bundle', '--key', key, '--until', 'x')).toMatchObject({ code: 2 });
  });

  test('prints the key that verified it if --key is missing', async () => {
    const { code, stderr } = await there('ledger', 'verify', 'bundle');
    expect(code).toBe(0);
    expect(stderr).toContain(`verified with the key in the bundle itself, ${key.split('+').slice(0, 2).join('+')}:`);
  });

  test('is readable by its owner only, and replaces no file', async () => {
    expect(statSync(join(folder, 'bundle')).mode & 0o777).toBe(0o600);
    const again = await turnpike(folder, ['ledger', 'export', 'bundle']);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('EEXIST') });
  });

  test('has an in-toto statement that lists the runs, the policies and the machines', () => {
    const { payload, payloadType } = JSON.parse(lines().at(-1) ?? '') as SignedStatement;
    const statement = JSON.parse(Buffer.from(payload, 'base64').toString('utf8')) as EvidenceStatement;
    expect(payloadType).toBe('application/vnd.in-toto+json');
    expect(statement).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: key.split('+')[0] }],
    });
    const { runs, policies, machines, entries } = statement.predicate;
    expect(runs.filter(({ run_kind }) => run_kind === 'agent')).toHaveLength(2);
    expect([policies.length, machines.length, entries]).toEqual([3, 1, lines().length - 2]);
  });

  test('can be written as the entries only', async () => {
    expect(await turnpike(folder, ['ledger', 'export', 'plain', '--entries'])).toMatchObject({ code: 0 });
    const texts = lines()
      .slice(1, -1)
      .map((line) => (JSON.parse(line) as EvidenceEntry).entry);
    expect(linesOf(readFileSync(join(folder, 'plain'), 'utf8'))).toEqual(texts);
  });
});

describe('a changed bundle', () => {
  const CHANGES: readonly [string, (all: string[]) => readonly string[]][] = [
    ['its first entry left out', (all) => all.toSpliced(1, 1)],
    ['an entry left out', (all) => all.toSpliced(9, 1)],
    ['its last entry left out', (all) => all.toSpliced(-2, 1)],
    ['its end left out', (all) => all.slice(0, -1)],
    ['half of it left out', (all) => all.slice(0, all.length / 2)],
    ['an entry twice', (all) => all.toSpliced(5, 0, all[5]!)],
    ['two entries swapped', (all) => all.with(5, all[6]!).with(6, all[5]!)],
    ['an entry changed', (all) => all.with(8, all[8]!.replace('prev', 'prew'))],
    ['content left out', (all) => all.map((line) => line.replace(/"artifacts":\[.+\]/, '"artifacts":[]'))],
    ['nothing in it', () => ['']],
    ['no JSON in it', () => ['rubbish', 'more', 'of it']],
  ];

  test.each(CHANGES)('with %s is rejected', async (_what, change) => {
    putLines(change(lines()));
    for (const command of [['ledger', 'verify'], ['replay'], ['replay', '--until', '@3']]) {
      const { code, stdout, stderr } = await there(...command, 'bundle', '--key', key);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^LEDGER_TAMPERED: this is not a complete evidence bundle/);
    }
  });

  test('with any changed byte of the header or statement is rejected', async () => {
    const whole = lines();
    for (const at of [0, whole.length - 1]) {
      const line = whole[at]!;
      for (let index = 0; index < line.length; index += 61) {
        const other = line[index] === 'A' ? 'B' : 'A';
        putLines(whole.with(at, line.slice(0, index) + other + line.slice(index + 1)));
        expect([at, index, (await there('ledger', 'verify', 'bundle', '--key', key)).code]).toEqual([at, index, 1]);
      }
    }
  });

  test('and one of another ledger are rejected with the key', async () => {
    const other = await ownLedger();
    const stranger = readFileSync(join(other, '.turnpike/keys/ledger.vkey'), 'utf8').trim();
    const { code, stderr } = await there('ledger', 'verify', 'bundle', '--key', stranger);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('not signed by this key') });
  });
});

test('a missing file and a folder are usage errors', async () => {
  expect(await there('ledger', 'verify', 'none', '--key', key)).toMatchObject({ code: 2 });
  expect(await there('replay', 'none')).toMatchObject({ code: 2 });
  expect(await there('ledger', 'verify', 'bundle', '--key', 'rubbish')).toMatchObject({ code: 2 });
});

describe('a lane that withholds content', () => {
  test('S4-62: its runs appear only as hashes, and the bundle is still verified', async () => {
    const home = await initialised();
    cpSync(shippedContract(), join(home, 'contract'), { recursive: true });
    const lanes = join(home, 'contract/policy/lanes.yaml');
    const text = readFileSync(lanes, 'utf8');
    const withheld = text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n');
    const runs = (): Promise<Said> =>
      turnpike(home, ['run', '-', '--contract', 'contract'], {
        stdin: [write('/sandbox/a.txt', 'in confidence'), finish()].join('\n'),
      });
    await runs();
    writeFileSync(lanes, withheld);
    expect(await turnpike(home, ['policy', 'pin', '--contract', 'contract'])).toMatchObject({ code: 0 });
    await runs();
    await turnpike(home, ['ledger', 'export', join(away, 'withheld')]);
    const [whole, kept] = ['"content":"', '"withheld":"lane"'].map(
      (what) => linesOf(readFileSync(join(away, 'withheld'), 'utf8')).filter((line) => line.includes(what)).length,
    );
    // Two openings with policies, and the first run; the payloads and the result of the second.
    expect([whole, kept]).toEqual([2 + 3, 3]);
    expect(readFileSync(join(away, 'withheld')).includes(Buffer.from('in confidence').toString('base64'))).toBe(false);
    const verified = await there('ledger', 'verify', 'withheld');
    expect(verified).toMatchObject({
      code: 4,
      stdout: expect.stringContaining('not checked: 3 contents'),
    });
    expect(verified.stdout).toMatch(/^by hash alone: /);
    expect(verified.stdout.match(/^not checked: @\d+ /gm)).toHaveLength(3);
    expect(await there('replay', 'withheld')).toMatchObject({
      code: 4,
      stdout: expect.stringContaining('a lane withholds its content'),
    });
    expect((await turnpike(home, ['replay'])).stdout).not.toContain('not recomputed');
  });
});

// `turnpike policy deny`: adding, listing, lifting and repairing rules, as a running process sees them.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { overlayFile, overlayFiles } from '../../../../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../../../../src/home/policy/overlay-writer.js';
import { homePaths } from '../../../../../src/home/home.js';
import { initialised, linesOf, put, tempFolder, turnpike, type Said } from '../../fake-io.js';

let folder: string;
let home: string;
beforeEach(async () => {
  folder = await initialised();
  home = join(folder, '.turnpike');
});

const deny = (...argv: string[]): Promise<Said> => turnpike(folder, ['policy', 'deny', ...argv]);
const json = (text: string): unknown => JSON.parse(text);
/** The overlay as a new process reads it. */
const inForce = () => overlayFile(overlayFiles(homePaths(home).overlay, homePaths(home).keys)).current();

describe('a new rule', () => {
  test('D1: is in force at once, and the command prints its id and epoch', async () => {
    const source = overlayFile(overlayFiles(join(home, 'overlay.json'), join(home, 'keys')));
    expect(source.current()).toBeNull();
    const { code, stdout, stderr } = await deny('--lane', 'SANDBOX_FILES', '--reason', 'it leaks');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe('deny-1 is in force from epoch 1 of the overlay\n');
    expect(source.current()).toEqual({
      epoch: 1,
      rules: [{ rule_id: 'deny-1', reason: 'it leaks', lane_id: 'SANDBOX_FILES' }],
    });
  });

  test('may match by every property of a request, and all of them must hold', async () => {
    const matchers = {
      role: 'SANDBOX_AGENT',
      lane: 'SANDBOX_FILES',
      action: 'WRITE_FILE',
      tool: 'sandbox.write_file',
      table: 'sandbox_files',
      case: 'case-1',
      run: 'run_abcdefgh.1',
      actor: 'agent one',
    };
    const argv = Object.entries(matchers).flatMap(([name, value]) => [`--${name}`, value]);
    const { code, stdout } = await deny(...argv, '--reason', 'why', '--json');
    expect(code).toBe(0);
    expect(json(stdout)).toEqual({ rule_id: 'deny-1', epoch: 1 });
    expect(inForce()).toEqual({
      epoch: 1,
      rules: [
        {
          rule_id: 'deny-1',
          reason: 'why',
          role_id: 'SANDBOX_AGENT',
          lane_id: 'SANDBOX_FILES',
          action: 'WRITE_FILE',
          tool: 'sandbox.write_file',
          table: 'sandbox_files',
          case_id: 'case-1',
          run_id: 'run_abcdefgh.1',
          actor_id: 'agent one',
        },
      ],
    });
  });

  test('creates the key folder in a home directory of an older version', async () => {
    rmSync(join(home, 'keys'), { recursive: true });
    expect(await deny('--lane', 'A', '--reason', 'why')).toMatchObject({ code: 0 });
    expect(statSync(join(home, 'keys')).mode & 0o777).toBe(0o700);
  });

  test('denies an action that is not built in too, with a warning', async () => {
    const { code, stderr } = await deny('--action', 'WRITE_FILES', '--reason', 'why');
    expect(code).toBe(0);
    expect(stderr).toContain('WRITE_FILES is not a built-in action');
    expect(inForce()).toMatchObject({ rules: [{ action: 'WRITE_FILES' }] });
    expect((await deny('--action', 'WRITE_FILE', '--reason', 'why')).stderr).toBe('');
  });

  test('the overlay has at most 64 rules', async () => {
    const rules = Array.from({ length: 64 }, (_, n) => ({
      rule_id: `deny-${n + 100}`,
      reason: 'why',
      lane_id: `L${n}`,
    }));
    const { overlay, keys } = homePaths(home);
    const written = { issued_at_utc: '2026-01-01T00:00:00.000Z', repair: false, rules: () => rules };
    await writeOverlay(overlayFiles(overlay, keys), written);
    expect(await deny('--lane', 'L64', '--reason', 'why')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('lift one first'),
    });
    expect(await deny('--lift', 'deny-107')).toMatchObject({ code: 0 });
    expect(await deny('--lane', 'L64', '--reason', 'why')).toMatchObject({ code: 0 });
    expect(inForce()).toMatchObject({ epoch: 3, rules: { length: 64 } });
  });

  test.each<[string, string[]]>([
    ['nothing at all', []],
    ['a reason for nothing', ['--reason', 'why']],
    ['no reason', ['--lane', 'A']],
    ['an empty reason', ['--lane', 'A', '--reason', '']],
    ['a reason of two lines', ['--lane', 'A', '--reason', 'a\nb']],
    ['a reason that is too long', ['--lane', 'A', '--reason', 'x'.repeat(201)]],
    ['a reason that is no text', ['--lane', 'A', '--reason', '\ud800']],
    ['an actor that is no text', ['--actor', 'abc\ud800', '--reason', 'why']],
    ['an empty lane', ['--lane', '', '--reason', 'why']],
    ['two lanes', ['--lane', 'A', '--lane', 'B', '--reason', 'why']],
    ['a lane that is none', ['--lane', 'A B', '--reason', 'why']],
    ['an action in lower case', ['--action', 'write_file', '--reason', 'why']],
    ['a run that is none', ['--run', 'run_abcdefgh.', '--reason', 'why']],
    ['a rule and --list', ['--list', '--lane', 'A', '--reason', 'why']],
    ['a rule and --lift', ['--lift', 'deny-1', '--lane', 'A', '--reason', 'why']],
    ['--list and --lift', ['--list', '--lift', 'deny-1']],
    ['--list and --repair', ['--list', '--repair']],
  ])('%s is wrong usage, and changes nothing', async (_what, argv) => {
    const { code, stdout, stderr, log } = await deny(...argv);
    expect({ code, stdout, log }).toEqual({ code: 2, stdout: '', log: [] });
    expect(stderr).toMatch(/^USAGE: [^\n]*see `turnpike help policy deny`\n$/);
    expect(existsSync(join(home, 'overlay.json'))).toBe(false);
    expect(existsSync(join(home, 'keys/overlay.key'))).toBe(false);
  });

  test('creates nothing in a folder that is not a home directory', async () => {
    const elsewhere = tempFolder();
    expect(await turnpike(elsewhere, ['policy', 'deny', '--lane', 'A', '--reason', 'why'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('turnpike init'),
    });
    expect(existsSync(join(elsewhere, '.turnpike'))).toBe(false);
  });

  test('an incomplete home directory with folders and keys only still counts as vacant', async () => {
    const begun = tempFolder();
    for (const name of ['artifacts', 'sandbox', 'keys']) mkdirSync(join(begun, '.turnpike', name), { recursive: true });
    expect(await turnpike(begun, ['init'])).toMatchObject({ code: 0 });
    const used = tempFolder();
    mkdirSync(join(used, '.turnpike/keys'), { recursive: true });
    put(used, '.turnpike/keys/overlay.key', 'x');
    expect(await turnpike(used, ['init'])).toMatchObject({ code: 2 });
  });
});

describe('--list', () => {
  test('reports that there is no overlay', async () => {
    expect(await deny('--list')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no overlay') });
    expect(json((await deny('--list', '--json')).stdout)).toEqual({ epoch: 0, rules: [] });
  });

  test('prints every rule as it was typed, escaped for a terminal', async () => {
    await deny('--lane', 'A', '--action', 'WRITE_FILE', '--reason', 'red \u001b[31m\u202e');
    await deny('--actor', 'x\u001by', '--reason', 'why');
    const { code, stdout } = await deny('--list');
    expect(code).toBe(0);
    const [head, ...rows] = linesOf(stdout);
    expect(head).toMatch(/^epoch 2 of \d{4}-\d\d-\d\dT[\d:.]+Z: 2 rules$/);
    expect(rows).toEqual([
      'deny-1  --lane A --action WRITE_FILE  red \\u001b[31m\\u202e',
      'deny-2  --actor x\\u001by              why',
    ]);
    expect(json((await deny('--list', '--json')).stdout)).toMatchObject({
      epoch: 2,
      issued_at_utc: expect.any(String),
      rules: [{ rule_id: 'deny-1' }, { rule_id: 'deny-2', actor_id: 'x\u001by' }],
    });
  });
});

describe('--lift', () => {
  test('D1: removes the rule with a new epoch, and never reuses its id', async () => {
    await deny('--lane', 'A', '--reason', 'why');
    const { code, stdout } = await deny('--lift', 'deny-1');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'deny-1 is lifted, by epoch 2 of the overlay\n' });
    expect(inForce()).toEqual({ epoch: 2, rules: [] });
    expect(json((await deny('--lane', 'A', '--reason', 'why', '--json')).stdout)).toEqual({
      rule_id: 'deny-3',
      epoch: 3,
    });
    expect(json((await deny('--lift', 'deny-3', '--json')).stdout)).toEqual({ lifted: 'deny-3', epoch: 4 });
  });

  test('an unknown rule is a usage error, and changes nothing', async () => {
    expect(await deny('--lift', 'deny-1')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^USAGE: .*--list/),
    });
    expect(existsSync(join(home, 'overlay.json'))).toBe(false);
    await deny('--lane', 'A', '--reason', 'why');
    expect(await deny('--lift', 'deny-2\u001b')).toMatchObject({
      code: 2,
      stderr: expect.not.stringContaining('\u001b'),
    });
    expect(inForce()).toMatchObject({ epoch: 1, rules: { length: 1 } });
  });
});

describe('an overlay that cannot be trusted', () => {
  beforeEach(async () => {
    await deny('--lane', 'A', '--reason', 'why');
    await deny('--lane', 'B', '--reason', 'why');
  });

  test.each<[string, () => void]>([
    ['damaged', () => writeFileSync(join(home, 'overlay.json'), 'junk')],
    ['missing', () => rmSync(join(home, 'overlay.json'))],
  ])('%s: exit code 1 for everything but --repair', async (_what, lose) => {
    lose();
    for (const argv of [['--list'], ['--lift', 'deny-1'], ['--lane', 'C', '--reason', 'why']]) {
      expect(await deny(...argv)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^POLICY_\w+: /),
      });
    }
    expect(inForce()).toMatchObject({ epoch: null });
    expect(await deny('--repair', '--lane', 'C', '--reason', 'why')).toMatchObject({ code: 0 });
    expect(inForce()).toMatchObject({ epoch: 3, rules: [{ lane_id: 'C' }] });
  });

  test('--repair alone writes a valid overlay', async () => {
    writeFileSync(join(home, 'overlay.json'), 'junk');
    const { code, stdout } = await deny('--repair');
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'the overlay is valid, with epoch 3 and 0 rules\n' });
    expect(json((await deny('--repair', '--json')).stdout)).toEqual({ epoch: 4, rules: [] });
    expect(inForce()).toEqual({ epoch: 4, rules: [] });
  });
});

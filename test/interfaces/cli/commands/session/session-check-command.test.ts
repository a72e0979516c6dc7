// `turnpike session check`: its output. What is a valid spec: test/features/sessions.

import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { SPEC_BYTES_MAX } from '../../../../../src/features/sessions/contract/session-spec.js';
import { toYaml } from '../../../../../src/core/policy/files/strict-yaml.js';
import { make, phase, spec, verify } from '../../../../fixtures/spec.js';
import { initialised, jsonLines, linesOf, put, tempFolder, turnpike, type Said } from '../../fake-io.js';

const check = (folder: string, ...argv: string[]): Promise<Said> => turnpike(folder, ['session', 'check', ...argv]);
const given = (text: string | Uint8Array): Promise<Said> =>
  turnpike(tempFolder(), ['session', 'check', '-'], { stdin: text });

const good = spec(phase('a', [make('a1'), verify('a2', ['a1'])], { reviewer: 'manual' }));

describe('a valid spec', () => {
  test('prints a summary with the hash of its structure', async () => {
    const folder = tempFolder();
    const said = await check(folder, put(folder, 'spec.yaml', toYaml(good)));
    expect(said).toMatchObject({ code: 0, stderr: '', log: [] });
    expect(linesOf(said.stdout)).toEqual([
      'ok: spec-1 has 1 phase, 2 tasks (1 to implement, 1 to verify) and 1 gate',
      expect.stringMatching(/^structure [0-9a-f]{64}$/),
    ]);
    expect(await check(folder, put(folder, 'spec.json', JSON.stringify(good)))).toEqual(said);
  });

  test('prints nothing with --json', async () => {
    expect(await given(JSON.stringify(good))).toMatchObject({ code: 0 });
    const folder = tempFolder();
    expect(await check(folder, '--json', put(folder, 'spec.json', JSON.stringify(good)))).toMatchObject({
      code: 0,
      stdout: '',
    });
  });

  test('needs no home directory, and leaves nothing behind', async () => {
    const folder = tempFolder();
    put(folder, 'spec.yaml', toYaml(good));
    await check(folder, 'spec.yaml', '--home', 'nowhere');
    expect(() => readFileSync(join(folder, 'nowhere/ledger.db'))).toThrow('ENOENT');
  });
});

describe('an invalid spec', () => {
  const bad = spec(
    phase('a', [make('a1', ['a2']), make('a2', ['a1']), verify('a3', [], { cwd: '/etc', lane: 'NOWHERE' })]),
    phase('b', [make('b1')]),
  );

  test('prints each finding with file, line and rule, and exits with 1', async () => {
    const folder = tempFolder();
    const { code, stdout } = await check(folder, put(folder, 'spec.yaml', toYaml(bad)));
    expect(code).toBe(1);
    expect(linesOf(stdout)).toEqual([
      'spec.yaml:11 task.cycle: tasks depend on one another in a circle: "a1" -> "a2" -> "a1"',
      'spec.yaml:25 folder.outside_sandbox: "/etc" is no folder inside "/sandbox/"',
      'spec.yaml:26 lane.unknown: the contract has no lane "NOWHERE"',
      'spec.yaml:27 warning: phase.unchecked: phase "b" has no verification and no gate: nothing checks it',
    ]);
  });

  test('prints the same findings as JSON lines with --json', async () => {
    const folder = tempFolder();
    const { code, stdout } = await check(folder, '--json', put(folder, 'spec.yaml', toYaml(bad)));
    expect(code).toBe(1);
    const findings = jsonLines(stdout);
    expect(findings[0]).toEqual({
      file: 'spec.yaml',
      line: 11,
      severity: 'error',
      rule: 'task.cycle',
      path: '/phases/0/tasks/0/depends_on',
      message: 'tasks depend on one another in a circle: "a1" -> "a2" -> "a1"',
    });
    expect(findings.map(({ line, severity }) => [line, severity])).toEqual([
      [11, 'error'],
      [25, 'error'],
      [26, 'error'],
      [27, 'warning'],
    ]);
  });

  test('C68 a verification without a command is a finding', async () => {
    const text = toYaml(good).replace(/ +command:\n( +- .*\n)+/, '');
    expect(await given(text)).toMatchObject({
      code: 1,
      stdout: 'stdin:11 task.no_command: verification "a2" has no command\n',
    });
  });

  test('exits with 0 if there are only warnings', async () => {
    const { code, stdout } = await given(toYaml(spec(phase('a', [make('a1')]))));
    expect(code).toBe(0);
    expect(linesOf(stdout).map((line) => line.split(' ', 2).join(' '))).toEqual([
      'stdin:5 warning:',
      'ok: spec-1',
      expect.stringMatching(/^structure /),
    ]);
  });

  test('escapes control characters for a terminal', async () => {
    const { code, stdout } = await given(toYaml({ ...good, '\u001b[2J\u202e': '\u0007' }));
    expect(code).toBe(1);
    expect(stdout).toBe('stdin:21 schema.unknown_key: /\\u{1b}[2J\\u{202e} is not known\n');
  });
});

describe('input that is not a spec', () => {
  test('is a finding', async () => {
    expect(await given(Uint8Array.of(0xff, 0xfe))).toMatchObject({
      code: 1,
      stdout: 'stdin:1 yaml.encoding: is not UTF-8; save it as UTF-8 without a byte order mark\n',
      stderr: '',
    });
  });

  test('does not read input beyond the size limit', async () => {
    const chunk = new Uint8Array(SPEC_BYTES_MAX / 2).fill(0x23);
    const endless = Readable.from(
      (function* () {
        for (let count = 0; count < 8; count += 1) yield chunk;
        throw new Error('nobody needs that much');
      })(),
    );
    expect(await turnpike(tempFolder(), ['session', 'check', '-'], { stdin: endless })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('yaml.too_large'),
    });
  });
});

describe('lanes', () => {
  const inLane = (lane: string): string => toYaml(spec(phase('a', [make('a1', [], { lane }), verify('a2')])));

  test('are those of the named contract folder', async () => {
    const folder = await initialised();
    const path = join(folder, 'contract/policy/lanes.yaml');
    put(folder, 'spec.yaml', inLane('SANDBOX_FILES'));
    expect(await check(folder, 'spec.yaml')).toMatchObject({ code: 0 });
    const renamed = (name: string): void => {
      const file = join('contract/policy', name);
      put(folder, file, readFileSync(join(folder, file), 'utf8').replaceAll('SANDBOX_FILES', 'WORKSHOP'));
    };
    ['lanes.yaml', 'roles.yaml', 'actions.yaml'].forEach(renamed);
    expect(readFileSync(path, 'utf8')).toContain('WORKSHOP');
    expect(await check(folder, 'spec.yaml')).toMatchObject({
      code: 1,
      stdout: 'spec.yaml:12 lane.unknown: the contract has no lane "SANDBOX_FILES"\n',
    });
    put(folder, 'spec.yaml', inLane('WORKSHOP'));
    expect(await check(folder, 'spec.yaml')).toMatchObject({ code: 0 });
    expect(await check(tempFolder(), join(folder, 'spec.yaml'), '--contract', join(folder, 'contract'))).toMatchObject({
      code: 0,
    });
  });

  test('are unknown for an invalid policy', async () => {
    const folder = await initialised();
    put(folder, 'contract/policy/lanes.yaml', 'version: v2\n');
    put(folder, 'spec.yaml', toYaml(good));
    expect(await check(folder, 'spec.yaml')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^POLICY_INVALID: /),
    });
  });
});

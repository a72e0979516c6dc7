// `turnpike agents sessions` and `reopen`, while another process has the home.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../../src/core/contract/json.js';
import type { ClientCheck, HookCaller } from '../../../../../src/features/hooks/gate/hook-gate.js';
import { Bench } from '../../../../fixtures/bench.js';
import { codingCaller, codingEdit } from '../../../../fixtures/coding-policy.js';
import { jsonLines, turnpike, type Said } from '../../fake-io.js';

let bench: Bench;
let caller: HookCaller;
let calls = 0;

beforeEach(async () => {
  safe = SAFE;
  bench = await Bench.open({ edit: codingEdit, hooks: true });
  caller = codingCaller(bench);
});
afterEach(() => bench.close());

const call = (...argv: string[]): Promise<Said> =>
  turnpike(bench.folder, [...argv, '--home', bench.home], { environment: { HOME: bench.folder } });
const SAFE = { version: '2.1.330', findings: [], uncompared: 'none' };
let safe: ClientCheck;
async function send(hook_event_name: string, more: JsonObject = {}): Promise<string> {
  const event = { session_id: 'session-1', cwd: caller.project, hook_event_name, ...more };
  return JSON.stringify(await bench.turnpike.hooks?.answer('claude-code', event, caller, safe));
}
const bash = (command: string, more: JsonObject = {}): Promise<string> =>
  send('PreToolUse', { tool_name: 'Bash', tool_input: { command }, tool_use_id: `toolu_${(calls += 1)}`, ...more });

describe('0064: turnpike agents sessions', () => {
  test('lists each session with its calls, and as JSON', async () => {
    expect(await call('agents', 'sessions')).toMatchObject({ code: 0, stdout: 'no sessions of coding agents\n' });
    await bench.turnpike.startAgent({ actor: 'other', role: 'CODING_AGENT', lane: 'CODING', case: 'project-1' });
    await send('SessionStart');
    await bash('git status');
    await bash('rm x');
    const { code, stdout } = await call('agents', 'sessions');
    expect({ code, lines: stdout.split('\n') }).toEqual({
      code: 0,
      lines: [
        'claude-code 2.1.330  session session-1  running',
        expect.stringMatching(/^ {2}run_[0-9a-f]{32}\.1$/),
        '  2 calls seen · 2 gated (1 allowed, 1 denied, 0 for approval) · 0 outcomes reported, 1 open · not compared: ' +
          '1 allowed calls without an outcome so far; what was added to the repository since the session began',
        '',
      ],
    });
    const { stdout: json } = await call('agents', 'sessions', '--json');
    expect(jsonLines(json)).toEqual([
      {
        name: 'claude-code',
        session: 'session-1',
        version: '2.1.330',
        run_id: expect.stringMatching(/^run_[0-9a-f]{32}\.1$/),
        state: 'running',
        project: expect.stringMatching(/^sha256:/),
        uncompared: 'none',
        subagents: [],
        missing: ['what was added to the repository since the session began'],
        coverage: {
          gated: 2,
          allowed: 1,
          denied: 1,
          approvals: 0,
          reported: 0,
          unknown: 0,
          open: 1,
          ungated: 0,
          undecided: 0,
        },
      },
    ]);
  });

  describe('0088: says that there are no gaps only where calls were compared', () => {
    const lineOf = async (project = caller.project): Promise<string> =>
      (await call('agents', 'sessions', '--project', project)).stdout.split('\n')[2] ?? '';
    const reportedCall = async (): Promise<void> => {
      await send('SessionStart');
      const more = { tool_name: 'Bash', tool_input: { command: 'git status' }, tool_use_id: 'toolu_x' };
      await send('PreToolUse', more);
      await send('PostToolUse', { ...more, tool_response: { stdout: '' } });
    };

    test('with the folder of its project, and with nothing in it that runs without a hook', async () => {
      await reportedCall();
      expect(await lineOf()).toMatch(/1 outcomes reported, 0 open · no gaps$/);
      expect(await lineOf(bench.folder)).toMatch(/not compared: what was added to the repository since/);
      mkdirSync(join(caller.project, '.claude/commands'), { recursive: true });
      writeFileSync(join(caller.project, '.claude/commands/x.md'), '');
      expect(await lineOf()).toMatch(
        /not compared: 1 commands, skills, .* run without a hook \(\.claude\/commands\/x\.md\)$/,
      );
    });

    test.each<[string | undefined, RegExp]>([
      [undefined, /not compared: nothing has looked at what its client runs without a hook$/],
      ['outcomes+version', /does not report outcomes.*; the hooks of its version were never measured$/],
      ['repository.3', /not compared: 3 commands, skills, agents and servers of the repository run without a hook$/],
      ['later_code', /not compared: an unknown reason \(later_code\)$/],
    ])('with %s recorded of its start', async (uncompared, line) => {
      safe = { version: '2.1.330', findings: [], ...(uncompared === undefined ? {} : { uncompared }) };
      await reportedCall();
      expect(await lineOf()).toMatch(line);
    });
  });

  test('text of a client cannot control the terminal', async () => {
    await send('SessionStart');
    await bash('git status', { agent_id: 'a\u009b[2J' });
    const { stdout } = await call('agents', 'sessions');
    expect(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(stdout)).toBe(false);
  });
});

describe('0064: turnpike agents reopen', () => {
  const person = (role: string): string[] => ['--actor', 'erika', '--role', role];

  test('lets a session go on that policy has ended, for a person only', async () => {
    await send('SessionStart');
    for (let denied = 0; denied < 10; denied += 1) await bash('rm x');
    expect(await bash('git status')).toContain('agents reopen');
    const [first] = jsonLines<{ run_id: string }>((await call('agents', 'sessions', '--json')).stdout);
    const run_id = first?.run_id ?? '';
    expect((await call('agents', 'reopen', run_id, ...person('CODING_AGENT'))).code).toBe(2);
    expect((await call('agents', 'reopen', 'run_none', ...person('ATTORNEY_ADMIN'))).code).toBe(1);
    expect(await bash('git status')).toContain('agents reopen');
    expect(await call('agents', 'reopen', run_id, ...person('ATTORNEY_ADMIN'))).toMatchObject({
      code: 0,
      stdout: `the session of ${run_id} goes on\n`,
    });
    expect(await bash('git status')).toContain('"permissionDecision":"allow"');
    expect(jsonLines((await call('agents', 'sessions', '--json')).stdout)).toMatchObject([
      { session: 'session-1', coverage: { denied: 10 } },
      { session: 'session-1', state: 'running', coverage: { allowed: 1, denied: 0 } },
    ]);
  });
});

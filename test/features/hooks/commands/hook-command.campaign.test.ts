// `turnpike hook` as a process of its own, with a real service (0064): it decides, and whatever fails stops the call.

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { CLIENTS } from '../../../../src/features/hooks/hook-event.js';
import { Bench } from '../../../fixtures/bench.js';
import { builtCommand } from '../../../fixtures/build.js';
import { codingEdit } from '../../../fixtures/coding-policy.js';

let folder: string;
let main: string;
let bench: Bench;
let project: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-hook-'));
  main = await builtCommand(folder);
  bench = await Bench.open({ edit: codingEdit, hooks: true });
  project = join(bench.folder, 'project');
  mkdirSync(project);
}, 120_000);
afterAll(async () => {
  await bench.close();
  rmSync(folder, { recursive: true });
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}
function run(client: string, input: string | Buffer, more: readonly string[] = [], home = bench.home): Promise<Ended> {
  const argv = [main, 'hook', client, '--home', home, '--project', project, '--case', 'project-1', ...more];
  const child: ChildProcess = spawn(process.execPath, argv, {
    env: { PATH: process.env['PATH'] ?? '', HOME: bench.folder },
  });
  let [out, err] = ['', ''];
  child.stdout?.on('data', (part: Buffer) => (out += part.toString()));
  child.stderr?.on('data', (part: Buffer) => (err += part.toString()));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input);
  return new Promise((done) => child.on('close', (code) => done({ code, out, err })));
}

const event = (command: string, id: string): JsonObject => ({
  session_id: 'session-1',
  cwd: project,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command },
  tool_use_id: id,
});

/** Opens the session as the command would, with a client that is safe. */
async function openSession(client: (typeof CLIENTS)[number], given: JsonObject, person: string): Promise<void> {
  const caller = { actor: client, person, role: 'CODING_AGENT', lane: 'CODING', case: 'project-1', project };
  await bench.turnpike.hooks?.answer(client, given, caller, { version: '2.1.330', findings: [] });
}

test('0064: the command decides a call, and reports its outcome', async () => {
  const start = { session_id: 'session-1', cwd: project, hook_event_name: 'SessionStart' };
  await openSession('claude-code', start, 'dana');
  const person = ['--person', 'dana'];
  const allowed = await run('claude-code', JSON.stringify(event('git status', 'toolu_1')), person);
  expect(allowed).toMatchObject({ code: 0, err: '' });
  expect(allowed.out).toContain('"permissionDecision":"allow"');
  const denied = await run('claude-code', JSON.stringify(event('rm -rf /', 'toolu_2')), person);
  expect(denied.out).toContain('call.not_allowed');
  const post = { ...event('git status', 'toolu_1'), hook_event_name: 'PostToolUse', tool_response: { stdout: 'ok' } };
  expect(await run('claude-code', JSON.stringify(post), person)).toMatchObject({ code: 0 });
  const outcomes: string[] = [];
  for await (const tree of bench.turnpike.ledger.treesAfter(-1))
    outcomes.push(...tree.runs.map(({ run_kind, status }) => `${run_kind} ${status}`));
  expect(outcomes).toContain('tool_gateway completed');
}, 60_000);

describe('0064: whatever fails, the process ends with 2 and a message', () => {
  test.each(CLIENTS)('%s: what is not JSON', async (client) => {
    const { code, err, out } = await run(client, '{not json');
    expect(code === 2 || out.includes('cancel') || out.includes('deny')).toBe(true);
    expect(`${out}${err}`).toMatch(/Turnpike/);
  });

  test('an unknown client, an unknown option, no home, no input', async () => {
    expect(await run('emacs', '{}')).toMatchObject({ code: 2 });
    expect((await run('emacs', '{}')).err).toMatch(/denied/);
    expect(await run('codex', '{}', ['--nope', 'x'])).toMatchObject({ code: 2 });
    expect((await run('codex', '{}', [], '/nowhere')).err).toMatch(/serve --hooks/);
    expect(await run('codex', '')).toMatchObject({ code: 2 });
    expect(await run('codex', Buffer.from([0xff, 0xfe]))).toMatchObject({ code: 2 });
    expect(await run('codex', 'x'.repeat(4_200_000))).toMatchObject({ code: 2 });
  }, 60_000);

  test.each<[string, (server: Server) => void]>([
    ['hangs', () => undefined],
    ['cuts the connection', (server) => server.on('connection', (socket) => socket.destroy())],
    ['answers with something else', (server) => server.on('connection', (socket) => socket.end('nonsense\n'))],
    [
      'gives no decision',
      (server) => server.on('connection', (socket) => socket.end('{"id":1,"ok":true,"result":{}}\n')),
    ],
  ])(
    'a service that %s',
    async (_name, behave) => {
      const home = mkdtempSync(join(tmpdir(), 'tp-'));
      const server = createServer();
      server.on('connection', (socket) => socket.on('error', () => undefined));
      behave(server);
      await new Promise<void>((done) => server.listen(join(home, 'control.sock'), done));
      try {
        const ended = await run(
          'claude-code',
          JSON.stringify(event('git status', 'toolu_9')),
          ['--timeout', '1500'],
          home,
        );
        expect(ended).toMatchObject({ code: 2, out: '' });
        expect(ended.err).toMatch(/denied/);
      } finally {
        await new Promise((done) => {
          server.close(done);
          server.unref();
          setTimeout(done, 100);
        });
        rmSync(home, { recursive: true });
      }
    },
    60_000,
  );
});

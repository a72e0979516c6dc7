// Hooks of coding agents over the control socket and over HTTP (0064).

import { mkdirSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { CountFiles } from '../../../../src/features/hooks/client-files/count-files.js';
import { Bench } from '../../../fixtures/bench.js';
import { codingEdit } from '../../../fixtures/coding-policy.js';
import { HookClient } from '../../../fixtures/hooks/hook-client.js';
import { HttpBench } from '../../../interfaces/http/http-harness.js';

const event = (name: string, command = 'git status'): JsonObject => ({
  session_id: 'session-1',
  cwd: '/',
  hook_event_name: name,
  ...(name === 'SessionStart' ? {} : { tool_name: 'Bash', tool_input: { command }, tool_use_id: 'toolu_1' }),
});

/** One request on the control socket of a home. */
function control(home: string, request: object): Promise<JsonObject> {
  return new Promise((done, refuse) => {
    const socket = createConnection(join(home, 'control.sock'));
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (!text.includes('\n')) return;
      socket.destroy();
      done(JSON.parse(text) as JsonObject);
    });
    socket.on('error', refuse);
    socket.write(`${JSON.stringify({ id: 1, op: 'hook', client: 'claude-code', ...request })}\n`);
  });
}

describe('0064: the control socket', () => {
  let bench: Bench;
  let caller: JsonObject;
  const open = async (hooks: boolean): Promise<void> => {
    bench = await Bench.open({ edit: codingEdit, hooks });
    const project = join(bench.folder, 'project');
    mkdirSync(project);
    caller = { actor: 'claude-code', role: 'CODING_AGENT', lane: 'CODING', case: 'project-1', project };
  };
  afterEach(() => bench.close());
  const ask = (given: JsonObject, check?: JsonObject): Promise<JsonObject> =>
    control(bench.home, { event: JSON.stringify(given), caller, ...(check === undefined ? {} : { check }) });

  test('asks for a check of the client, and then decides', async () => {
    await open(true);
    expect(await ask(event('PreToolUse'))).toMatchObject({ ok: true, result: { unchecked: true } });
    const { machine } = new HookClient('claude-code', bench.home);
    caller = { ...caller, project: machine.project };
    const found = { version: '2.1.330', findings: [] };
    const safe = { ...found, environment: { HOME: machine.home } };
    expect(await ask(event('PreToolUse'), { ...safe, findings: ['claude.other'] })).not.toMatchObject({
      result: { reply: { body: { hookSpecificOutput: { permissionDecision: 'allow' } } } },
    });
    expect(await ask(event('PreToolUse'), safe)).toMatchObject({
      result: { reply: { exit: 0, body: { hookSpecificOutput: { permissionDecision: 'allow' } } } },
    });
  });

  test.each(['', 'null', '[]', '{"a":1,"a":2}', '{"session_id":"x"', `${'['.repeat(100)}${']'.repeat(100)}`])(
    'denies what is no strict JSON object: %j',
    async (text) => {
      await open(true);
      expect(await control(bench.home, { event: text, caller })).toMatchObject({ result: { reply: { exit: 2 } } });
    },
  );

  test.each([true, false])(
    'refuses a request with other members, and closes the connection (hooks: %s)',
    async (hooks) => {
      await open(hooks);
      const request = { event: '{}', caller };
      const malformed = [
        { ...request, more: 1 },
        { ...request, client: 'emacs' },
        { event: '{}' },
        { ...request, caller: { ...caller, project: 'work' } },
      ];
      for (const each of malformed) {
        expect(await control(bench.home, each)).toMatchObject({ id: null, ok: false, error: { code: 'USAGE' } });
      }
    },
  );

  test('decides nothing in a process without hooks', async () => {
    await open(false);
    expect(await ask(event('PreToolUse'))).toMatchObject({ ok: false, error: { code: 'USAGE' } });
  });
});

describe('0064: HTTP', () => {
  let http: HttpBench;
  let token: string;
  beforeEach(async () => {
    http = await HttpBench.open({ edit: codingEdit, hooks: true });
    token = http.token({ actor: 'claude-one', role: 'CODING_AGENT' });
  });
  afterEach(() => http.close());
  const post = (given: unknown, query = '?project=/work&case=project-1', by = token): Promise<Response> =>
    http.ask(`/hooks/claude-code${query}`, by, {
      body: typeof given === 'string' ? given : JSON.stringify(given),
      headers: { 'content-type': 'application/json' },
    });
  const decisionOf = async (response: Response): Promise<string> => {
    const body = (await response.json()) as {
      readonly hookSpecificOutput?: { readonly permissionDecision: string; readonly permissionDecisionReason: string };
    };
    return `${response.status} ${body.hookSpecificOutput?.permissionDecision ?? ''} ${body.hookSpecificOutput?.permissionDecisionReason ?? ''}`;
  };

  test('denies a session whose client was not checked, and decides one that was', async () => {
    expect(await decisionOf(await post(event('PreToolUse')))).toMatch(/^200 deny .*was not checked/);
    const caller = { actor: 'claude-one', role: 'CODING_AGENT', lane: 'CODING', case: 'project-1', project: '/work' };
    const safe = { version: '2.1.330', findings: [] };
    await http.bench.turnpike.hooks?.answer('claude-code', event('SessionStart'), caller, safe);
    expect(await decisionOf(await post(event('PreToolUse')))).toMatch(/^200 allow/);
    expect(await decisionOf(await post({ ...event('PreToolUse', 'rm x'), tool_use_id: 'toolu_2' }))).toMatch(
      /^200 deny .*call\.not_allowed/,
    );
  });

  test('denies what cannot be read', async () => {
    expect(await decisionOf(await post('{not json'))).toMatch(/^200 deny/);
  });

  test('0088: counts what it denies without a record, by session if one is known', async () => {
    const { bench } = http;
    const environment = { HOME: bench.folder, XDG_DATA_HOME: join(bench.folder, 'data') };
    await http.server.close();
    http = await HttpBench.on(bench, { hookCounts: { home: bench.home, environment } });
    token = http.token({ actor: 'claude-one', role: 'CODING_AGENT' });
    const counts = new CountFiles(bench.home, environment);
    await post(event('PreToolUse'));
    await post(`${JSON.stringify(event('PreToolUse'))}}`);
    await post(event('PostToolUse'));
    expect(counts.read('claude-code', 'session-1')).toEqual({ refused: 1, unreadable: 1 });
    await post(event('PreToolUse'), '?project=/work&case=project-1', 'none');
    await post(event('PreToolUse'), '');
    // A response arrives before the server knows that it has ended.
    await http.server.close();
    expect(counts.read('claude-code', null)).toEqual({ refused: 1, unreadable: 1 });
  });

  test('refuses a request without a token, without a project, for another case, or for an unknown client', async () => {
    expect((await post(event('PreToolUse'), '?project=/work', 'none')).status).toBe(401);
    expect((await post(event('PreToolUse'), '')).status).toBe(422);
    const bound = http.token({ actor: 'claude-two', role: 'CODING_AGENT', case: 'project-2' });
    expect((await post(event('PreToolUse'), '?project=/work&case=project-1', bound)).status).toBe(403);
    expect((await http.ask('/hooks/emacs?project=/work', token, { body: '{}' })).status).toBe(404);
  });
});

// Proposals over MCP to a complete Turnpike: each call becomes one step, and nothing else.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CALLS_WAITING_MAX, type McpService } from '../../../src/interfaces/mcp/agent-connection.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';
import { call, clientOf, serviceOn, traces } from './mcp-harness.js';

let bench: Bench;
let service: McpService;
let client: Client;

beforeEach(async () => {
  bench = await Bench.open();
  service = serviceOn(bench);
  client = await clientOf(service);
});
afterEach(async () => {
  await client.close();
  await bench.close();
});

const error = (text: string): unknown => (JSON.parse(text) as { error: unknown }).error;
const fileOf = (name: string): string => readFileSync(join(bench.home, 'sandbox/case-local', name), 'utf8');

describe('propose', () => {
  const raw = (action: string, args: object): object => ({ proposal: JSON.stringify(proposal(action, args)) });

  test('S0-02 S0-72: a raw proposal passes the nine phases and has one response', async () => {
    const { structured, isError, text } = await call(
      client,
      'propose',
      raw('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }),
    );
    expect(structured).toEqual({
      proposal_id: expect.any(String),
      action: 'WRITE_FILE',
      outcome: 'SUCCESS',
      result: { bytes_written: 1 },
      error: null,
    });
    expect(isError).toBe(false);
    expect(JSON.parse(text)).toEqual(structured);
    expect(await traces(bench)).toMatchObject([{ outcome: 'SUCCESS', action: 'WRITE_FILE' }]);
    expect(fileOf('a.md')).toBe('x');
  });

  test('S0-51: a denied proposal is an error with only the code and the constant message', async () => {
    const { structured, isError } = await call(client, 'propose', raw('DELETE_FILE', { path: '/sandbox/a.sh' }));
    expect(isError).toBe(true);
    expect(structured).toMatchObject({
      outcome: 'DENIED',
      error: { error_code: 'POLICY_VIOLATION', message: 'File extension is not allowed for this action' },
    });
  });

  test.each([
    ['no JSON', 'not json', 'INVALID_JSON'],
    ['nothing', '', 'EMPTY_PAYLOAD'],
    ['a key twice', '{"action":"THINK","\\u0061ction":"DELETE_FILE"}', 'INVALID_JSON'],
    ['another shape', '{"action":"THINK"}', 'SCHEMA_VIOLATION'],
    ['more than the policy allows', `"${'x'.repeat(70_000)}"`, 'PAYLOAD_TOO_LARGE'],
    ['brackets', '['.repeat(40_000), 'INVALID_JSON'],
  ])('S0-19 S0-24 S0-33: %s is a step that fails', async (_why, text, error_code) => {
    const { structured, isError } = await call(client, 'propose', { proposal: text });
    expect({ structured, isError }).toMatchObject({
      isError: true,
      structured: { outcome: 'VALIDATION_ERROR', error: { error_code } },
    });
    expect(await traces(bench)).toMatchObject([{ outcome: 'VALIDATION_ERROR', error_code }]);
  });

  test.each([
    ['no proposal', {}],
    ['an object for a text', { proposal: { action: 'THINK' } }],
    ['an argument too many', { proposal: '{}', lane: 'EXPORT' }],
    ['a run that is no id', { proposal: '{}', run_id: '../x' }],
  ])('%s is no proposal: an error, and no step', async (_why, args) => {
    const { isError, text, structured } = await call(client, 'propose', args);
    expect({ isError, structured }).toEqual({ isError: true, structured: undefined });
    expect(error(text)).toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(await traces(bench)).toEqual([]);
  });
});

describe('the tool of an action', () => {
  test('S0-02: its call becomes a proposal of that action, and the reason is recorded', async () => {
    const args = { path: '/sandbox/a.md', content: 'Hello.\n', reasoning: 'To greet.' };
    expect(await call(client, 'write_file', args)).toMatchObject({
      isError: false,
      structured: { action: 'WRITE_FILE', outcome: 'SUCCESS' },
    });
    expect(await call(client, 'read_file', { path: '/sandbox/a.md' })).toMatchObject({
      structured: { result: { content: 'Hello.\n' } },
    });
    const [first, second] = await traces(bench);
    expect(first).toMatchObject({ step_index: 1, reasoning: { chars: 9 } });
    expect(second).toMatchObject({ step_index: 2 });
  });

  test.each([
    ['a path outside', { path: '/etc/passwd' }, 'INVALID_ARGS'],
    ['a way up', { path: '/sandbox/../../etc/passwd' }, 'INVALID_ARGS'],
    ['a null byte', { path: '/sandbox/a\u0000.md' }, 'INVALID_ARGS'],
    ['an argument too many', { path: '/sandbox/a.md', mode: '0777' }, 'INVALID_ARGS'],
    ['an argument of another type', { path: ['/sandbox/a.md'] }, 'INVALID_ARGS'],
    ['no argument', {}, 'INVALID_ARGS'],
    ['a reason that is none', { path: '/sandbox/a.md', reasoning: { toString: 'x' } }, 'SCHEMA_VIOLATION'],
    ['a reason that is too long', { path: '/sandbox/a.md', reasoning: 'x'.repeat(9_000) }, 'SCHEMA_VIOLATION'],
    ['what cannot be found', { path: '/sandbox/a.md' }, 'EXECUTION_ERROR'],
  ])('hostile arguments reach the phases as they are: %s', async (_why, args, error_code) => {
    const { isError, structured } = await call(client, 'read_file', args);
    expect({ isError, structured }).toMatchObject({ isError: true, structured: { error: { error_code } } });
    expect(await traces(bench)).toHaveLength(1);
  });

  test('a call of an unlisted tool is recorded as a proposal of CALL_TOOL, and is a protocol error with the response', async () => {
    const names = ['rm_rf', 'constructor', '__proto__', 'READ_FILE', 'tasks', '', '\u202ename', 'x'.repeat(5_000)];
    for (const name of names) {
      const calling = client.callTool({ name, arguments: { path: '/sandbox/a.md', run_id: 'x', reasoning: 7 } });
      await expect(calling).rejects.toMatchObject({
        code: -32_602,
        data: { run_id: expect.any(String), response: { action: 'CALL_TOOL', outcome: 'DENIED' } },
      });
    }
    const recorded = await traces(bench);
    expect(recorded.map(({ action, rule_id }) => [action, rule_id])).toEqual(
      names.map(() => ['CALL_TOOL', 'action.not_in_allowlist']),
    );
  });

  test('a call of an unlisted tool whose arguments are too large is recorded as an invalid proposal', async () => {
    const calling = client.callTool({ name: 'rm_rf', arguments: { text: 'x'.repeat(2_000_000) } });
    await expect(calling).rejects.toMatchObject({ code: -32_602 });
    expect(await traces(bench)).toMatchObject([{ outcome: 'VALIDATION_ERROR', action: null }]);
  });
});

describe('D4: a repeated call', () => {
  const write = { path: '/sandbox/a.md', content: 'x' };

  test('with the same key is executed once, and gets the same response', async () => {
    const first = await call(client, 'create_directory', { path: '/sandbox/d' }, 'key-1');
    const again = await call(client, 'create_directory', { path: '/sandbox/d' }, 'key-1');
    expect(first.isError).toBe(false);
    expect(again.structured).toEqual(first.structured);
    expect(await traces(bench)).toHaveLength(1);
    // Without the key it is another call, and finds that the folder exists.
    expect(await call(client, 'create_directory', { path: '/sandbox/d' })).toMatchObject({ isError: true });
  });

  test('at the same time is also executed once', async () => {
    const answers = await Promise.all(
      [1, 2, 3].map(() => call(client, 'create_directory', { path: '/sandbox/d' }, 'k')),
    );
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await traces(bench)).toHaveLength(1);
  });

  test('with the same key and its run, on another connection, gets the same response', async () => {
    const first = await call(client, 'create_directory', { path: '/sandbox/d' }, 'key-1');
    const other = await clientOf(service);
    const again = await call(other, 'create_directory', { path: '/sandbox/d', run_id: first.run_id }, 'key-1');
    expect(again.structured).toEqual(first.structured);
    expect(await traces(bench)).toHaveLength(1);
    await other.close();
  });

  test('with the same key on another connection gets the same response without the run id', async () => {
    const first = await call(client, 'create_directory', { path: '/sandbox/d' }, 'key-1');
    const again = await call(await clientOf(service), 'create_directory', { path: '/sandbox/d' }, 'key-1');
    expect(again).toEqual(first);
    const { text } = await call(await clientOf(service), 'create_directory', { path: '/sandbox/e' }, 'key-1');
    expect(text).toContain('IDEMPOTENCY_CONFLICT');
    expect((await traces(bench)).map(({ outcome }) => outcome)).toEqual(['SUCCESS', 'DENIED']);
  });

  test('with the same key but other arguments is refused, and nothing is executed', async () => {
    await call(client, 'write_file', write, 'key-1');
    const { text } = await call(client, 'write_file', { ...write, content: 'y' }, 'key-1');
    expect(error(text)).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(fileOf('a.md')).toBe('x');
  });

  test('after its run has ended still gets its response', async () => {
    const first = await call(client, 'finish', { response: 'done' }, 'key-1');
    expect((await call(client, 'finish', { response: 'done' }, 'key-1')).structured).toEqual(first.structured);
    expect(await traces(bench)).toHaveLength(1);
  });

  test.each([
    ['nothing', ''],
    ['257 characters', 'x'.repeat(257)],
    ['a number', 7],
    ['an object', {}],
  ])('%s is not a valid key', async (_what, key) => {
    await expect(call(client, 'think', {}, key as string)).rejects.toMatchObject({ code: -32_602 });
  });
});

describe('runs', () => {
  test('S0-15: a connection has one run of its own, started with its first proposal', async () => {
    expect((await bench.entries()).length).toBe(0);
    const [first, second] = [await call(client, 'think'), await call(client, 'think')];
    expect(first.run_id).toBe(second.run_id);
    const other = await clientOf(service);
    expect((await call(other, 'think')).run_id).not.toBe(first.run_id);
    await other.close();
  });

  test('D3: the run of a connection is remote', async () => {
    const { run_id } = await call(client, 'think');
    const created = (await bench.entries()).find(({ type, body }) => type === 'run_created' && body.run_id === run_id);
    expect(created?.body).toMatchObject({ run_kind: 'agent', link: 'remote' });
  });

  test('concurrent calls are executed in their order', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `note ${i}`);
    await Promise.all(names.map((content) => call(client, 'write_file', { path: '/sandbox/a.md', content })));
    expect(fileOf('a.md')).toBe('note 19');
    expect((await traces(bench)).map(({ step_index }) => step_index)).toEqual(names.map((_, i) => i + 1));
  });

  test('refuses calls beyond 64 waiting ones, and they become no steps', async () => {
    const answers = await Promise.all(Array.from({ length: CALLS_WAITING_MAX + 6 }, () => call(client, 'think')));
    const busy = answers.filter(({ structured }) => structured === undefined);
    expect(busy).toHaveLength(6);
    expect(error(busy[0]!.text)).toMatchObject({ code: 'AGENT_BUSY' });
    expect(await traces(bench)).toHaveLength(CALLS_WAITING_MAX);
  });

  test('after FINISH the next proposal starts another run; a named run stays ended', async () => {
    const { run_id } = await call(client, 'finish', { response: 'done' });
    expect(error((await call(client, 'think', { run_id })).text)).toMatchObject({ code: 'RUN_ENDED' });
    const next = await call(client, 'think');
    expect(next).toMatchObject({ isError: false });
    expect(next.run_id).not.toBe(run_id);
  });

  test.each([
    ['a lane that there is not', false, { lane: 'NO_LANE' }],
    ['a policy without pins', true, {}],
  ] as const)(
    'an agent that policy denies gets that response, and does not open one run after another: %s',
    async (_why, unpinned, agent) => {
      const other = await Bench.open({ unpinned });
      const denied = await clientOf(serviceOn(other, { agent }));
      for (let i = 0; i < 3; i += 1)
        expect(error((await call(denied, 'think')).text)).toMatchObject({ code: 'RUN_ENDED' });
      const opened = (await other.entries()).filter(({ type, body }) => type === 'input' && body.kind === 'open');
      expect(opened).toHaveLength(1);
      await denied.close();
      await other.close();
    },
  );

  test.each([
    ['an attached run', { link: 'attached' }],
    ['of another actor', { actor: 'somebody' }],
    ['of another case', { case: 'case-0002' }],
  ] as const)('to know the id of a run is not enough: %s', async (_why, options) => {
    const agent = await bench.turnpike.startAgent({ link: 'remote', ...options });
    const { text } = await call(client, 'think', { run_id: agent.run_id });
    expect(error(text)).toMatchObject({ code: 'RUN_UNKNOWN' });
    expect(await traces(bench)).toEqual([]);
  });

  test.each([['run_000000000000000000000.1'], ['nothing'], ['run_x.1.1']])(
    'refuses an unknown run %s',
    async (run_id) => {
      const { isError } = await call(client, 'think', { run_id });
      expect(isError).toBe(true);
      expect(await traces(bench)).toEqual([]);
    },
  );
});

test('S2-10: with the exposure `decision` the response contains only the decision', async () => {
  const narrow = await clientOf(serviceOn(bench, { agent: { exposure: 'decision' } }));
  await narrow.listTools();
  expect(await call(narrow, 'think')).toMatchObject({ isError: false, structured: { decision: 'ALLOW', result: {} } });
  const denied = await call(narrow, 'delete_file', { path: '/sandbox/a.sh' });
  expect(denied).toMatchObject({ isError: true, structured: { decision: 'DENY', result: null } });
  expect(denied.text).not.toContain('extension');
  await narrow.close();
});

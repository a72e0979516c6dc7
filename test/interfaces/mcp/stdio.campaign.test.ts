// MCP over two streams, one message per line.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { MESSAGE_BYTES_MAX } from '../../../src/interfaces/mcp/read-message.js';
import { serveStdio, type StdioEnding } from '../../../src/interfaces/mcp/serve-stdio.js';
import { Bench } from '../../fixtures/bench.js';
import { serviceOn, traces } from './mcp-harness.js';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

interface Answer {
  readonly id?: unknown;
  readonly result?: { readonly structuredContent?: object; readonly _meta?: Record<string, unknown> };
  readonly error?: { readonly code: number; readonly message: string };
}

const note = (): string => join(bench.folder, 'mcp-run');

/** A server, and its output. */
function served(over: { write?: (text: string) => Promise<void> } = {}) {
  const input = new PassThrough();
  const said: Answer[] = [];
  const stop = new AbortController();
  let heard = (): void => undefined;
  const write = (text: string): Promise<void> => {
    expect(text.endsWith('\n')).toBe(true);
    said.push(JSON.parse(text) as Answer);
    heard();
    return Promise.resolve();
  };
  const left = serveStdio(serviceOn(bench), { input, write, stop: stop.signal, note: note(), ...over });
  const until = async (count: number): Promise<void> => {
    while (said.length < count) await new Promise<void>((resolve) => (heard = resolve));
  };
  return { input, said, stop, left, until };
}

const line = (message: object | string): string =>
  `${typeof message === 'string' ? message : JSON.stringify(message)}\n`;
const request = (id: unknown, method: string, params: object = {}): object => ({ jsonrpc: '2.0', id, method, params });
const greeting = request(0, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
});
const calling = (id: unknown, name: string, args: object = {}): object =>
  request(id, 'tools/call', { name, arguments: args });

/**
 * Initializes, sends all messages at once, and closes the input. @returns the responses, and how the transport ended
 */
async function said(...messages: (object | string | Uint8Array)[]): Promise<{ answers: Answer[]; left: StdioEnding }> {
  const server = served();
  server.input.write(line(greeting));
  await server.until(1);
  for (const message of messages) server.input.write(message instanceof Uint8Array ? message : line(message));
  server.input.end();
  return { left: await server.left, answers: server.said };
}

test('a client that sends everything at once and closes its input gets all responses, and its run ends', async () => {
  const { answers, left } = await said(
    calling('a', 'think'),
    calling('b', 'write_file', { path: '/sandbox/a.md', content: 'x' }),
  );
  expect(left).toBe('end');
  expect(answers.map(({ id }) => id)).toEqual([0, 'a', 'b']);
  expect(answers[2]?.result?.structuredContent).toMatchObject({ outcome: 'SUCCESS' });
  const run_id = answers[2]?.result?._meta?.['turnpike/run-id'] as string;
  expect(await bench.turnpike.ledger.run(run_id)).toMatchObject({ outcome: 'completed:end_of_input' });
});

test('counts requests with the same id separately, and stops reading at 256 without a response', async () => {
  const writing: string[] = [];
  const server = served({
    write: (text) => {
      writing.push(text);
      return new Promise(() => undefined);
    },
  });
  for (let n = 0; n < 1_000; n += 1) server.input.write(line(request('same', 'ping')));
  // The client does not read the responses: writes wait, and input is not read.
  for (let n = 0; n < 50; n += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(writing).toHaveLength(256);
  server.stop.abort();
  await server.left;
});

test('after cancelling one of two requests with the same id, the other counts until its response', async () => {
  const server = served();
  server.input.write(line(greeting));
  await server.until(1);
  const twice = request('twice', 'tools/list');
  server.input.write(line(twice) + line(twice));
  server.input.write(line({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'twice' } }));
  server.input.write(line(calling('after', 'think')));
  server.input.end();
  expect(await server.left).toBe('end');
  expect(server.said.map(({ id }) => id)).toContain('after');
});

test('sends no unsolicited messages', async () => {
  const { answers } = await said(
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'nonsense' },
  );
  expect(answers).toHaveLength(1);
  // Nor does the server announce notifications about changes of the tool list.
  expect(answers[0]?.result).toMatchObject({
    capabilities: { tools: { listChanged: false } },
    serverInfo: { name: 'turnpike' },
  });
});

describe('an unreadable message gets an error response, and the next message is handled', () => {
  const PARSE_ERROR = -32_700;
  test.each<[string, string | Uint8Array, number, unknown]>([
    ['no JSON', 'hello', PARSE_ERROR, null],
    ['nothing', '', PARSE_ERROR, null],
    ['a key twice', '{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}', PARSE_ERROR, 7],
    [
      'a prototype among the arguments',
      line(calling('x', 'think')).replace('"arguments":{}', '"arguments":{"__proto__":{}}').trim(),
      PARSE_ERROR,
      'x',
    ],
    ['a lone surrogate', '{"jsonrpc":"2.0","id":"s","method":"\\udc00"}', PARSE_ERROR, 's'],
    [
      'a thousand brackets',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(1_000)}${']'.repeat(1_000)}}`,
      PARSE_ERROR,
      1,
    ],
    ['a number that is none', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}', PARSE_ERROR, null],
    ['bytes that are no text', Buffer.from([0x22, 0xff, 0x22, 0x0a]), PARSE_ERROR, null],
    ['a byte order mark', Buffer.from('\ufeff{}\n'), PARSE_ERROR, null],
    ['no message', '{"hello":1}', -32_600, null],
    ['a list', '[]', -32_600, null],
    ['an id that is none', '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32_600, null],
  ])('%s', async (_what, message, code, id) => {
    const { answers, left } = await said(message, request('after', 'ping'));
    expect(left).toBe('end');
    expect(answers[1]).toMatchObject({ jsonrpc: '2.0', id, error: { code } });
    expect(answers[2]).toMatchObject({ id: 'after', result: {} });
    expect(await traces(bench)).toEqual([]);
  });

  test('an unknown method', async () => {
    const { answers } = await said(request(1, 'resources/list'), request(2, 'rm -rf /'));
    expect(answers.slice(1)).toMatchObject([{ error: { code: -32_601 } }, { error: { code: -32_601 } }]);
  });
});

test('a message that is too large ends the connection; the run stays active', async () => {
  const server = served();
  server.input.write(line(greeting));
  server.input.write(line(calling(1, 'think')));
  await server.until(2);
  server.input.write('x'.repeat(MESSAGE_BYTES_MAX + 1));
  expect(await server.left).toBe('too_large');
  expect(server.said[2]).toMatchObject({ id: null, error: { code: -32_600 } });
  const run_id = server.said[1]?.result?._meta?.['turnpike/run-id'] as string;
  expect(await bench.turnpike.agent(run_id)).not.toBeNull();
});

test('ends when the reader is gone', async () => {
  const server = served({ write: () => Promise.reject(new Error('EPIPE')) });
  server.input.write(line(greeting));
  expect(await server.left).toBe('deaf');
});

test('does not wait for the response of a cancelled request', async () => {
  const server = served();
  server.input.write(line(greeting));
  server.input.write(line(calling(1, 'think')));
  server.input.write(line({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }));
  server.input.end();
  expect(await server.left).toBe('end');
});

describe('D3: the run of an agent whose server was stopped', () => {
  const think = async (server: ReturnType<typeof served>, id = 1): Promise<string> => {
    server.input.write(line(greeting));
    server.input.write(line(calling(id, 'think')));
    await server.until(2);
    return server.said[1]?.result?._meta?.['turnpike/run-id'] as string;
  };
  const stopped = async (server: ReturnType<typeof served>): Promise<void> => {
    server.stop.abort();
    expect(await server.left).toBe('closed');
  };

  test('is continued by the next server', async () => {
    const first = served();
    const run_id = await think(first);
    expect([readFileSync(note(), 'utf8'), statSync(note()).mode & 0o777]).toEqual([`${run_id}\n`, 0o600]);
    await stopped(first);
    const second = served();
    expect(await think(second)).toBe(run_id);
    await stopped(second);
  });

  test('is not continued after it has ended', async () => {
    const first = served();
    const run_id = await think(first);
    first.input.end();
    await first.left;
    const second = served();
    expect(await think(second)).not.toBe(run_id);
    await stopped(second);
  });

  test.each([
    ['nothing', () => writeFileSync(note(), '')],
    ['what is no run', () => writeFileSync(note(), '../../etc/passwd')],
    ['a run that there is not', () => writeFileSync(note(), 'run_000000000000000000000.1')],
    ['more than a run', () => writeFileSync(note(), 'x'.repeat(1_000))],
    ['a link', () => symlinkSync('/etc/passwd', note())],
    ['a file that others may write', () => writeFileSync(note(), 'run_000000000000000000001.1', { mode: 0o666 })],
  ])('a note that holds %s is none', async (_what, write) => {
    write();
    const server = served();
    expect(await think(server)).toMatch(/^run_/);
    await stopped(server);
  });

  test('of another agent is not continued', async () => {
    const agent = await bench.turnpike.startAgent({ link: 'remote', actor: 'somebody' });
    writeFileSync(note(), agent.run_id);
    const server = served();
    expect(await think(server)).not.toBe(agent.run_id);
    await stopped(server);
  });
});

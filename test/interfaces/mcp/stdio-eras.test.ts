// Both generations of the protocol over stdio, message by message: the first message determines which one is spoken.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { type StdioEnding, serveStdio } from '../../../src/interfaces/mcp/serve-stdio.js';
import { splitLines } from '../../../src/host/control/split-lines.js';
import { Bench } from '../../fixtures/bench.js';
import { serviceOn, traces } from './mcp-harness.js';

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

let bench: Bench;
let input: PassThrough;
let ended: Promise<StdioEnding>;
let answers: AsyncIterator<Uint8Array>;
beforeEach(async () => {
  bench = await Bench.open();
  input = new PassThrough();
  const output = new PassThrough();
  answers = splitLines(output, 1_000_000)[Symbol.asyncIterator]();
  const write = (text: string): Promise<void> => Promise.resolve(void output.write(text));
  ended = serveStdio(serviceOn(bench), { input, write, stop: new AbortController().signal, note: null });
});
afterEach(async () => {
  input.end();
  expect(await ended).toBe('end');
  await bench.close();
});

const send = (message: object): void => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const next = async (): Promise<unknown> =>
  JSON.parse(Buffer.from(((await answers.next()) as { value: Uint8Array }).value).toString());
const ask = (message: object): Promise<unknown> => {
  send(message);
  return next();
};
const initialize = (protocolVersion: string): object => ({
  id: 1,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});
const think = { name: 'think', arguments: {} };

test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
  'a client that begins with initialize speaks protocol %s',
  async (version) => {
    expect(await ask(initialize(version))).toMatchObject({ id: 1, result: { protocolVersion: version } });
    send({ method: 'notifications/initialized' });
    const answer = await ask({ id: 2, method: 'tools/call', params: think });
    expect(answer).toMatchObject({ id: 2, result: { structuredContent: { outcome: 'SUCCESS' } } });
    expect(answer).not.toHaveProperty('result.resultType');
    // Within a connection, the id identifies the call.
    await ask({ id: 2, method: 'tools/call', params: think });
    expect(await traces(bench)).toHaveLength(1);
  },
);

test('a client that asks for the versions may still initialize', async () => {
  const discovered = await ask({ id: 'd', method: 'server/discover', params: { _meta: META } });
  expect(discovered).toMatchObject({ id: 'd', result: { supportedVersions: ['2026-07-28'] } });
  expect(await ask(initialize('2025-11-25'))).toMatchObject({ result: { protocolVersion: '2025-11-25' } });
});

test('protocol 2026-07-28: the id of a request identifies nothing, and initialize is refused', async () => {
  for (const count of [1, 2]) {
    const answer = await ask({ id: 7, method: 'tools/call', params: { ...think, _meta: META } });
    expect(answer).toMatchObject({ id: 7, result: { resultType: 'complete' } });
    expect(await traces(bench)).toHaveLength(count);
  }
  expect(await ask(initialize('2025-11-25'))).toMatchObject({ error: { code: -32_022 } });
  expect(await ask({ id: 8, method: 'tools/call', params: think })).toMatchObject({ error: { code: -32_602 } });
  expect(await traces(bench)).toHaveLength(2);
});

test('protocol 2026-07-28: at most 16 subscriptions, and none of them delays the end', async () => {
  const params = { _meta: META, notifications: { toolsListChanged: true } };
  for (let id = 0; id < 16; id += 1) {
    expect(await ask({ id, method: 'subscriptions/listen', params })).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: {} },
    });
  }
  const refused = await ask({ id: 16, method: 'subscriptions/listen', params });
  expect(refused).toMatchObject({ id: 16, error: { message: 'Subscription limit reached' } });
  input.end();
  await ended;
});

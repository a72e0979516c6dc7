// Response streams over HTTP: each ends, whatever becomes of its request, so that a client cannot exhaust the
// connections of the server with abandoned requests.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { drawToken } from '../../../src/stores/keys/access-token.js';
import { createDeferred, type DeferredPromise } from '../../../src/runtime/deferred.js';
import { serveHttp, type McpHttpServer } from '../../../src/interfaces/mcp/serve-http.js';
import { Bench } from '../../fixtures/bench.js';
import { CASE_AGENT, serviceEdit, slowTool } from '../../fixtures/service.js';
import { openSession, postTo, serviceOn, traces } from './mcp-harness.js';

const token = drawToken();
let bench: Bench;
let server: McpHttpServer;
let entered: DeferredPromise<null>;
let release: DeferredPromise<null>;

beforeEach(async () => {
  [entered, release] = [createDeferred<null>(), createDeferred<null>()];
  const slow = slowTool(entered, release);
  bench = await Bench.open({ edit: serviceEdit, tools: [slow] });
  const service = serviceOn(bench, { agent: CASE_AGENT, tools: [slow] });
  server = await serveHttp(service, { host: '127.0.0.1', port: 0, token });
});
afterEach(async () => {
  release.resolve(null);
  await server.close();
  await bench.close();
});

const post = (message: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  postTo({ url: server.url, token }, { jsonrpc: '2.0', ...message }, headers);

async function greeted(): Promise<Readonly<Record<string, string>>> {
  const session = { 'mcp-session-id': await openSession({ url: server.url, token }) };
  await post({ method: 'notifications/initialized' }, session);
  return session;
}

const SLOW = { id: 1, method: 'tools/call', params: { name: 'slow.tool', arguments: {} } };

test('a cancelled request gets no response, and its stream ends', async () => {
  const session = await greeted();
  const answer = await post(SLOW, session);
  await entered.promise;
  await post({ method: 'notifications/cancelled', params: { requestId: 1 } }, session);
  expect(await answer.text()).toBe('');
});

test('of two waiting requests with the same id, the later gets the response and the earlier stream ends', async () => {
  const session = await greeted();
  const first = await post(SLOW, session);
  await entered.promise;
  const again = await post(SLOW, session);
  release.resolve(null);
  expect(await again.text()).toContain('SUCCESS');
  expect(await first.text()).toBe('');
  expect(await traces(bench)).toHaveLength(1);
});

test('refuses a batch of messages as over stdio, and executes none of them', async () => {
  const session = await greeted();
  const think = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'think', arguments: {} } };
  const batch = [1, 2].map((id) => ({ ...think, id }));
  const answer = await postTo({ url: server.url, token }, batch, session);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: -32_600 } });
  expect(await traces(bench)).toEqual([]);
});

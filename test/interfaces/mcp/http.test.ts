// MCP over HTTP, tested with the official client.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { drawToken } from '../../../src/stores/keys/access-token.js';
import { UsageError } from '../../../src/core/errors.js';
import { serveHttp, type McpHttpServer } from '../../../src/interfaces/mcp/serve-http.js';
import { createDeferred } from '../../../src/runtime/deferred.js';
import { Bench } from '../../fixtures/bench.js';
import { CASE_AGENT, serviceEdit, slowTool } from '../../fixtures/service.js';
import { call, postTo, serviceOn, traces } from './mcp-harness.js';

const token = drawToken();
let bench: Bench;
let server: McpHttpServer;

beforeEach(async () => {
  bench = await Bench.open();
  server = await serveHttp(serviceOn(bench), { host: '127.0.0.1', port: 0, token, sessionsMax: 3 });
});
afterEach(async () => {
  await server.close();
  await bench.close();
});

interface Connected {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

async function connected(url = server.url): Promise<Connected> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  return { client, transport };
}

const post = (message: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  postTo({ url: server.url, token }, message, headers);

test('refuses a request over a limit with a problem document, before it reaches a session', async () => {
  await server.close();
  const admission = { requestsPerConnection: 0 };
  server = await serveHttp(serviceOn(bench), { host: '127.0.0.1', port: 0, token, admission });
  const answer = await post({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([429, 'application/problem+json']);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await answer.json()).toMatchObject({ code: 'TOO_MANY_REQUESTS' });
});

test('the official client lists and calls tools, and its run ends when it closes the session', async () => {
  const { client, transport } = await connected();
  expect(client.getServerVersion()).toMatchObject({ name: 'turnpike' });
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('write_file');
  const { run_id, structured } = await call(client, 'write_file', { path: '/sandbox/a.md', content: 'x' });
  expect(structured).toMatchObject({ outcome: 'SUCCESS' });
  expect(await client.ping()).toEqual({});
  await transport.terminateSession();
  await client.close();
  expect(await bench.turnpike.ledger.run(run_id as string)).toMatchObject({
    status: 'completed',
    outcome: 'completed:end_of_input',
  });
});

test('D3: the run of a client that only disconnected stays active, and can be continued by its id', async () => {
  const gone = await connected();
  const { run_id } = await call(gone.client, 'think');
  await gone.client.close();
  const { client } = await connected();
  const again = await call(client, 'think', { run_id });
  expect(again).toMatchObject({ isError: false, run_id });
  await client.close();
});

test('D4: a repeated request of a session is executed once', async () => {
  const { client, transport } = await connected();
  const headers = { 'mcp-session-id': transport.sessionId!, 'mcp-protocol-version': '2025-11-25' };
  const message = {
    jsonrpc: '2.0',
    id: 'call-7',
    method: 'tools/call',
    params: { name: 'create_directory', arguments: { path: '/sandbox/d' } },
  };
  const [first, again] = [await (await post(message, headers)).text(), await (await post(message, headers)).text()];
  expect(first).toContain('SUCCESS');
  expect(again).toBe(first);
  expect(await traces(bench)).toHaveLength(1);
  // The same id with other arguments is another request, even if the client violates the protocol.
  const other = { ...message, params: { name: 'create_directory', arguments: { path: '/sandbox/e' } } };
  expect(await (await post(other, headers)).text()).not.toBe(first);
  expect(await traces(bench)).toHaveLength(2);
  await client.close();
});

describe('sessions', () => {
  test('an unknown session is 404, and no session is 400', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect((await post(list, { 'mcp-session-id': 'x' })).status).toBe(404);
    expect((await post(list)).status).toBe(400);
    const remove = { method: 'DELETE', headers: { authorization: `Bearer ${token}` } };
    expect((await fetch(server.url, remove)).status).toBe(400);
  });

  test('an ended session is 404', async () => {
    const { client, transport } = await connected();
    const id = transport.sessionId!;
    await transport.terminateSession();
    await client.close();
    expect((await post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'mcp-session-id': id })).status).toBe(404);
  });

  test('at the limit, opening a session closes the one that was idle longest', async () => {
    const all = [await connected(), await connected(), await connected()];
    await all[0]!.client.ping();
    const fourth = await connected();
    const known = await Promise.all(
      all.map(({ client }) =>
        client.ping().then(
          () => true,
          () => false,
        ),
      ),
    );
    expect(known).toEqual([true, false, true]);
    for (const { client } of [...all, fourth]) await client.close();
  });

  test('an unknown protocol version is 400', async () => {
    const { client, transport } = await connected();
    const headers = { 'mcp-session-id': transport.sessionId!, 'mcp-protocol-version': '1999-01-01' };
    expect((await post({ jsonrpc: '2.0', id: 1, method: 'ping' }, headers)).status).toBe(400);
    await client.close();
  });
});

test('closing waits for the responses in flight, and accepts no new requests', async () => {
  const entered = createDeferred<null>();
  const release = createDeferred<null>();
  const slow = slowTool(entered, release);
  const other = await Bench.open({ edit: serviceEdit, tools: [slow] });
  const service = serviceOn(other, { agent: CASE_AGENT, tools: [slow] });
  const slowServer = await serveHttp(service, { host: '127.0.0.1', port: 0, token });
  const { client } = await connected(slowServer.url);
  const answer = call(client, 'slow.tool');
  await entered.promise;
  const closed = slowServer.close();
  await expect(fetch(slowServer.url)).rejects.toThrow();
  release.resolve(null);
  expect(await answer).toMatchObject({ structured: { outcome: 'SUCCESS' } });
  await closed;
  await client.close();
  await other.close();
});

test('an address in use is a usage error', async () => {
  const { port } = new URL(server.url);
  await expect(serveHttp(serviceOn(bench), { host: '127.0.0.1', port: Number(port), token })).rejects.toThrow(
    UsageError,
  );
});

// Protocol 2026-07-28 over HTTP, with the official client: no request depends on an earlier one, and any process on the
// same store may answer it. Two services on one store stand for two processes; test/e2e has the processes.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawToken } from '../../../src/stores/keys/access-token.js';
import { IDEMPOTENCY_KEY } from '../../../src/core/contract/idempotency-key.js';
import { createDeferred } from '../../../src/runtime/deferred.js';
import type { McpOptions } from '../../../src/interfaces/mcp/mcp-service.js';
import { serveHttp, type McpHttpServer } from '../../../src/interfaces/mcp/serve-http.js';
import { Bench } from '../../fixtures/bench.js';
import { CASE_AGENT, serviceEdit, slowTool } from '../../fixtures/service.js';
import { make, phase, spec } from '../../fixtures/spec.js';
import { call, postTo, serviceOn, traces, type Called } from './mcp-harness.js';

const DENIALS_MAX = 2;
const APPROVAL = `approvals:
  - { for: CREATE_DIRECTORY, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const edit: NonNullable<Parameters<typeof Bench.open>[0]>['edit'] = (name, text) =>
  serviceEdit(name, text).replace('denials_per_run_max: 10', `denials_per_run_max: ${DENIALS_MAX}`);
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

let bench: Bench;
const open: { close(): Promise<unknown> }[] = [];
beforeEach(async () => {
  bench = await Bench.open({ edit });
});
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
  await bench.close();
});

interface Process {
  readonly server: McpHttpServer;
  readonly token: string;
  readonly client: Client;
}

/** A server with a token and a client of its own, as another process would have it. */
async function started(options: Partial<McpOptions> = {}): Promise<Process> {
  const token = drawToken();
  const server = await serveHttp(serviceOn(bench, options), { host: '127.0.0.1', port: 0, token });
  open.push(server);
  return { server, token, client: await connected(server.url, token) };
}

async function connected(url: string, token: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '2' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  open.push(client);
  return client;
}

const post = ({ server, token }: Process, message: object, headers: object = {}): Promise<Response> =>
  postTo(
    { url: server.url, token },
    { jsonrpc: '2.0', ...message },
    { 'mcp-protocol-version': '2026-07-28', ...headers },
  );
const callMessage = (id: number, name: string, args: object = {}, meta: object = {}): object => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { ...META, ...meta } },
});
const headersFor = (name: string): object => ({ 'mcp-method': 'tools/call', 'mcp-name': name });

const finish = (client: Client, key?: string): Promise<Called> => call(client, 'finish', { response: 'done' }, key);
const errorOf = ({ text }: Called): Readonly<Record<string, unknown>> =>
  (JSON.parse(text) as { readonly error: Readonly<Record<string, unknown>> }).error;
const deny = (client: Client): Promise<Called> => call(client, 'delete_file', { path: '/sandbox/a.sh' });
const agentRuns = async () =>
  (await bench.entries()).flatMap(({ type, body }) =>
    type === 'run_created' && body.run_kind === 'agent' ? [body] : [],
  );

test('the official client discovers the server, lists its tools and calls them, without a session', async () => {
  const { client, server, token } = await started();
  expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
  expect(client.getServerVersion()).toMatchObject({ name: 'turnpike' });
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('write_file');
  const written = await call(client, 'write_file', { path: '/sandbox/a.md', content: 'x' });
  expect(written).toMatchObject({ isError: false, structured: { outcome: 'SUCCESS' } });
  const discover = { id: 1, method: 'server/discover', params: { _meta: META } };
  const answer = await post({ server, token, client }, discover, { 'mcp-method': 'server/discover' });
  expect(answer.headers.get('mcp-session-id')).toBeNull();
  expect(await answer.json()).toMatchObject({
    result: {
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: false } },
      ttlMs: 0,
      cacheScope: 'private',
    },
  });
});

describe('any process on the same store may answer a request', () => {
  test('D3: all calls of an agent go into one run, and after FINISH the next call begins another', async () => {
    const [a, b] = [await started(), await started()];
    const first = await call(a.client, 'think');
    expect(first).toMatchObject({ isError: false });
    for (const { client } of [b, a, b]) expect((await call(client, 'think')).run_id).toBe(first.run_id);
    expect((await finish(b.client)).run_id).toBe(first.run_id);
    const next = await call(a.client, 'think');
    expect(next).toMatchObject({ isError: false });
    expect(next.run_id).not.toBe(first.run_id);
    expect((await call(b.client, 'think')).run_id).toBe(next.run_id);
    const runs = await agentRuns();
    expect(runs.map(({ run_id }) => run_id)).toEqual([first.run_id, next.run_id]);
    expect(new Set(runs.map(({ correlation_id }) => correlation_id)).size).toBe(1);
  });

  test('D4: calls that reach two processes at once begin one run', async () => {
    const [a, b] = [await started(), await started()];
    const answers = await Promise.all([a, b, a, b, a, b, a, b].map(({ client }) => call(client, 'think')));
    expect(answers.map(({ isError }) => isError)).toEqual(answers.map(() => false));
    expect(new Set(answers.map(({ run_id }) => run_id)).size).toBe(1);
    expect(await agentRuns()).toHaveLength(1);
    expect(await traces(bench)).toHaveLength(8);
  });

  test('D3: a process that has seen none of the runs of an agent finds the last one', async () => {
    const { client } = await started();
    for (let runs = 0; runs < 21; runs += 1) await finish(client);
    for (let denials = 0; denials < DENIALS_MAX; denials += 1) await deny(client);
    await call(client, 'new_run');
    await finish(client);
    const { run_id } = await call(client, 'think');
    expect(await agentRuns()).toHaveLength(24);
    expect((await call((await started()).client, 'think')).run_id).toBe(run_id);
    expect(await agentRuns()).toHaveLength(24);
  });

  test('agents of another actor, role, lane or case have other runs', async () => {
    const [a, b] = [await started(), await started({ agent: { case: 'case-0002' } })];
    const [one, other] = [await call(a.client, 'think'), await call(b.client, 'think')];
    expect(other.run_id).not.toBe(one.run_id);
    const unknown = await call(b.client, 'think', { run_id: one.run_id });
    expect(errorOf(unknown)).toMatchObject({ code: 'RUN_UNKNOWN' });
    const known = await call((await started()).client, 'think', { run_id: one.run_id });
    expect(known).toMatchObject({ isError: false, run_id: one.run_id });
  });

  test('D7: a vote on a request that one process has received lets another process execute it', async () => {
    await bench.close();
    bench = await Bench.open({
      approvals: true,
      edit: (name, text) => (name === 'actions' ? text.replace(/^approvals:\n(?: {2}- .*\n)+/mu, APPROVAL) : text),
    });
    const [a, b] = [await started(), await started()];
    const args = { path: '/sandbox/d' };
    const refused = await call(a.client, 'create_directory', args);
    expect(refused).toMatchObject({ isError: true, structured: { outcome: 'DENIED' } });
    const pending = [];
    for await (const approval of bench.turnpike.ledger.approvals(new Date(bench.clock.now()).toISOString()))
      pending.push(approval);
    const ballot = { digests: pending.map(({ digest }) => digest), actor: 'rita', role: 'ATTORNEY_ADMIN' };
    await bench.turnpike.approve({ run: String(refused.run_id), decision: 'approve', ...ballot });
    const done = await call(b.client, 'create_directory', args);
    expect(done).toMatchObject({ isError: false, run_id: refused.run_id });
  });

  test('S3-06: the run of a session step is reached by its id, from any process', async () => {
    const sessions = { specs: join(bench.folder, 'specs') };
    mkdirSync(sessions.specs);
    writeFileSync(join(sessions.specs, 'spec-1.json'), JSON.stringify(spec(phase('p1', [make('t1')]))));
    const [a, b] = [await started({ sessions }), await started({ sessions })];
    const step = async ({ client }: Process, args: object) =>
      (await call(client, 'task', { action: 'session-step', ...args })).structured?.['data'] as Record<string, never>;
    const { session_id } = await step(a, { command: 'start', spec_id: 'spec-1' });
    const { next_step } = await step(b, { command: 'next', session_id });
    const { run_id } = next_step as unknown as { run_id: string };
    const written = await call(a.client, 'write_file', { path: '/sandbox/t1.md', content: 'x', run_id });
    expect(written).toMatchObject({ isError: false, run_id });
    // No request depends on an earlier one, so only its id leads into the run of a step.
    expect((await call(b.client, 'think')).run_id).not.toBe(run_id);
  });
});

describe('D4: a repeated call', () => {
  const write = { path: '/sandbox/a.md', content: 'x' };

  test('with a key that reaches two processes at once is executed once', async () => {
    const [a, b] = [await started(), await started()];
    const answers = await Promise.all([a, b, a, b].map(({ client }) => call(client, 'write_file', write, 'key-1')));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(await traces(bench)).toHaveLength(1);
  });

  test('with a key gets the answer of a run that has ended since, up to 63 runs ago', async () => {
    const [a, b] = [await started(), await started()];
    const first = await call(a.client, 'write_file', write, 'key-1');
    const finished = await finish(a.client, 'key-2');
    expect(await finish(b.client, 'key-2')).toEqual(finished);
    expect(await agentRuns()).toHaveLength(1);
    for (let runs = 1; runs < 63; runs += 1) await finish(a.client);
    await call(a.client, 'think');
    expect(await agentRuns()).toHaveLength(64);
    expect(await call(b.client, 'write_file', write, 'key-1')).toEqual(first);
    await finish(a.client);
    await call(a.client, 'think');
    const late = await call(b.client, 'write_file', write, 'key-1');
    expect(late.run_id).not.toBe(first.run_id);
  });

  test('with a key of another call is a conflict, whichever process received the other call', async () => {
    const [a, b] = [await started(), await started()];
    const { run_id } = await call(a.client, 'write_file', write, 'key-1');
    const other = await call(b.client, 'write_file', { ...write, content: 'y' }, 'key-1');
    expect(errorOf(other)).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    await finish(a.client);
    const named = await call(a.client, 'think');
    const elsewhere = await call(b.client, 'write_file', { ...write, run_id: named.run_id }, 'key-1');
    expect(errorOf(elsewhere)).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(await call(b.client, 'write_file', { ...write, run_id }, 'key-1')).toMatchObject({ isError: false, run_id });
  });

  test('without a key is another call: the id of a request identifies nothing', async () => {
    const process = await started();
    const message = callMessage(7, 'think');
    for (const id of [1, 2]) {
      expect(await (await post(process, message, headersFor('think'))).json()).toMatchObject({ id: 7 });
      expect(await traces(bench)).toHaveLength(id);
    }
  });
});

describe('after too many denials', () => {
  test('every process says that the run has ended, and new_run opens another one for all of them', async () => {
    const [a, b] = [await started(), await started()];
    const { run_id } = await deny(a.client);
    await deny(b.client);
    for (const { client } of [a, b]) {
      const late = await call(client, 'think');
      expect(errorOf(late)).toMatchObject({ code: 'RUN_ENDED', run_id, cause: 'TOO_MANY_DENIALS' });
    }
    expect(await traces(bench)).toHaveLength(DENIALS_MAX);
    const opened = await call(b.client, 'new_run');
    expect(opened.structured).toMatchObject({ opened: true, previous: { run_id, cause: 'TOO_MANY_DENIALS' } });
    // Not counted again: the run of the agent has not ended.
    expect((await call(a.client, 'new_run')).structured).toMatchObject({ opened: false, run_id: opened.run_id });
    expect(await call(a.client, 'think')).toMatchObject({ isError: false, run_id: opened.run_id });
  });

  test('the limit of new runs counts in all processes, also after a restart', async () => {
    const denied = async ({ client }: Process): Promise<void> => {
      for (let denials = 0; denials < DENIALS_MAX; denials += 1) await deny(client);
    };
    const [a, b] = [await started({ newRunsMax: 1 }), await started({ newRunsMax: 1 })];
    await denied(a);
    expect(await call(b.client, 'new_run')).toMatchObject({ isError: false });
    await denied(b);
    for (const { client } of [a, b, await started({ newRunsMax: 1 })]) {
      const refused = errorOf(await call(client, 'new_run'));
      expect(refused).toMatchObject({ code: 'RUN_ENDED', message: expect.stringContaining('opens no other run') });
    }
    expect(await agentRuns()).toHaveLength(2);
    expect(await call((await started({ newRunsMax: 2 })).client, 'new_run')).toMatchObject({ isError: false });
  });
});

describe('a hostile client', () => {
  test.each([
    ['headers of another method', { 'mcp-method': 'tools/list', 'mcp-name': 'think' }, META, -32_020],
    ['a header of another tool', { 'mcp-method': 'tools/call', 'mcp-name': 'finish' }, META, -32_020],
    ['no headers', {}, META, -32_020],
    ['a header twice', { 'mcp-method': 'tools/call, tools/call', 'mcp-name': 'think' }, META, -32_020],
    ['a version in the header alone', headersFor('think'), {}, -32_602],
    ['a version that does not exist', headersFor('think'), { ...META, [Object.keys(META)[0]!]: '2027-01-01' }, -32_020],
    ['no capabilities', headersFor('think'), { [Object.keys(META)[0]!]: '2026-07-28' }, -32_602],
    ['capabilities of another type', headersFor('think'), { ...META, [Object.keys(META)[1]!]: 'all' }, -32_602],
    ['a key of another type', headersFor('think'), { ...META, [IDEMPOTENCY_KEY]: { a: 1 } }, -32_602],
  ])('with %s gets an error, and nothing is executed', async (_what, headers, meta, code) => {
    const message = { id: 1, method: 'tools/call', params: { name: 'think', arguments: {}, _meta: meta } };
    const answer = await post(await started(), message, headers);
    expect(await answer.json()).toMatchObject({ id: 1, error: { code } });
    expect(await agentRuns()).toEqual([]);
  });

  test('learns which versions the server has', async () => {
    const meta = { ...META, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' };
    const message = { id: 1, method: 'tools/list', params: { _meta: meta } };
    const headers = { 'mcp-method': 'tools/list', 'mcp-protocol-version': '2027-01-01' };
    const answer = await post(await started(), message, headers);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: -32_022, data: { supported: ['2026-07-28'] } } });
  });

  test('gets neither sessions nor streams: a subscription ends at once, and a session id changes nothing', async () => {
    const process = await started();
    const listen = { id: 1, method: 'subscriptions/listen' };
    const params = { _meta: META, notifications: { toolsListChanged: true } };
    const stream = await post(process, { ...listen, params }, { 'mcp-method': 'subscriptions/listen' });
    expect(await stream.text()).toContain('"resultType":"complete"');
    const foreign = { ...headersFor('think'), 'mcp-session-id': 'of-somebody' };
    expect(await (await post(process, callMessage(1, 'think'), foreign)).json()).toMatchObject({ result: {} });
    for (const method of ['GET', 'DELETE']) {
      const headers = { authorization: `Bearer ${process.token}` };
      expect((await fetch(process.server.url, { method, headers })).status).toBe(method === 'GET' ? 405 : 400);
    }
  });

  test('that asks for input of its own gets the answer of the step', async () => {
    const params = { name: 'think', arguments: {}, _meta: META, requestState: 'x', inputResponses: { a: {} } };
    const answer = await post(await started(), { id: 1, method: 'tools/call', params }, headersFor('think'));
    expect(await answer.json()).toMatchObject({ result: { structuredContent: { outcome: 'SUCCESS' } } });
  });

  test('that disconnects does not stop the step that it has requested', async () => {
    const [entered, release] = [createDeferred<null>(), createDeferred<null>()];
    const tools = [slowTool(entered, release)];
    await bench.close();
    bench = await Bench.open({ edit, tools });
    const { client } = await started({ tools, agent: CASE_AGENT });
    const abort = new AbortController();
    const calling = client.callTool({ name: 'slow.tool', arguments: {} }, { signal: abort.signal });
    await entered.promise;
    abort.abort();
    await expect(calling).rejects.toThrow();
    release.resolve(null);
    expect((await call(client, 'think')).isError).toBe(false);
    expect(await traces(bench)).toMatchObject([{ outcome: 'SUCCESS' }, { outcome: 'SUCCESS' }]);
  });
});

test('a call of an unlisted tool is recorded as a denied proposal, and is an error of the protocol', async () => {
  const { client } = await started();
  const calling = client.callTool({ name: 'rm_rf', arguments: { path: '/' } });
  await expect(calling).rejects.toMatchObject({
    code: -32_602,
    data: { run_id: expect.any(String), response: { outcome: 'DENIED' } },
  });
  expect(await traces(bench)).toMatchObject([{ action: 'CALL_TOOL', outcome: 'DENIED' }]);
});

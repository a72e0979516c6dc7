// After its run was denied, failed or was cancelled, an agent learns why, and opens another run on the same connection.
// With the official client.

import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { join } from 'node:path';
import { RunError } from '../../../src/core/errors.js';
import { drawToken } from '../../../src/stores/keys/access-token.js';
import { serveHttp } from '../../../src/interfaces/mcp/serve-http.js';
import { serveStdio } from '../../../src/interfaces/mcp/serve-stdio.js';
import { Bench } from '../../fixtures/bench.js';
import { call, clientOf, serviceOn, traces, type Called } from './mcp-harness.js';

const DENIALS_MAX = 2;
const FORBIDDEN = { path: '/sandbox/a.sh' };

let bench: Bench;
let cleanups: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  const edit = (_file: string, text: string): string =>
    text.replace('denials_per_run_max: 10', `denials_per_run_max: ${DENIALS_MAX}`);
  bench = await Bench.open({ edit });
});
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  cleanups = [];
  await bench.close();
});

const connect = async (service = serviceOn(bench)): Promise<Client> => {
  const client = await clientOf(service);
  cleanups.push(() => client.close());
  return client;
};

/** Connects the official client to a server over two streams. */
async function overStdio(): Promise<Client> {
  const [input, output, stop] = [new PassThrough(), new PassThrough(), new AbortController()];
  const write = (text: string): Promise<void> => Promise.resolve(void output.write(text));
  const served = serveStdio(serviceOn(bench), { input, write, stop: stop.signal, note: join(bench.home, 'mcp-run') });
  const client = new Client({ name: 'test', version: '1' });
  // The SDK's transport over two streams, used at the end of the client.
  await client.connect(new StdioServerTransport(output, input));
  cleanups.push(async () => {
    stop.abort();
    await served;
  });
  return client;
}

const errorOf = ({ text }: Called): Readonly<Record<string, unknown>> =>
  (JSON.parse(text) as { readonly error: Readonly<Record<string, unknown>> }).error;

/** Uses up the denials of a run. @returns its id */
async function useUpDenials(client: Client, args: object = {}): Promise<unknown> {
  let run_id: unknown;
  for (let denials = 0; denials < DENIALS_MAX; denials += 1) {
    const answer = await call(client, 'delete_file', { ...FORBIDDEN, ...args });
    expect(answer.structured).toMatchObject({ outcome: 'DENIED' });
    ({ run_id } = answer);
  }
  return run_id;
}

test('a call after the last denial says that the run has ended, why, and what to do; nothing is executed', async () => {
  const client = await connect();
  const run_id = await useUpDenials(client);
  const before = (await traces(bench)).length;
  const late = await call(client, 'write_file', { path: '/sandbox/a.md', content: 'x' });
  expect(late).toMatchObject({ isError: true, structured: undefined });
  expect(errorOf(late)).toEqual({
    code: 'RUN_ENDED',
    message:
      'The run has ended: it had as many denials as the policy allows. This call was not executed. ' +
      'Call the tool new_run to open another run, which is recorded as well. Then make a call that is allowed.',
    run_id,
    state: 'denied',
    cause: 'TOO_MANY_DENIALS',
  });
  expect(await traces(bench)).toHaveLength(before);
});

test('new_run opens another run on the same connection, under the same correlation id, with limits of its own', async () => {
  const client = await connect();
  const run_id = await useUpDenials(client);
  await call(client, 'think');
  const opened = await call(client, 'new_run');
  expect(opened).toMatchObject({
    isError: false,
    structured: { opened: true, previous: { run_id, state: 'denied', cause: 'TOO_MANY_DENIALS' } },
  });
  expect(opened.run_id).not.toBe(run_id);
  const written = await call(client, 'write_file', { path: '/sandbox/a.md', content: 'x' });
  expect(written).toMatchObject({ isError: false, run_id: opened.run_id });
  // The next denials count in the new run, and end it too.
  expect(await useUpDenials(client)).toBe(opened.run_id);
  expect(errorOf(await call(client, 'think'))).toMatchObject({ code: 'RUN_ENDED', run_id: opened.run_id });
  const created = (await bench.entries()).flatMap(({ type, body }) =>
    type === 'run_created' && body.run_kind === 'agent' ? [body] : [],
  );
  expect(created.map((run) => run.run_id)).toEqual([run_id, opened.run_id]);
  expect(new Set(created.map(({ correlation_id }) => correlation_id)).size).toBe(1);
  expect(new Set(created.map(({ root_run_id }) => root_run_id)).size).toBe(2);
});

test('S2-11: calls that come too late do not open a run, however many there are', async () => {
  const client = await connect();
  const run_id = await useUpDenials(client);
  const late = await Promise.all([1, 2, 3].map(() => call(client, 'think')));
  expect(late.map((answer) => errorOf(answer)['run_id'])).toEqual([run_id, run_id, run_id]);
  expect(new Set((await traces(bench)).map((trace) => trace.run_id))).toEqual(new Set([run_id]));
});

test('new_run opens no run while the own one has not ended, and takes no arguments', async () => {
  const client = await connect();
  const { run_id } = await call(client, 'think');
  expect(await call(client, 'new_run')).toMatchObject({
    run_id,
    structured: { run_id, opened: false, previous: null },
  });
  expect(errorOf(await call(client, 'new_run', { lane: 'EXPORT' }))).toMatchObject({ code: 'VALIDATION_ERROR' });
  expect((await call(client, 'think')).run_id).toBe(run_id);
});

test('D4: a call that came too late is executed once under its key in the new run', async () => {
  const client = await connect();
  await useUpDenials(client);
  const write = ['create_directory', { path: '/sandbox/d' }, 'key-1'] as const;
  expect(errorOf(await call(client, ...write))).toMatchObject({ code: 'RUN_ENDED' });
  const { run_id } = await call(client, 'new_run');
  const first = await call(client, ...write);
  expect(first).toMatchObject({ isError: false, run_id });
  expect(await call(client, ...write)).toEqual(first);
  expect((await traces(bench)).filter((trace) => trace.run_id === run_id)).toHaveLength(1);
});

test('a run that was cancelled is named with its cause', async () => {
  const client = await connect();
  const { run_id } = await call(client, 'think');
  const run = await bench.turnpike.agent(run_id as string);
  await run!.cancel('enough');
  expect(errorOf(await call(client, 'think'))).toMatchObject({ run_id, state: 'cancelled', cause: 'CANCELLED' });
  expect(await call(client, 'new_run')).toMatchObject({ isError: false, structured: { previous: { run_id } } });
  expect(await call(client, 'think')).toMatchObject({ isError: false });
});

test('an operator can forbid it: new_run is not offered, and the error says so', async () => {
  const client = await connect(serviceOn(bench, { newRunsMax: 0 }));
  expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain('new_run');
  const run_id = await useUpDenials(client);
  const { message, ...rest } = errorOf(await call(client, 'think'));
  expect(rest).toEqual({ code: 'RUN_ENDED', run_id, state: 'denied', cause: 'TOO_MANY_DENIALS' });
  expect(message).toContain('This server opens no other run for you');
  await expect(call(client, 'new_run')).rejects.toMatchObject({ code: -32_602 });
});

test('a limit counts the runs of all connections of the agent', async () => {
  const service = serviceOn(bench, { newRunsMax: 1 });
  const first = await connect(service);
  await useUpDenials(first);
  expect(await call(first, 'new_run')).toMatchObject({ isError: false });
  const last = await useUpDenials(first);
  expect(errorOf(await call(first, 'new_run'))).toMatchObject({ code: 'RUN_ENDED', run_id: last });
  const second = await connect(service);
  expect(errorOf(await call(second, 'think'))).toMatchObject({ code: 'RUN_ENDED', run_id: last });
});

test('a limit does not count runs that were finished', async () => {
  const client = await connect(serviceOn(bench, { newRunsMax: 0 }));
  for (let i = 0; i < 3; i += 1)
    expect(await call(client, 'finish', { response: 'done' })).toMatchObject({ isError: false });
  expect(new Set((await traces(bench)).map(({ run_id }) => run_id)).size).toBe(3);
});

test('over HTTP, with a session for each call, a named run that has ended is explained, and new_run names another', async () => {
  const token = drawToken();
  const server = await serveHttp(serviceOn(bench), { host: '127.0.0.1', port: 0, token });
  cleanups.push(() => server.close());
  const again = async (): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url), { requestInit }));
    cleanups.push(() => client.close());
    return client;
  };
  const run_id = await useUpDenials(await again());
  const late = errorOf(await call(await again(), 'think', { run_id }));
  expect(late).toMatchObject({ code: 'RUN_ENDED', run_id, cause: 'TOO_MANY_DENIALS' });
  expect(late['message']).toContain('Omit run_id');
  const opened = await call(await again(), 'new_run');
  expect(await call(await again(), 'think', { run_id: opened.run_id })).toMatchObject({ isError: false });
});

test('over stdio the next server of the same agent explains the ended run, and opens another', async () => {
  const run_id = await useUpDenials(await overStdio());
  await cleanups.pop()?.();
  const client = await overStdio();
  expect(errorOf(await call(client, 'think'))).toMatchObject({ code: 'RUN_ENDED', run_id });
  const opened = await call(client, 'new_run');
  expect(await call(client, 'think')).toMatchObject({ isError: false, run_id: opened.run_id });
});

test('a code of a later version, from the process that has the home, is UNAVAILABLE', async () => {
  const service = serviceOn(bench);
  const later = () => Promise.reject(new RunError({ code: 'LATER_CODE' as never, message: 'unknown here' }));
  Object.assign(service.agentRuns, { start: later });
  const answer = await call(await connect(service), 'delete_file', FORBIDDEN);
  expect(answer.isError).toBe(true);
  expect(errorOf(answer)).toMatchObject({ code: 'UNAVAILABLE' });
});

test.each([-1, 1.5, Number.NaN])('newRunsMax is a whole number, not %p', (newRunsMax) => {
  expect(() => serviceOn(bench, { newRunsMax })).toThrow('newRunsMax: a whole number, 0 or more');
});

// The limits of one token, one connection and one address, over real sockets.

import { afterEach, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { singleTokenBook } from '../../../src/stores/keys/token-file.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { createDeferred } from '../../../src/runtime/deferred.js';
import type { InspectorSource } from '../../../src/interfaces/inspector/inspector-source.js';
import { ledgerSource } from '../../fixtures/ledger-source.js';
import { turnpikeHttp } from '../../../src/interfaces/http/turnpike-http.js';
import { Bench } from '../../fixtures/bench.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { CASE_AGENT, service, serviceEdit, slowTool } from '../../fixtures/service.js';
import { rawRequest } from '../service/raw-http.js';
import { codeOf, HttpBench, proposal } from './http-harness.js';

let http: HttpBench;
afterEach(() => http.close());

const get = (path: string, token: string): string => {
  const { host } = new URL(http.server.url);
  return `GET /api/v1${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
};

/** A last request, after which the server closes the connection. */
const closing = (token: string): string => get('/health', token).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');

/** Everything received over a connection until it is closed. */
async function over(text: string, port = http.server.port): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let got = '';
  socket.on('data', (chunk) => (got += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.write(text);
  await once(socket, 'close');
  return got;
}

/** An inspector source whose rows resolve when the test allows it, with the number of pending reads. */
async function held() {
  const bench = await Bench.open();
  const release = createDeferred<null>();
  const reading = { now: 0, most: 0, begun: 0, aborted: 0 };
  const source: InspectorSource = {
    ...ledgerSource(bench.turnpike.ledger),
    rows: async (from, _to, control) => {
      reading.now += 1;
      reading.begun += 1;
      reading.most = Math.max(reading.most, reading.now);
      control?.signal.addEventListener('abort', () => (reading.aborted += 1));
      await release.promise;
      reading.now -= 1;
      return { from, texts: [], time_base: 0, rows: [] };
    },
  };
  http = await HttpBench.on(bench, { inspector: source });
  return { reading, release, source };
}

/** As long as a test may take: how fast the machine is decides nothing. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(5);
}

const until = (holds: () => boolean): Promise<void> => eventually(() => Promise.resolve(holds()));

test('pipelined requests all get their responses, and only a few of them run at a time', async () => {
  const { reading, release } = await held();
  const token = http.token({ rights: ['observe'] });
  const answers = over(get('/inspector/rows?from=0&to=1', token).repeat(40) + closing(token));
  await until(() => reading.begun === 2);
  release.resolve(null);
  const text = await answers;
  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(41);
  expect(reading.most).toBe(2);
});

test('on another kind of server, a connection may have eight requests without a response; one more is refused', async () => {
  const { reading, release, source: inspector } = await held();
  const token = 'a-token-of-the-test';
  const tokens = singleTokenBook(token, { actor: 'anna', role: 'SANDBOX_AGENT', rights: ['observe'] });
  const hosts = [`127.0.0.1:${http.server.port}`];
  const own = turnpikeHttp({ turnpike: http.bench.turnpike, tokens, inspector, hosts, log: winstonLog('silent') });
  const server = createServer((request, response) => void own.handler(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const answers = over(get('/inspector/rows?from=0&to=1', token).repeat(200), port);
  await until(() => reading.begun === 2);
  release.resolve(null);
  const text = await answers;
  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(8);
  expect(text).toMatch(/HTTP\/1\.1 429 [^]*retry-after: 1[^]*application\/problem\+json[^]*"TOO_MANY_REQUESTS"/i);
  expect(reading).toMatchObject({ begun: 8, most: 2 });
  server.close();
  await own.close();
});

test('one token runs two reads however many it has queued, and does not delay the read of another token', async () => {
  const { reading, release } = await held();
  const [hostile, other] = [http.token({ rights: ['observe'] }), http.token({ rights: ['observe'] })];
  const sockets = Array.from({ length: 20 }, () => {
    const socket = connect(http.server.port, '127.0.0.1').on('error', () => undefined);
    socket.write(get('/inspector/rows?from=0&to=1', hostile).repeat(4));
    return socket;
  });
  await until(() => reading.now === 2);
  const answer = http.ask('/inspector/rows?from=0&to=1', other);
  await until(() => reading.now === 3);
  expect((await http.ask('/health', other)).status).toBe(200);
  const metrics = await (await http.ask('/metrics', other)).text();
  expect(metrics).toMatch(/turnpike_requests_running\{state="waiting"\} [5-9]\d/);
  expect(metrics).toMatch(/turnpike_requests_admitted_total\{kind="read"\} 3/);
  expect(metrics).toMatch(/turnpike_requests_queued_total\{kind="read"\} [5-9]\d/);
  // The clients disconnect: waiting reads never start, and running reads are aborted.
  for (const socket of sockets) socket.destroy();
  await until(() => reading.aborted === 2);
  release.resolve(null);
  expect((await answer).status).toBe(200);
  expect((await http.ask('/inspector/rows?from=0&to=1', other)).status).toBe(200);
  expect(reading.begun).toBe(4);
});

test('a request that waits too long is refused with Retry-After and a problem document', async () => {
  const { release } = await held();
  await http.server.close();
  const short = { kinds: { read: { queueMs: 30 } } } as const;
  const source = {
    ...ledgerSource(http.bench.turnpike.ledger),
    rows: () => release.promise.then(() => Promise.reject(new Error())),
  };
  http = await HttpBench.on(http.bench, { admission: short, inspector: source });
  const token = http.token({ rights: ['observe'] });
  const [one, two, three] = [0, 1, 2].map(() => http.ask('/inspector/rows?from=0&to=1', token));
  const refused = await Promise.race([one!, two!, three!]);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(refused.headers.get('content-type')).toBe('application/problem+json');
  expect(await codeOf(refused)).toBe('429 TOO_MANY_REQUESTS');
  release.resolve(null);
  await Promise.allSettled([one, two, three]);
});

test('an address with too many failed authentications gets 429, and a valid token from it is still accepted', async () => {
  // A second in which no test runs would allow one more.
  http = await HttpBench.open({}, { clock: new ManualClock() });
  const token = http.token();
  const codes: string[] = [];
  for (let n = 0; n < 22; n += 1) codes.push(await codeOf(await http.ask('/health', 'x'.repeat(43))));
  expect(codes.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => '401 UNAUTHENTICATED'));
  expect(codes.slice(20)).toEqual(['429 TOO_MANY_FAILURES', '429 TOO_MANY_FAILURES']);
  expect((await http.ask('/health', 'x'.repeat(43))).headers.get('retry-after')).toBe('1');
  expect((await http.ask('/health', token)).status).toBe(200);
});

test('the connection of a client that does not read its response is closed, and no more is read for it', async () => {
  const bench = await Bench.open();
  const made = { bytes: 0 };
  const signals = new Set<AbortSignal>();
  const text = 'x'.repeat(60_000);
  // More than the buffers of both sockets can hold.
  const responses = 6;
  const source: InspectorSource = {
    ...ledgerSource(bench.turnpike.ledger),
    entries: (from, _to, reading) => {
      made.bytes += text.length;
      if (reading?.signal !== undefined) signals.add(reading.signal);
      return Promise.resolve(from < 60 ? [text] : []);
    },
  };
  http = await HttpBench.on(bench, { inspector: source, admission: { drainMs: 300 } });
  const token = http.token({ rights: ['observe'] });
  const socket: Socket = connect(http.server.port, '127.0.0.1').on('error', () => undefined);
  const sized = { highWaterMark: 1_024 };
  Object.assign(socket, sized);
  socket.pause();
  const closed = once(socket, 'close');
  socket.write(get('/inspector/entries?from=0&to=60', token).repeat(responses));
  // The buffers between server and client are full, and the server has closed the connection.
  await until(() => [...signals].some(({ aborted }) => aborted));
  const before = made.bytes;
  expect(before).toBeLessThan(responses * 60 * text.length);
  socket.resume();
  await closed;
  expect(made.bytes).toBe(before);
  const whole = await (await http.ask('/inspector/entries?from=0&to=60', token)).text();
  expect(whole).toBe(`${text}\n`.repeat(60));
});

test('a proposal is recorded even if its client has left', async () => {
  const [entered, release] = [createDeferred<null>(), createDeferred<null>()];
  const { tools, targets } = service();
  http = await HttpBench.open({ edit: serviceEdit, tools: [...tools, slowTool(entered, release)], targets });
  const token = 'a-token-of-the-test';
  const tokens = singleTokenBook(token, { actor: 'agent-one', role: CASE_AGENT.role, rights: ['act'] });
  const { turnpike } = http.bench;
  const { run_id } = await turnpike.remoteAgents.start({ actor: 'agent-one', ...CASE_AGENT });
  const own = turnpikeHttp({ turnpike, tokens, hosts: ['test'], log: winstonLog('silent') });
  const server = createServer((request, response) => void own.handler(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [connection] = (await once(server, 'connection')) as [Socket];
  const body = proposal('CALL_TOOL', { tool: 'slow.tool', input: {} });
  const head = [`POST /api/v1/agents/${run_id}/steps HTTP/1.1`, 'Host: test', `Authorization: Bearer ${token}`];
  socket.write(
    `${[...head, 'Content-Type: application/json', `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`,
  );
  // The client leaves while its step is executed, and the service has noticed it before the step ends.
  await entered.promise;
  const closed = new Promise<void>((resolve) => connection.once('close', () => resolve()));
  socket.destroy();
  await closed;
  release.resolve(null);
  await eventually(async () => (await http.bench.entries()).some(({ type }) => type === 'step_trace'));
  server.close();
  await own.close();
});

test('a request for an unknown path is admitted like any other, and its cost is bounded', async () => {
  http = await HttpBench.open();
  const token = http.token();
  const { host } = new URL(http.server.url);
  const lines = [`GET /nowhere HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${token}`];
  expect((await rawRequest(http.server.port, lines)).status).toBe(404);
  const metrics = await (await http.ask('/metrics', http.token({ rights: ['observe'] }))).text();
  expect(metrics).toMatch(/turnpike_requests_admitted_total\{kind="live"\} 2/);
});

// The listener without tokens: what it serves, to whom, and what it refuses.

import { connect } from 'node:net';
import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { serveAdmin, type AdminServer } from '../../../../src/interfaces/http/admin/serve-admin.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import { ManualClock } from '../../../fixtures/manual-clock.js';
import { makeCertificate, withOpenssl } from '../../../fixtures/certificate.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { HttpBench } from '../http-harness.js';

/** It counts how long an answer is used again. */
const clock = new ManualClock();
const REUSE_MS = 200;

let http: HttpBench;
let admin: AdminServer;
beforeAll(async () => {
  admin = await serveAdmin({ host: '127.0.0.1', port: 0, log: winstonLog('silent') }, clock);
  http = await HttpBench.open({}, { admin });
});
afterAll(async () => {
  await http.close();
  await admin.close();
});

/** No test gets the answer of an earlier one. */
beforeEach(() => clock.advance(REUSE_MS));

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: NodeJS.Dict<string | string[]>;
}

function ask(path: string, options: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
  return new Promise<Answer>((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options;
    const sent = request({ host: '127.0.0.1', port: admin.port, path, method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

test('answers without a token, whatever the Host header is: a kubelet reaches a pod by its address', async () => {
  for (const host of ['10.1.2.3:9090', 'turnpike.example.org', 'localhost']) {
    expect(await ask('/livez', { headers: { host } })).toMatchObject({ status: 200, text: 'ok' });
    expect(await ask('/readyz', { headers: { host } })).toMatchObject({ status: 200, text: 'ok' });
    const metrics = await ask('/metrics', { headers: { host } });
    expect(metrics).toMatchObject({ status: 200 });
    expect(metrics.headers['content-type']).toContain('text/plain; version=0.0.4');
  }
  const main = await fetch(`${http.server.url}/readyz`);
  expect(main.status).toBe(401);
});

test('lists the checks as Kubernetes does', async () => {
  expect((await ask('/livez?verbose')).text).toBe('[+]event-loop ok\nlivez check passed\n');
  const names = ['startup', 'shutdown', 'ledger-write', 'ledger-read', 'disk', 'policy', 'keys'];
  expect((await ask('/readyz?verbose')).text).toBe(
    `${names.map((name) => `[+]${name} ok\n`).join('')}readyz check passed\n`,
  );
});

test('a failed check is listed with its constant reason, and the status is 503', async () => {
  const remove = http.bench.turnpike.readiness.add({ name: 'identity', run: () => 'the issuer does not answer' });
  const { status, text } = await ask('/readyz');
  remove();
  expect(status).toBe(503);
  expect(text).toMatch(
    /^\[\+\]startup ok\n[^]*\[-\]identity failed: the issuer does not answer\nreadyz check failed\n$/,
  );
  clock.advance(REUSE_MS - 1);
  expect(await ask('/readyz')).toMatchObject({ status: 503 });
  clock.advance(1);
  expect(await ask('/readyz')).toMatchObject({ status: 200 });
  // Health is the same report, for clients with a token.
  const token = http.token();
  const remove2 = http.bench.turnpike.readiness.add({ name: 'identity', run: () => 'the issuer does not answer' });
  expect(await (await http.ask('/health', token)).json()).toMatchObject({
    code: 'UNHEALTHY',
    checks: [{ name: 'identity', reason: 'the issuer does not answer' }],
  });
  remove2();
});

test('the metrics have readiness, each check and the ledger', async () => {
  const { text } = await ask('/metrics');
  for (const line of [
    'turnpike_ready 1',
    'turnpike_ready_check{check="ledger-write"} 1',
    'turnpike_ready_check{check="disk"} 1',
    'turnpike_ledger_failed 0',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).toMatch(/^turnpike_disk_free_bytes \d+/m);
});

test('serves nothing else, and only GET and HEAD', async () => {
  for (const path of ['/', '/api/v1/health', '/api/v1/metrics', '/mcp', '/livez/', '/readyz/disk', '//livez', '*']) {
    expect([path, (await ask(path)).status]).toEqual([path, 404]);
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    expect(await ask('/readyz', { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  }
  expect(await ask('/livez', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  expect((await ask('/livez', { method: 'HEAD' })).headers['content-length']).toBe('2');
});

test('refuses bodies and large headers', async () => {
  expect(await ask('/livez', { method: 'POST', body: 'x'.repeat(100) })).toMatchObject({ status: 413 });
  expect(await ask('/livez', { headers: { 'x-large': 'x'.repeat(9_000) } })).toMatchObject({ status: 431 });
});

test('keeps at most 64 connections, and a new one still gets its answer', async () => {
  const sockets = Array.from({ length: 80 }, () => connect(admin.port, '127.0.0.1').on('error', () => undefined));
  await Promise.all(sockets.map((socket) => new Promise((done) => socket.once('connect', done).once('close', done))));
  expect(await ask('/livez')).toMatchObject({ status: 200 });
  const isClosed = () => sockets.filter(({ destroyed, readyState }) => destroyed || readyState === 'closed').length;
  while (isClosed() < 80 - 64) await new Promise((done) => setTimeout(done, 5));
  for (const socket of sockets) socket.destroy();
});

test('is not ready before the ledger is open, and from the moment on when the process ends', async () => {
  const early = await serveAdmin({ host: '127.0.0.1', port: 0, log: winstonLog('silent') });
  const at = async (path: string): Promise<string> => {
    const response = await fetch(`${early.url}${path}`);
    return `${response.status} ${await response.text()}`;
  };
  expect(await at('/livez')).toBe('200 ok');
  expect(await at('/readyz')).toBe('503 [-]startup failed: the ledger is being opened\nreadyz check failed\n');
  expect(await at('/metrics')).toBe('503 not available: see the log\n');
  early.begin({
    readiness: http.bench.turnpike.readiness,
    metrics: { text: () => Promise.resolve('x 1\n'), type: 'text/plain' },
  });
  expect(await at('/readyz')).toBe('200 ok');
  expect(await at('/metrics')).toBe('200 x 1\n');
  early.end();
  expect(await at('/readyz')).toBe('503 [-]shutdown failed: the process is ending\nreadyz check failed\n');
  await early.close();
});

test('serveTurnpike opens a listener of its own at an address, and closes it', async () => {
  const own = await HttpBench.open({}, { admin: { host: '127.0.0.1', port: 0 } });
  const { admin: listener } = own.server;
  expect(listener?.port).toBeGreaterThan(0);
  expect(await (await fetch(`${listener?.url}/readyz`)).text()).toBe('ok');
  await own.close();
  await expect(fetch(`${listener?.url}/readyz`)).rejects.toThrow();
});

withOpenssl('a server with a certificate', () => {
  test('is not ready while its certificate has expired', async () => {
    const tls = makeCertificate(tempFolder('tls'), 'old', -1);
    const own = await HttpBench.open({}, { tls, admin: { host: '127.0.0.1', port: 0 } });
    const response = await fetch(`${own.server.admin?.url}/readyz`);
    expect(response.status).toBe(503);
    expect(await response.text()).toContain('[-]certificate failed: the TLS certificate has expired\n');
    await own.close();
  });
});

// The HTTP service embedded in another server, and the served page.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { createServer, request, type IncomingHttpHeaders } from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { tokenBook, mintToken } from '../../../src/stores/keys/token-file.js';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { TokenRecord } from '../../../src/core/contract/token.js';
import type { Log } from '../../../src/engine/ports/log.js';
import { ROUTES } from '../../../src/interfaces/http/routes/system-routes.js';
import { turnpikeHttp, type TurnpikeHttpOptions } from '../../../src/interfaces/http/turnpike-http.js';
import { Bench } from '../../fixtures/bench.js';
import { freePort } from '../../fixtures/free-port.js';
import { rawRequest } from '../service/raw-http.js';
import { proposal } from './http-harness.js';

let bench: Bench;
const records: TokenRecord[] = [];
const grant = { actor: 'agent-one', role: 'SANDBOX_AGENT', rights: ['act'] as const };
const { token, record } = mintToken(grant, systemClock(), nanoidIds());
records.push(record);
const tokens = tokenBook(() => records, systemClock());
const log = winstonLog('silent');
const page = new Map([
  ['/', { bytes: Buffer.from('<!doctype html>'), type: 'text/html; charset=utf-8', immutable: false }],
  ['/assets/b.css', { bytes: Buffer.from('a{} '.repeat(4_000)), type: 'text/css; charset=utf-8', immutable: true }],
  ['/assets/a.js', { bytes: Buffer.from('1'), type: 'text/javascript; charset=utf-8', immutable: true }],
]);
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

/** Serves the plain handler with a server of Node. */
async function serve(
  options: Partial<TurnpikeHttpOptions> = {},
  onHandled: (result: Promise<void>) => void = () => undefined,
) {
  const port = await freePort();
  const hosts = [`127.0.0.1:${port}`];
  const http = turnpikeHttp({ turnpike: bench.turnpike, tokens, hosts, page, log, ...options });
  const server = createServer((asked, response) => onHandled(http.handler(asked, response)));
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const close = async (): Promise<void> => {
    server.close();
    await http.close();
  };
  return { port, url: `http://127.0.0.1:${port}`, server, close };
}

/** Submits one step to this address. @returns its outcome */
async function stepOver(url: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = (path: string, body: string) => fetch(`${url}${path}`, { method: 'POST', headers, body });
  const { run_id } = (await (await post('/api/v1/agents', '{"case":"case-local"}')).json()) as { run_id: string };
  return ((await (await post(`/api/v1/agents/${run_id}/steps`, proposal('THINK'))).json()) as { outcome: string })
    .outcome;
}

test('as a plugin of another Fastify server, it leaves the bodies and errors of the other routes alone', async () => {
  const port = await freePort();
  const http = turnpikeHttp({ turnpike: bench.turnpike, tokens, hosts: [`127.0.0.1:${port}`], log });
  const fastify = Fastify({ logger: false });
  fastify.post('/own', (request) => ({ got: request.body }));
  fastify.setNotFoundHandler((_request, reply) => reply.code(404).send('his own'));
  fastify.get('/fails', () => Promise.reject(new Error('of his own')));
  await fastify.register(http.plugin);
  const url = await fastify.listen({ port, host: '127.0.0.1' });
  expect(await stepOver(url)).toBe('SUCCESS');
  const own = await fetch(`${url}/own`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"a":1}',
  });
  expect(await own.json()).toEqual({ got: { a: 1 } });
  const failed = await fetch(`${url}/fails`);
  expect([failed.status, ((await failed.json()) as { message: string }).message]).toEqual([500, 'of his own']);
  expect(await (await fetch(`${url}/nowhere`)).text()).toBe('his own');
  const ours = { headers: { authorization: `Bearer ${token}` } };
  expect(await (await fetch(`${url}/api/v1/nowhere`, ours)).text()).toContain('"NOT_FOUND"');
  expect(await (await fetch(`${url}/api/v1/runs`, { ...ours, method: 'PUT' })).text()).toContain('"METHOD_NOT_SERVED"');
  expect((await fetch(`${url}/api/v1/nowhere`)).status).toBe(401);
  // The same request guard as for the command.
  const health = ['GET /api/v1/health HTTP/1.1', 'Connection: close'];
  expect((await rawRequest(port, [...health, `Host: 127.0.0.1:${port}`])).status).toBe(401);
  const bearer = `Authorization: Bearer ${token}`;
  expect((await rawRequest(port, [...health, `Host: 127.0.0.1:${port}`, bearer])).status).toBe(200);
  expect((await rawRequest(port, [...health, 'Host: evil.example', bearer])).body).toContain('HOST_NOT_SERVED');
  // A HEAD request for a stream would wait forever, and would record a read for nothing.
  const bodiless = (path: string): Promise<Response> => fetch(`${url}${path}`, { ...ours, method: 'HEAD' });
  expect((await bodiless('/api/v1/stream')).status).toBe(405);
  expect((await bodiless('/api/v1/runs')).status).toBe(405);
  expect((await bodiless('/api/v1/health')).status).toBe(200);
  await fastify.close();
  await http.close();
});

test('a plain handler serves everything: steps, MCP, and the page without a token', async () => {
  const { port, url, close } = await serve();
  expect(await stepOver(url)).toBe('SUCCESS');
  expect((await fetch(`${url}/mcp`, { method: 'POST' })).status).toBe(401);
  const index = await fetch(url);
  expect([index.status, await index.text()]).toEqual([200, '<!doctype html>']);
  const bare = await fetch(url, { method: 'HEAD' });
  expect([bare.status, bare.headers.get('content-length'), await bare.text()]).toEqual([200, '15', '']);
  expect((await fetch(url, { method: 'POST' })).status).toBe(401);
  const put = await fetch(url, { method: 'PUT', headers: { authorization: `Bearer ${token}` } });
  expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  expect((await fetch(`${url}/assets/c.js`)).status).toBe(401);
  // A client that leaves during a request, or sends garbage, does not affect others.
  const half = connect(port, '127.0.0.1');
  half.write(`POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`);
  half.write('Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"la');
  half.destroy();
  expect(await stepOver(url)).toBe('SUCCESS');
  await close();
});

test('a client that leaves during an MCP message makes the plain handler neither throw nor log', async () => {
  const errors: string[] = [];
  const noting: Log = { ...log, error: (message) => void errors.push(message) };
  const handled: Promise<unknown>[] = [];
  const { port, url, server, close } = await serve({ log: noting }, (result) => handled.push(result));
  const half = connect(port, '127.0.0.1').on('error', () => undefined);
  half.write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`);
  half.write('Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"js');
  await once(server, 'request');
  half.destroy();
  expect(await Promise.allSettled(handled)).toEqual([{ status: 'fulfilled', value: undefined }]);
  expect(await stepOver(url)).toBe('SUCCESS');
  expect(errors).toEqual([]);
  await close();
});

test('a client that does not read the page does not block it for others', async () => {
  const large = new Map([['/', { bytes: Buffer.alloc(16_000_000, 1), type: 'text/html', immutable: false }]]);
  const { port, url, close } = await serve({ page: large, admission: { kinds: { live: { queueMs: 100 } } } });
  const deaf = Array.from({ length: 16 }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.pause();
    socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    return socket;
  });
  await Promise.all(deaf.map((socket) => once(socket, 'ready')));
  for (let n = 0; n < 3; n += 1) {
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
  }
  for (const socket of deaf) socket.destroy();
  await close();
});

test.each([
  ['an escape', '/api/v1/%72uns', {}, {}],
  ['a fragment', '/api/v1/runs#limit=1', {}, {}],
  ['a prefix', '/turnpike/api/v1/runs', { prefix: '/turnpike' }, {}],
  ['a slash more', '/api/v1/runs/', {}, { routerOptions: { ignoreTrailingSlash: true } }],
  ['capital letters', '/API/v1/runs', {}, { routerOptions: { caseSensitive: false } }],
])('in a Fastify of somebody else a read is admitted as one, by %s too', async (_how, path, registered, options) => {
  const port = await freePort();
  const grants = { actor: 'anna', role: 'SANDBOX_AGENT', rights: ['observe'] as const };
  const reader = mintToken(grants, systemClock(), nanoidIds());
  const book = tokenBook(() => [reader.record], systemClock());
  const http = turnpikeHttp({ turnpike: bench.turnpike, tokens: book, hosts: [`127.0.0.1:${port}`], log });
  const fastify = Fastify({ logger: false, ...options });
  await fastify.register(http.plugin, registered);
  await fastify.listen({ port, host: '127.0.0.1' });
  const lines = [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${reader.token}`, 'Connection: close'];
  expect((await rawRequest(port, [`GET ${path} HTTP/1.1`, ...lines])).status).toBe(200);
  const metrics = `${(registered as { prefix?: string }).prefix ?? ''}/api/v1/metrics`;
  const { body } = await rawRequest(port, [`GET ${metrics} HTTP/1.1`, ...lines]);
  expect(body).toMatch(/turnpike_requests_admitted_total\{kind="read"\} 1\n/);
  await fastify.close();
  await http.close();
});

test('the page has a content security policy that lets it contact only this server', async () => {
  const { port, close } = await serve();
  const get = (path: string) =>
    rawRequest(port, [`GET ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`, 'Connection: close']);
  const { headers } = await get('/');
  expect(headers['content-security-policy']?.split('; ').sort()).toEqual([
    "base-uri 'none'",
    "connect-src 'self'",
    "default-src 'none'",
    "font-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "img-src 'self' data:",
    "require-trusted-types-for 'script'",
    "script-src 'self'",
    "style-src 'self'",
    'trusted-types inspector',
    "worker-src 'self'",
  ]);
  const everywhere = {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  };
  expect(headers).toMatchObject({
    ...everywhere,
    'cache-control': 'no-store',
    'content-type': 'text/html; charset=utf-8',
  });
  const asset = (await get('/assets/a.js')).headers;
  expect(asset).toMatchObject({ ...everywhere, 'cache-control': 'public, max-age=31536000, immutable' });
  for (const told of [headers, asset]) {
    for (const name of ['set-cookie', 'access-control-allow-origin', 'server', 'x-powered-by']) {
      expect(told).not.toHaveProperty(name);
    }
  }
  await close();
});

test('large responses are compressed only for clients that accept it', async () => {
  const { port, close } = await serve();
  // This client does not decompress: the bytes are as received.
  const get = (path: string, encoding: string | null): Promise<{ headers: IncomingHttpHeaders; bytes: Buffer }> =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(encoding === null ? {} : { 'accept-encoding': encoding }),
      };
      request({ host: '127.0.0.1', port, path, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve({ headers: response.headers, bytes: Buffer.concat(chunks) }));
      })
        .on('error', reject)
        .end();
    });
  for (const path of ['/assets/b.css', '/api/v1/openapi.json']) {
    const plain = await get(path, null);
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(plain.headers['vary']).toBe('Accept-Encoding');
    for (const taken of ['gzip', 'br, gzip;q=0.5', '*', 'GZIP', 'x-gzip']) {
      const { headers, bytes } = await get(path, taken);
      expect(headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(bytes.byteLength) });
      expect(headers['vary']).toBe('Accept-Encoding');
      expect(bytes.byteLength).toBeLessThan(plain.bytes.byteLength / 4);
      expect(gunzipSync(bytes).equals(plain.bytes)).toBe(true);
    }
    for (const refused of ['br', 'gzip;q=0', '*;q=0', 'gzip;q=0.0, *', 'identity', '']) {
      const { headers, bytes } = await get(path, refused);
      expect(headers).not.toHaveProperty('content-encoding');
      expect(bytes.equals(plain.bytes)).toBe(true);
    }
  }
  // Small responses are not compressed.
  expect((await get('/api/v1/health', 'gzip')).headers).not.toHaveProperty('content-encoding');
  expect((await get('/api/v1/runs', 'gzip')).headers).not.toHaveProperty('content-encoding');
  expect((await get('/assets/a.js', 'gzip')).headers).not.toHaveProperty('content-encoding');
  await close();
});

test('a response that may combine text chosen by an agent with a proof, content or a response is never compressed', () => {
  expect(ROUTES.filter(({ isCompressed }) => isCompressed).map(({ path }) => path)).toEqual([
    '/api/v1/runs',
    '/api/v1/runs/{run_id}/tree',
    '/api/v1/events',
    '/api/v1/inspector/rows',
    '/api/v1/inspector/entries',
    '/api/v1/inspector/courses/{run_id}',
    '/api/v1/openapi.json',
  ]);
});

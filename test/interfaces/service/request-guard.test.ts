// The request guard, tested with requests as raw bytes.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, statSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawToken, storeToken } from '../../../src/stores/keys/access-token.js';
import { serveHttp, type McpHttpServer } from '../../../src/interfaces/mcp/serve-http.js';
import { MESSAGE_BYTES_MAX } from '../../../src/interfaces/mcp/read-message.js';
import { Bench } from '../../fixtures/bench.js';
import { GREETING, serviceOn, traces } from '../mcp/mcp-harness.js';
import { rawRequest, type RawAnswer } from './raw-http.js';

const token = drawToken();
let bench: Bench;
let server: McpHttpServer;
let port: number;

beforeAll(async () => {
  bench = await Bench.open();
  server = await serveHttp(serviceOn(bench), {
    host: '127.0.0.1',
    port: 0,
    token,
    hosts: ['turnpike.example'],
    origins: ['https://page.example'],
  });
  port = Number(new URL(server.url).port);
});
afterAll(async () => {
  await server.close();
  await bench.close();
});

const GREETING_TEXT = JSON.stringify(GREETING);

interface Sent {
  readonly first?: string;
  /** Null: no such header. A list: one header for each value. */
  readonly host?: string | null | readonly string[];
  readonly authorization?: string | null;
  readonly type?: string | null;
  readonly more?: readonly string[];
  readonly body?: string;
}

/** A valid `initialize` request, with the named parts replaced. */
function greet({
  first = 'POST /mcp HTTP/1.1',
  host,
  authorization,
  type,
  more = [],
  body = GREETING_TEXT,
}: Sent = {}): Promise<RawAnswer> {
  const header = (
    name: string,
    value: string | null | readonly string[] | undefined,
    usual: string,
  ): readonly string[] =>
    [value === undefined ? usual : value].flat().flatMap((one) => (one === null ? [] : [`${name}: ${one}`]));
  return rawRequest(
    port,
    [
      first,
      ...header('Host', host, `127.0.0.1:${port}`),
      ...header('Authorization', authorization, `Bearer ${token}`),
      ...header('Content-Type', type, 'application/json'),
      'Accept: application/json, text/event-stream',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      ...more,
    ],
    body,
  );
}

const local = (text: string): string => text.replace('PORT', String(port));

describe('Host: must occur exactly once and be configured', () => {
  test.each([
    ['the address', '127.0.0.1:PORT', 200],
    ['the name', 'localhost:PORT', 200],
    ['the address of IPv6', '[::1]:PORT', 200],
    ['one that was added', 'turnpike.example', 200],
    ['a rebound name (CVE-2025-66414)', 'evil.example', 403],
    ['a rebound name with our port', 'evil.example:PORT', 403],
    ['our name without the port', 'localhost', 403],
    ['our name with another port', 'localhost:1', 403],
    ['our name in capitals', 'LOCALHOST:PORT', 403],
    ['our name and more', 'localhost:PORT.evil.example', 403],
    ['our name with a dot at the end', 'localhost.:PORT', 403],
    ['an address without brackets', '::1:PORT', 403],
    ['a name before ours', 'evil.example@localhost:PORT', 403],
    ['nothing', '', 403],
  ])('%s: %s', async (_why, host, status) => {
    expect((await greet({ host: local(host) })).status).toBe(status);
  });

  test('refuses a request without Host, and one with two', async () => {
    expect((await greet({ host: null })).status).toBe(400);
    expect((await greet({ host: [`127.0.0.1:${port}`, 'evil.example'] })).status).toBe(400);
    expect((await greet({ host: ['evil.example', `127.0.0.1:${port}`] })).status).toBe(400);
    expect((await greet({ first: 'POST /mcp HTTP/1.0', host: null })).status).toBe(403);
  });
});

describe('Origin: must be absent or configured', () => {
  test.each([
    ['of the server itself', 'Origin: http://127.0.0.1:PORT', 200],
    ['of the server by its name', 'Origin: http://localhost:PORT', 200],
    ['that was added', 'Origin: https://page.example', 200],
    ['of another page', 'Origin: https://evil.example', 403],
    ['of a page without one', 'Origin: null', 403],
    ['that is nothing', 'Origin:', 403],
    ['that is no URL', 'Origin: :::', 403],
    ['of another scheme', 'Origin: https://127.0.0.1:PORT', 403],
    ['of another port', 'Origin: http://127.0.0.1:1', 403],
    ['that begins like ours', 'Origin: http://127.0.0.1:PORT.evil.example', 403],
    ['twice', 'Origin: http://127.0.0.1:PORT\r\nOrigin: https://evil.example', 400],
  ])('%s: %s', async (_why, header, status) => {
    expect((await greet({ more: [header.replaceAll('PORT', String(port))] })).status).toBe(status);
  });

  test.each([
    ['none', 200],
    ['same-origin', 200],
    ['same-site', 403],
    ['cross-site', 403],
    ['', 403],
    ['None', 403],
  ])('Sec-Fetch-Site %s: %s', async (site, status) => {
    expect((await greet({ more: [`Sec-Fetch-Site: ${site}`] })).status).toBe(status);
  });
});

describe('the bearer token', () => {
  const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
  test.each([
    ['the token', `Bearer ${token}`, 200],
    ['the scheme in other letters', `bearer ${token}`, 200],
    ['none', null, 401],
    ['nothing', '', 401],
    ['the scheme alone', 'Bearer', 401],
    ['another of the same length', `Bearer ${wrong}`, 401],
    ['the beginning', `Bearer ${token.slice(0, 20)}`, 401],
    ['the token and more', `Bearer ${token}x`, 401],
    ['the token and a comma', `Bearer ${token}, Bearer x`, 401],
    ['without the scheme', token, 401],
    ['another scheme', `Basic ${token}`, 401],
    ['a very long one', `Bearer ${'x'.repeat(5_000)}`, 401],
  ])('%s', async (_what, authorization, status) => {
    const answer = await greet({ authorization });
    expect(answer.status).toBe(status);
    if (status === 401) expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="turnpike"/);
  });

  test('is refused in the query string, in a cookie, and in two headers', async () => {
    expect((await greet({ first: `POST /mcp?access_token=${token} HTTP/1.1`, authorization: null })).status).toBe(401);
    expect((await greet({ authorization: null, more: [`Cookie: token=${token}`] })).status).toBe(401);
    expect((await greet({ more: ['Authorization: Bearer x'] })).status).toBe(400);
  });

  test('is required for every method and path, so a client without it learns nothing about them', async () => {
    for (const first of ['GET / HTTP/1.1', 'OPTIONS /mcp HTTP/1.1', 'GET /nothing HTTP/1.1', 'DELETE /mcp HTTP/1.1']) {
      expect((await greet({ first, authorization: null })).status).toBe(401);
    }
  });

  test('is generated for each server, and stored in a file that only the owner can read', () => {
    expect(Buffer.from(drawToken(), 'base64url')).toHaveLength(32);
    expect(drawToken()).not.toBe(drawToken());
    const path = join(bench.folder, 'mcp-token');
    const forget = storeToken(path, token);
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual([`${token}\n`, 0o600]);
    forget();
    expect(existsSync(path)).toBe(false);
  });
});

describe('the request line', () => {
  test.each([
    ['POST /mcp HTTP/1.1', 200],
    ['POST /mcp?a=b HTTP/1.1', 200],
    ['POST / HTTP/1.1', 404],
    ['POST /mcp/ HTTP/1.1', 404],
    ['POST /mcp/../mcp HTTP/1.1', 404],
    ['POST //mcp HTTP/1.1', 404],
    ['POST /constructor HTTP/1.1', 404],
    ['POST http://evil.example/mcp HTTP/1.1', 404],
    ['GET /mcp HTTP/1.1', 405],
    ['PUT /mcp HTTP/1.1', 405],
    ['OPTIONS /mcp HTTP/1.1', 405],
    ['TRACE /mcp HTTP/1.1', 405],
  ])('%s: %s', async (first, status) => {
    const answer = await greet({ first });
    expect(answer.status).toBe(status);
    if (status === 405) expect(answer.headers['allow']).toBe('POST, DELETE');
  });
});

describe('the body', () => {
  test.each([
    ['JSON', 'application/json', 200],
    ['JSON with its charset', 'application/json; charset=utf-8', 200],
    ['a form', 'application/x-www-form-urlencoded', 415],
    ['a form with parts', 'multipart/form-data; boundary=x', 415],
    ['text', 'text/plain', 415],
    ['text that claims to be JSON', 'text/plain; application/json', 415],
    ['JSON that says more', 'application/json; charset=utf-16', 415],
    ['almost JSON', 'application/jsonp', 415],
    ['nothing', null, 415],
  ])('%s: %s', async (_what, type, status) => {
    expect((await greet({ type })).status).toBe(status);
  });

  test('is refused if it has a content encoding', async () => {
    expect((await greet({ more: ['Content-Encoding: gzip'] })).status).toBe(415);
    expect((await greet({ more: ['Content-Encoding: identity'] })).status).toBe(200);
  });

  test.each([
    ['no JSON', 'hello', -32_700],
    ['a key twice', GREETING_TEXT.replace('"id":1', '"id":1,"\\u0069d":2'), -32_700],
    ['a prototype', GREETING_TEXT.replace('"capabilities":{}', '"capabilities":{"__proto__":{}}'), -32_700],
    ['a hundred brackets', '['.repeat(100) + ']'.repeat(100), -32_700],
    ['a lone surrogate', GREETING_TEXT.replace('test', '\\ud800'), -32_700],
    ['half a character', GREETING_TEXT.replace('test', 'BYTE'), -32_700],
    ['two messages', `${GREETING_TEXT}${GREETING_TEXT}`, -32_700],
    ['nothing', '', -32_700],
    ['no greeting', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32_000],
    ['no message', '{"hello":1}', -32_600],
  ])('%s: 400', async (_what, body, code) => {
    const sent = body.includes('BYTE') ? Buffer.from(body.replace('BYTE', '\u00ff'), 'latin1') : body;
    const head = ['POST /mcp HTTP/1.1', `Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`];
    const form = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(sent)}`, 'Connection: close'];
    const answer = await rawRequest(port, [...head, ...form], sent);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ jsonrpc: '2.0', error: { code } });
  });

  test('413: a body over the limit is not read, whether declared or sent in chunks', async () => {
    const head = [
      'POST /mcp HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
    ];
    const announced = await rawRequest(port, [...head, `Content-Length: ${MESSAGE_BYTES_MAX + 1}`]);
    expect(announced.status).toBe(413);
    const size = MESSAGE_BYTES_MAX + 1;
    const sent = await rawRequest(
      port,
      [...head, 'Transfer-Encoding: chunked'],
      `${size.toString(16)}\r\n${' '.repeat(size)}`,
    );
    expect(sent.status).toBe(413);
  });

  test('is refused with both a length and chunks', async () => {
    expect((await greet({ more: ['Transfer-Encoding: chunked'] })).status).toBe(400);
  });
});

test('every response forbids caching, and reveals nothing about the machine', async () => {
  for (const answer of [await greet(), await greet({ host: 'evil.example' }), await greet({ authorization: null })]) {
    expect(answer.headers).toMatchObject({
      'cache-control': expect.stringMatching(/no-store|no-cache/),
      'x-content-type-options': 'nosniff',
    });
    expect(answer.headers['x-powered-by']).toBeUndefined();
    expect(answer.body).not.toContain('evil');
  }
});

test('none of these requests became a step', async () => {
  expect(await traces(bench)).toEqual([]);
});

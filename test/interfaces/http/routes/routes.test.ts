// Every route with every kind of bad request, generated from the table of routes, so that new routes are covered.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RIGHTS } from '../../../../src/core/contract/token.js';
import { PROBLEMS, type ProblemCode } from '../../../../src/interfaces/service/problems.js';
import { BODY_BYTES_MAX, STEP_BYTES_MAX } from '../../../../src/interfaces/http/http-plugin.js';
import { BinaryBody, methodsOf, EmptyObject, type Route } from '../../../../src/interfaces/http/routes/route.js';
import { ROUTES } from '../../../../src/interfaces/http/routes/system-routes.js';
import { rawRequest, type RawAnswer } from '../../service/raw-http.js';
import { HttpBench } from '../http-harness.js';

/** A marker in everything that a caller can choose: no response may contain it. */
const MARK = 'zzLEAKzz';

let http: HttpBench;
/** Tokens by their rights. */
const tokens = new Map<string, string>();

beforeAll(async () => {
  http = await HttpBench.open({}, { admission: { failures: 1_000 } });
});
afterAll(() => http.close());

function tokenWith(rights: readonly (typeof RIGHTS)[number][]): string {
  const key = rights.join();
  const known = tokens.get(key) ?? http.token({ rights: [...rights] });
  tokens.set(key, known);
  return known;
}

const IDS: Readonly<Record<string, string>> = {
  run_id: `run_${MARK}0000000000000.1`,
  session_id: `ses_${MARK}`,
  log_index: '999999',
  sha256: 'f'.repeat(64),
  digest: 'f'.repeat(64),
  hash: 'f'.repeat(64),
  step: '1',
  client: 'claude-code',
};
const pathOf = ({ path }: Route): string => path.replace(/\{(\w+)\}/g, (_all, name: string) => IDS[name] ?? MARK);

interface Sent {
  readonly token?: string | null;
  readonly host?: readonly string[];
  readonly type?: string | null;
  readonly more?: readonly string[];
  readonly query?: string;
  readonly body?: string;
  /** A declared length without a body; 0: the body is sent with its own length. */
  readonly announced?: number;
}

function send(route: Route, { token, host, type, more = [], query = '', body, announced }: Sent): Promise<RawAnswer> {
  const posts = route.method === 'POST';
  const text = body ?? (posts ? '{}' : '');
  const length = announced ?? Buffer.byteLength(text);
  const form = type === undefined ? (posts ? 'application/json' : null) : type;
  const known = token === undefined ? tokenWith(route.rights.length === 0 ? ['act'] : route.rights) : token;
  const lines = [
    `${route.method} ${pathOf(route)}${query} HTTP/1.1`,
    ...(host ?? [`127.0.0.1:${http.server.port}`]).map((name) => `Host: ${name}`),
    ...(known === null ? [] : [`Authorization: Bearer ${known}`]),
    ...(form === null ? [] : [`Content-Type: ${form}`]),
    ...(length === 0 ? [] : [`Content-Length: ${length}`]),
    'Connection: close',
    ...more,
  ];
  return rawRequest(http.server.port, lines, announced === undefined || announced === 0 ? text : '');
}

function expectProblem(answer: RawAnswer, code: ProblemCode): void {
  const [status, detail] = PROBLEMS[code];
  expect({ status: answer.status, type: answer.headers['content-type'], body: answer.body }).toEqual({
    status,
    type: expect.stringMatching(/^application\/problem\+json/),
    body: expect.stringContaining(`"code":"${code}"`),
  });
  expect(JSON.parse(answer.body)).toEqual({
    type: `urn:turnpike:problem:${code}`,
    title: expect.any(String),
    status,
    detail,
    code,
  });
  expectNoLeak(answer);
}

function expectNoLeak({ headers, body }: RawAnswer): void {
  const told = `${JSON.stringify(headers)}${body}`;
  for (const secret of [
    MARK,
    http.bench.folder,
    'node_modules',
    'fastify',
    'FST_ERR',
    'Error:',
    '\\n    at ',
    ...tokens.values(),
  ]) {
    expect(told).not.toContain(secret);
  }
  expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
}

const named = ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const);
const posts = named.filter(([, { method }]) => method === 'POST');

describe.each(named)('%s', (_name, route) => {
  test('refuses requests without a valid token', async () => {
    expectProblem(await send(route, { token: null }), 'UNAUTHENTICATED');
    expectProblem(await send(route, { token: `${MARK}${'x'.repeat(30)}` }), 'UNAUTHENTICATED');
    expectProblem(await send(route, { token: null, query: `?access_token=${tokenWith(RIGHTS)}` }), 'UNAUTHENTICATED');
  });

  test('refuses a token without the right, whatever its other rights', async () => {
    const others = RIGHTS.filter((right) => !route.rights.includes(right));
    if (route.rights.length === 0 || others.length === 0) return;
    expectProblem(await send(route, { token: tokenWith(others) }), 'RIGHT_MISSING');
  });

  test('refuses another Host, two Hosts and another Origin before it checks the token', async () => {
    const own = `127.0.0.1:${http.server.port}`;
    expectProblem(await send(route, { host: [`${MARK}.example`] }), 'HOST_NOT_SERVED');
    expectProblem(await send(route, { host: [own, `${MARK}.example`] }), 'HEADER_TWICE');
    expectProblem(await send(route, { host: [`${MARK}.example`, own] }), 'HEADER_TWICE');
    expectProblem(await send(route, { more: ['Origin: null'] }), 'ORIGIN_NOT_ALLOWED');
    expectProblem(await send(route, { more: [`Origin: https://${MARK}.example`] }), 'ORIGIN_NOT_ALLOWED');
    expectProblem(await send(route, { more: ['Sec-Fetch-Site: cross-site'] }), 'ORIGIN_NOT_ALLOWED');
    expectProblem(await send(route, { token: null, more: ['Origin: null'] }), 'ORIGIN_NOT_ALLOWED');
  });

  test('does not read a body that is too large', async () => {
    const most = route.method === 'GET' ? 0 : route.body === BinaryBody ? STEP_BYTES_MAX : BODY_BYTES_MAX;
    expectProblem(await send(route, { announced: most + 1 }), 'BODY_TOO_LARGE');
    const size = most + 1;
    const chunked = await send(route, {
      body: `${size.toString(16)}\r\n${' '.repeat(size)}`,
      announced: 0,
      more: ['Transfer-Encoding: chunked'],
    });
    expectProblem(chunked, 'BODY_TOO_LARGE');
  });

  test('refuses unknown query parameters', async () => {
    expectProblem(await send(route, { query: `?${MARK}=1` }), 'INVALID_REQUEST');
  });

  test('refuses other methods with an Allow header, without reading a body', async () => {
    const known = tokenWith(RIGHTS);
    const allowed = ROUTES.filter(({ path }) => path === route.path).flatMap(methodsOf);
    for (const method of ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'SEARCH', 'TRACE'] as const) {
      if (allowed.includes(method)) continue;
      const answer = await rawRequest(http.server.port, [
        `${method} ${pathOf(route)} HTTP/1.1`,
        `Host: 127.0.0.1:${http.server.port}`,
        `Authorization: Bearer ${known}`,
        'Content-Type: application/json',
        // Declared and never sent: a server that waited for the body would not respond.
        'Content-Length: 5',
      ]);
      const told = { status: answer.status, allow: answer.headers['allow'], connection: answer.headers['connection'] };
      expect({ method, ...told }).toEqual({ method, status: 405, allow: allowed.join(', '), connection: 'close' });
      if (method !== 'HEAD') expectProblem(answer, 'METHOD_NOT_SERVED');
      expectNoLeak(answer);
    }
  });

  test('leaks nothing of the request in other responses', async () => {
    if (route.path.endsWith('/stream')) return;
    const answer = await send(route, { body: route.method === 'GET' ? '' : '{}' });
    expect(answer.status).not.toBe(500);
    expectNoLeak(answer);
  });
});

describe.each(posts)('%s: its body', (_name, route) => {
  test('is refused with another content type', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', `${MARK}/x`, null]) {
      expectProblem(await send(route, { type, body: '{}' }), 'UNSUPPORTED_TYPE');
    }
    expectProblem(await send(route, { more: ['Content-Encoding: gzip'] }), 'UNSUPPORTED_TYPE');
  });

  test('is refused with an idempotency key if the route does not support keys', async () => {
    const isKept = ['/access/v1/evaluation', '/api/v1/agents', '/api/v1/agents/{run_id}/steps'].includes(route.path);
    expect(route.headers.includes('idempotency-key')).toBe(isKept);
    if (!isKept) expectProblem(await send(route, { more: [`Idempotency-Key: ${MARK}`] }), 'IDEMPOTENCY_NOT_KEPT');
  });

  test('must be strict JSON that matches the schema', async () => {
    if (route.body === BinaryBody) return;
    for (const body of ['', MARK, '{"a":1,"a":2}', '{"__proto__":{}}', '{"a":"\\ud800"}', '['.repeat(100)]) {
      expectProblem(await send(route, { body }), 'INVALID_JSON');
    }
    expectProblem(await send(route, { body: '[]' }), route.invalid);
    const { additionalProperties } = route.body as { readonly additionalProperties?: unknown };
    if (additionalProperties !== false) return;
    expectProblem(await send(route, { body: `{"${MARK}":"${MARK}"}` }), 'INVALID_REQUEST');
  });
});

test('an unknown path is 404 with a token and 401 without; another method is 405', async () => {
  const lost = { ...ROUTES[0]!, method: 'GET' as const, path: `/${MARK}`, rights: [], params: EmptyObject, body: null };
  expectProblem(await send(lost, {}), 'NOT_FOUND');
  expectProblem(await send(lost, { token: null }), 'UNAUTHENTICATED');
  for (const path of [`/api/v1/runs/%2e%2e`, `/api/v1/%zz`, `/api/v1/runs/${'x'.repeat(500)}`, '/assets/../x', '//']) {
    expectProblem(await send({ ...lost, path }, {}), 'NOT_FOUND');
  }
});

test.each([
  ['QUERY /', 'text/plain'],
  ['POST /', 'application/json'],
  ['POST /x', 'application/json'],
  ['POST /x', 'a/b'],
  ['PUT /api/v1/nowhere', 'application/json'],
  ['DELETE /x', 'application/json'],
  ['SEARCH /', 'text/plain'],
])('%s with a body of %s is answered by us, before the body has come', async (line, type) => {
  const answer = await rawRequest(http.server.port, [
    `${line} HTTP/1.1`,
    `Host: 127.0.0.1:${http.server.port}`,
    `Authorization: Bearer ${tokenWith(['act'])}`,
    `Content-Type: ${type}`,
    'Content-Length: 5',
  ]);
  // Node itself refuses an unknown method, with an empty body.
  if (line.startsWith('QUERY') && answer.body === '') expect(answer.status).toBe(400);
  else expectProblem(answer, 'NOT_FOUND');
});

test('health can be requested with HEAD', async () => {
  const head = (token: string): Promise<RawAnswer> =>
    rawRequest(http.server.port, [
      'HEAD /api/v1/health HTTP/1.1',
      `Host: 127.0.0.1:${http.server.port}`,
      `Authorization: Bearer ${token}`,
      'Connection: close',
    ]);
  expect(await head(tokenWith(['act']))).toMatchObject({ status: 200, body: '' });
  expect((await head(MARK)).status).toBe(401);
});

test('counts refused requests without a route', async () => {
  const counted = async (): Promise<string> => (await http.ask('/metrics', tokenWith(['observe']))).text();
  const numberOf = (text: string, labels: string): number =>
    Number(new RegExp(`turnpike_http_requests_total\\{${labels}\\} (\\d+)`).exec(text)?.[1] ?? 0);
  const lines = [
    'route="none",method="GET",status="401"',
    'route="none",method="GET",status="403"',
    'route="none",method="GET",status="404"',
    'route="none",method="PROPFIND",status="405"',
    'route="mcp",method="POST",status="401"',
    'route="mcp",method="POST",status="403"',
    'route="mcp",method="GET",status="405"',
  ];
  const before = await counted();
  const token = tokenWith(['observe']);
  const ask = (line: string, bearer: string, host = `127.0.0.1:${http.server.port}`): Promise<RawAnswer> =>
    rawRequest(http.server.port, [
      `${line} HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Bearer ${bearer}`,
      'Connection: close',
    ]);
  await ask('GET /api/v1/runs', MARK);
  await ask('GET /api/v1/runs', token, 'evil.example');
  await ask(`GET /${MARK}`, token);
  await ask('PROPFIND /api/v1/runs', token);
  await ask('POST /mcp', MARK);
  await ask('POST /mcp', token);
  await ask('GET /mcp', token);
  const after = await counted();
  expect(lines.map((line) => [line, numberOf(after, line) - numberOf(before, line)])).toEqual(
    lines.map((line) => [line, 1]),
  );
  expect(after).not.toContain(MARK);
});

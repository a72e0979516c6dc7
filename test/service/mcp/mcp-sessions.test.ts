// MCP sessions of several tokens at one service: each has its own, and none can close those of another.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HttpBench } from '../http/http-harness.js';

let http: HttpBench;
beforeEach(async () => {
  http = await HttpBench.open({}, { admission: { mcpSessionsPerToken: 3, mcpSessions: 5 } });
});
afterEach(() => http.close());

const post = (token: string, message: object, session?: string): Promise<Response> =>
  fetch(`${http.server.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });

async function opened(token: string): Promise<string | null> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const response = await post(token, { method: 'initialize', params });
  await response.text();
  return response.headers.get('mcp-session-id');
}

async function isKnown(token: string, session: string | null): Promise<boolean> {
  const response = await post(token, { method: 'ping' }, session ?? 'none');
  await response.text();
  return response.status === 200;
}

test('a token that opens many sessions closes its own, and none of another token', async () => {
  const [hostile, other] = [http.token(), http.token({ actor: 'agent-two' })];
  const theirs = await opened(other);
  const mine: (string | null)[] = [];
  for (let n = 0; n < 10; n += 1) mine.push(await opened(hostile));
  expect(await isKnown(other, theirs)).toBe(true);
  const known = await Promise.all(mine.map((session) => isKnown(hostile, session)));
  expect(known).toEqual([...Array.from({ length: 7 }, () => false), true, true, true]);
});

test('where all places are taken, a token with fewer sessions gets one of a token with more', async () => {
  const [many, few, third] = [http.token(), http.token({ actor: 'agent-two' }), http.token({ actor: 'agent-three' })];
  const sessions = [await opened(many), await opened(many), await opened(many)];
  const two = [await opened(few), await opened(few)];
  const one = await opened(third);
  expect(await Promise.all(sessions.map((session) => isKnown(many, session)))).toEqual([false, true, true]);
  expect(await Promise.all(two.map((session) => isKnown(few, session)))).toEqual([true, true]);
  expect(await isKnown(third, one)).toBe(true);
});

test('sessions that are opened at once are counted like any others', async () => {
  const [hostile, other] = [http.token(), http.token({ actor: 'agent-two' })];
  const theirs = await opened(other);
  await Promise.all(Array.from({ length: 20 }, () => opened(hostile)));
  expect(await isKnown(other, theirs)).toBe(true);
});

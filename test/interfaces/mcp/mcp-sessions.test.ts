// MCP sessions of several tokens on one service: no token can close the sessions of another.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { McpSessions } from '../../../src/interfaces/mcp/serve-http.js';
import { HttpBench } from '../http/http-harness.js';
import { openSession, postTo, serviceOn } from './mcp-harness.js';

let http: HttpBench;
beforeEach(async () => {
  http = await HttpBench.open({}, { admission: { mcpSessionsPerToken: 3, mcpSessions: 5 } });
});
afterEach(() => http.close());

const opened = (token: string): Promise<string> => openSession({ url: `${http.server.url}/mcp`, token });

async function isKnown(token: string, session: string): Promise<boolean> {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const response = await postTo({ url: `${http.server.url}/mcp`, token }, ping, { 'mcp-session-id': session });
  await response.text();
  return response.status === 200;
}

test('a token that opens too many sessions closes its own, and none of another token', async () => {
  const [hostile, other] = [http.token(), http.token({ actor: 'agent-two' })];
  const theirs = await opened(other);
  const mine: string[] = [];
  for (let n = 0; n < 10; n += 1) mine.push(await opened(hostile));
  expect(await isKnown(other, theirs)).toBe(true);
  const known = await Promise.all(mine.map((session) => isKnown(hostile, session)));
  expect(known).toEqual([...Array.from({ length: 7 }, () => false), true, true, true]);
});

test('at the limit of the service, a token with fewer sessions gets the slot of one with more', async () => {
  const [many, few, third] = [http.token(), http.token({ actor: 'agent-two' }), http.token({ actor: 'agent-three' })];
  const sessions = [await opened(many), await opened(many), await opened(many)];
  const two = [await opened(few), await opened(few)];
  const one = await opened(third);
  expect(await Promise.all(sessions.map((session) => isKnown(many, session)))).toEqual([false, true, true]);
  expect(await Promise.all(two.map((session) => isKnown(few, session)))).toEqual([true, true]);
  expect(await isKnown(third, one)).toBe(true);
});

test('sessions opened concurrently are counted like any others', async () => {
  const [hostile, other] = [http.token(), http.token({ actor: 'agent-two' })];
  const theirs = await opened(other);
  const mine = await Promise.all(Array.from({ length: 20 }, () => opened(hostile)));
  expect(await isKnown(other, theirs)).toBe(true);
  const known = await Promise.all(mine.map((session) => isKnown(hostile, session)));
  expect(known.filter((isOpen) => isOpen)).toHaveLength(3);
});

test('closes the session of the token that was used longest ago', async () => {
  const token = http.token();
  const sessions = [await opened(token), await opened(token), await opened(token)];
  expect(await isKnown(token, sessions[0]!)).toBe(true);
  await opened(token);
  expect([await isKnown(token, sessions[1]!), await isKnown(token, sessions[0]!)]).toEqual([false, true]);
});

test('does not close a session with an outstanding request; if all have one, opens none', async () => {
  const service = serviceOn(http.bench);
  const sessions = new McpSessions({ mcpSessions: 5, mcpSessionsPerToken: 2 });
  const [first, second] = [await sessions.open(service), await sessions.open(service)];
  if (first === 'full' || second === 'full') throw new Error('there was no room');
  const closed: string[] = [];
  for (const [name, { transport }] of [['first', first] as const, ['second', second] as const]) {
    const { onclose } = transport;
    transport.onclose = () => {
      closed.push(name);
      onclose?.();
    };
  }
  first.pending += 1;
  second.pending += 1;
  expect(await sessions.open(service)).toBe('full');
  expect(closed).toEqual([]);
  second.pending -= 1;
  expect(await sessions.open(service)).not.toBe('full');
  expect(closed).toEqual(['second']);
  await sessions.close();
});

test('concurrent openings each close an open session, so the limit holds', async () => {
  const service = serviceOn(http.bench);
  const sessions = new McpSessions({ mcpSessions: 5, mcpSessionsPerToken: 2 });
  const opening = Array.from({ length: 5 }, () => sessions.open(service));
  const opened = (await Promise.all(opening)).filter((session) => session !== 'full');
  expect(opened).toHaveLength(5);
  expect(opened.map(({ id }) => sessions.get(id, service) !== undefined)).toEqual([false, false, false, true, true]);
  await sessions.close();
});

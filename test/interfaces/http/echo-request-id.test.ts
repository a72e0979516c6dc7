// The id of a request in the server of an embedding service; test/features/decisions/routes/decision-routes.test.ts has
// the handler.

import { describe, expect, test } from '@jest/globals';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { admitWithRequestId } from '../../../src/interfaces/http/echo-request-id.js';
import type { EnteredRoute } from '../../../src/interfaces/http/http-plugin.js';

function returned(id: string | undefined, headers: EnteredRoute['headers'] | null): Record<string, unknown> {
  const set: Record<string, unknown> = {};
  const route = headers === null ? undefined : ({ method: 'POST', path: '/x', headers } as unknown as EnteredRoute);
  const response = { setHeader: (name: string, value: unknown) => (set[name] = value) } as unknown as ServerResponse;
  const request = { headers: { 'x-request-id': id } } as unknown as IncomingMessage;
  expect(admitWithRequestId(() => null)(request, response, route)).toBeNull();
  return set;
}

describe('admitWithRequestId', () => {
  test('returns the id of a request for a route that takes one', () => {
    expect(returned('one', ['x-request-id'])).toEqual({ 'X-Request-ID': 'one' });
  });

  test.each([
    ['another route', 'one', []],
    ['no route', 'one', null],
    ['no id', undefined, ['x-request-id']],
    ['an id with a space', 'a b', ['x-request-id']],
    ['a long id', 'x'.repeat(129), ['x-request-id']],
  ] as const)('returns nothing for %s', (_what, id, headers) => {
    expect(returned(id, headers)).toEqual({});
  });
});

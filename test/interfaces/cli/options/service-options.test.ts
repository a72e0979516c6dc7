// The options of all commands that serve, on the commands themselves. What happens after a failed write:
// test/interfaces/service/failures.

import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { initialised, turnpike } from '../fake-io.js';

const stop = AbortSignal.abort();
const SERVE = ['serve', '--port', '0', '--stored-tokens'];

test('prints the port of the admin listener that it has chosen', async () => {
  const folder = await initialised();
  const { code, stderr } = await turnpike(folder, [...SERVE, '--admin', '127.0.0.1:0'], { stop });
  expect(code).toBe(0);
  expect(stderr).toMatch(/^livez, readyz and metrics: http:\/\/127\.0\.0\.1:\d+\nhttp:\/\/127\.0\.0\.1:\d+\n$/);
});

test('refuses an address that is taken before it opens the home', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => other.once('listening', done));
  const { port } = other.address() as AddressInfo;
  const { code, stderr } = await turnpike(await initialised(), [...SERVE, '--admin', `127.0.0.1:${port}`], { stop });
  other.close();
  expect(code).toBe(2);
  expect(stderr).toBe(`USAGE: 127.0.0.1:${port} cannot be listened on (EADDRINUSE): name another address\n`);
});

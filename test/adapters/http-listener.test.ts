import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { listenHttp, type HttpListener, type HttpListening } from '../../src/adapters/http-listener.js';
import { UsageError } from '../../src/errors.js';
import { rawRequest } from '../service/raw-http.js';

const CONNECTIONS_MAX = 256;
const failures: unknown[] = [];
let listener: HttpListener;

async function listen(handle: HttpListening['handle']): Promise<void> {
  failures.length = 0;
  listener = await listenHttp({ host: '127.0.0.1', port: 0, handle, failed: (error) => failures.push(error) });
}
afterEach(() => listener.close(0));

const get = ['GET / HTTP/1.1', 'Host: x'];

test('a handler that throws closes the connection, and is told of', async () => {
  await listen(() => Promise.reject(new Error('broken')));
  await expect(rawRequest(listener.port, get)).rejects.toThrow('no answer');
  expect(failures).toEqual([new Error('broken')]);
});

test('headers have a limit', async () => {
  await listen(() => Promise.resolve());
  expect((await rawRequest(listener.port, [...get, `X: ${'x'.repeat(20_000)}`])).status).toBe(431);
});

test('connections have a limit: one more is hung up on', async () => {
  await listen((_request, response) => {
    response.end('here');
    return Promise.resolve();
  });
  const sockets: Socket[] = [];
  for (let i = 0; i < CONNECTIONS_MAX; i += 1) {
    const socket = connect(listener.port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'connect');
  }
  await expect(rawRequest(listener.port, get)).rejects.toThrow('no answer');
  sockets[0]?.destroy();
  sockets[1]?.write(`${get.join('\r\n')}\r\n\r\n`);
  expect(String(await once(sockets[1]!, 'data'))).toContain('200');
  for (const socket of sockets) socket.destroy();
});

test('closing hangs up on whoever is not done in time', async () => {
  await listen(() => new Promise(() => undefined));
  const answer = rawRequest(listener.port, get);
  answer.catch(() => undefined);
  const silent = connect(listener.port, '127.0.0.1').on('error', () => undefined);
  await once(silent, 'connect');
  await listener.close(10);
  await expect(answer).rejects.toThrow('no answer');
  await listen(() => Promise.resolve());
});

test('an address that is taken, or that is nobody’s, is wrong usage', async () => {
  await listen(() => Promise.resolve());
  const at = (host: string, port: number) =>
    listenHttp({ host, port, handle: () => Promise.resolve(), failed: () => undefined });
  await expect(at('127.0.0.1', listener.port)).rejects.toThrow(UsageError);
  await expect(at('192.0.2.1', 0)).rejects.toThrow(UsageError);
});

import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { listenHttp, type HttpListener, type HttpListenOptions } from '../../../src/system/network/http-listener.js';
import { UsageError } from '../../../src/core/errors.js';
import { rawRequest } from '../../interfaces/service/raw-http.js';

/** Few, so that all are open long before the first of them has been silent for too long. */
const CONNECTIONS_MAX = 16;
const AT = { host: '127.0.0.1', port: 0, connections: CONNECTIONS_MAX };
const failures: unknown[] = [];
let listener: HttpListener;

async function listen(handle: HttpListenOptions['handle']): Promise<void> {
  failures.length = 0;
  listener = await listenHttp({ ...AT, handle, onError: (error) => failures.push(error) });
}
afterEach(() => listener.close(0));

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const get = ['GET / HTTP/1.1', 'Host: x'];

test('a handler that throws closes the connection, and the error is reported', async () => {
  await listen(() => Promise.reject(new Error('broken')));
  await expect(rawRequest(listener.port, get)).rejects.toThrow('no answer');
  expect(failures).toEqual([new Error('broken')]);
});

test('headers have a limit', async () => {
  await listen(() => Promise.resolve());
  expect((await rawRequest(listener.port, [...get, `X: ${'x'.repeat(20_000)}`])).status).toBe(431);
});

test('the number of connections is limited: a new one beyond it closes the one that has been idle longest', async () => {
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
  // The second one is no longer the one that has been idle longest.
  sockets[1]?.write(`${get.join('\r\n')}\r\n\r\n`);
  expect(String(await once(sockets[1]!, 'data'))).toContain('200');
  const closed = Promise.all([sockets[0], sockets[2]].map((socket) => once(socket!, 'close')));
  expect((await rawRequest(listener.port, get)).status).toBe(200);
  expect((await rawRequest(listener.port, get)).status).toBe(200);
  await closed;
  sockets[1]?.write(`${get.join('\r\n')}\r\n\r\n`);
  expect(String(await once(sockets[1]!, 'data'))).toContain('200');
  for (const socket of sockets) socket.destroy();
});

test('if all connections have requests in flight, none of them is closed and the new one is refused', async () => {
  let begun = 0;
  await listen(() => {
    begun += 1;
    return new Promise(() => undefined);
  });
  const sockets: Socket[] = [];
  for (let i = 0; i < CONNECTIONS_MAX; i += 1) {
    const socket = connect(listener.port, '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(`${get.join('\r\n')}\r\n\r\n`);
  }
  await until(() => begun === CONNECTIONS_MAX);
  await expect(rawRequest(listener.port, get)).rejects.toThrow('no answer');
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([]);
  for (const socket of sockets) socket.destroy();
});

test('of pipelined requests only a few are parsed before the first answers, and all are answered', async () => {
  let [begun, most, outstanding] = [0, 0, 0];
  await listen((_request, response) => {
    begun += 1;
    outstanding += 1;
    most = Math.max(most, outstanding);
    setTimeout(() => {
      outstanding -= 1;
      response.end('here');
    }, 5);
    return Promise.resolve();
  });
  const socket = connect(listener.port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.write(`${get.join('\r\n')}\r\n\r\n`.repeat(1_000));
  await until(() => begun === 1_000 && outstanding === 0);
  await until(() => text.match(/200 OK/g)?.length === 1_000);
  // A piece of 512 bytes contains 17 of them.
  expect(most).toBeLessThan(25);
  socket.destroy();
});

test('a client that keeps sending without reading answers is disconnected after the answers to its parsed requests', async () => {
  let begun = 0;
  await listen((_request, response) => {
    begun += 1;
    setTimeout(() => response.end('here'), 100);
    return Promise.resolve();
  });
  const socket = connect(listener.port, '127.0.0.1').on('error', () => undefined);
  const closed = once(socket, 'close');
  socket.resume();
  const many = Buffer.from(`${get.join('\r\n')}\r\n\r\n`.repeat(20_000));
  socket.write(many);
  await closed;
  expect(begun).toBeLessThan(25);
});

test('a large body arrives complete, however it is split, and requests follow it on the same connection', async () => {
  const bodies: string[] = [];
  await listen(async (request, response) => {
    let body = '';
    for await (const chunk of request as AsyncIterable<Buffer>) body += chunk.toString('latin1');
    bodies.push(body);
    response.end();
  });
  const socket = connect(listener.port, '127.0.0.1');
  const sent = ['a'.repeat(300_000), '', 'b'.repeat(5_000), 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100)];
  socket.write(
    sent.map((body) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`).join(''),
  );
  await until(() => bodies.length === sent.length);
  expect(new Set(bodies)).toEqual(new Set(sent));
  socket.destroy();
});

test('closing disconnects clients that are not done in time', async () => {
  await listen(() => new Promise(() => undefined));
  const answer = rawRequest(listener.port, get);
  answer.catch(() => undefined);
  const silent = connect(listener.port, '127.0.0.1').on('error', () => undefined);
  await once(silent, 'connect');
  await listener.close(10);
  await expect(answer).rejects.toThrow('no answer');
  await listen(() => Promise.resolve());
});

test('an address that is in use, or belongs to no interface, is a usage error', async () => {
  await listen(() => Promise.resolve());
  const at = (host: string, port: number) =>
    listenHttp({ host, port, handle: () => Promise.resolve(), onError: () => undefined });
  await expect(at('127.0.0.1', listener.port)).rejects.toThrow(UsageError);
  await expect(at('192.0.2.1', 0)).rejects.toThrow(UsageError);
});

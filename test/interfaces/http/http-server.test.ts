// A server whose handler cannot be created leaves nothing behind: no port, no timer.

import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { TlsCertificate } from '../../../src/system/network/tls-certificate.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { serveTurnpike, type ServeOptions } from '../../../src/interfaces/http/serve.js';
import { startHttpServer } from '../../../src/interfaces/http/http-server.js';
import { Bench } from '../../fixtures/bench.js';
import { makeCertificate, withOpenssl } from '../../fixtures/certificate.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const log = winstonLog('silent');
const place = { host: '127.0.0.1', port: 0, closeMs: 10, log };

/** What a connection to a port of this machine meets. */
async function connectionTo(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return 'accepted';
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  } finally {
    socket.destroy();
  }
}

test('frees its port if the handler cannot be created', async () => {
  let port = 0;
  const starting = startHttpServer(place, (bound) => {
    port = bound;
    throw new Error('no handler');
  });
  await expect(starting).rejects.toThrow('no handler');
  expect(await connectionTo(port)).toBe('ECONNREFUSED');
});

withOpenssl('a certificate', () => {
  test('is not looked at any more if the handler cannot be created', async () => {
    const clock = new ManualClock();
    const tls = new TlsCertificate(makeCertificate(tempFolder(), 'server'), clock, log);
    const starting = startHttpServer({ ...place, tls }, () => {
      throw new Error('no handler');
    });
    await expect(starting).rejects.toThrow('no handler');
    expect(clock.timers).toBe(0);
  });

  test('is not looked at any more if the address is taken', async () => {
    const clock = new ManualClock();
    const other = createServer().listen(0, '127.0.0.1');
    try {
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      const tls = new TlsCertificate(makeCertificate(tempFolder(), 'server'), clock, log);
      const starting = startHttpServer({ ...place, port, tls }, () => {
        throw new Error('no handler');
      });
      await expect(starting).rejects.toThrow('EADDRINUSE');
      expect(clock.timers).toBe(0);
    } finally {
      other.close();
    }
  });

  test('is not looked at any more if its readiness check cannot be added, and the check of another stays', async () => {
    const bench = await Bench.open();
    try {
      const { turnpike, clock } = bench;
      turnpike.readiness.add({ name: 'certificate', run: () => null });
      const options: ServeOptions = {
        ...{
          turnpike,
          clock,
          log,
          host: '127.0.0.1',
          port: 0,
          storedTokens: true,
          tokens: { find: () => null } as never,
        },
        tls: makeCertificate(tempFolder(), 'server'),
      };
      const before = clock.timers;
      await expect(serveTurnpike(options)).rejects.toThrow('there is a readiness check certificate already');
      expect(clock.timers).toBe(before);
      expect(turnpike.readiness.has('certificate')).toBe(true);
    } finally {
      await bench.close();
    }
  });
});

// HTTPS with a real openssl certificate: reload, refusals, and the limits of unfinished handshakes.

import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { listenHttp, type HttpListener } from '../../../src/system/network/http-listener.js';
import { readTlsFiles, TlsCertificate } from '../../../src/system/network/tls-certificate.js';
import { makeCertificate, withOpenssl, type CertificateFiles } from '../../fixtures/certificate.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const CHECK_MS = 10_000;
const logged: string[] = [];
const note = (message: string): void => void logged.push(message);
const LOG = { info: note, warn: note, error: note };
const listeners: HttpListener[] = [];
afterEach(async () => {
  logged.length = 0;
  for (const listener of listeners.splice(0)) await listener.close(0);
});

async function serve(files: CertificateFiles) {
  const clock = new ManualClock(new Date().toISOString());
  const tls = new TlsCertificate(files, clock, LOG);
  const handle = (_: unknown, response: { end(text: string): unknown }): Promise<void> => {
    response.end('served');
    return Promise.resolve();
  };
  const listener = await listenHttp({ host: '127.0.0.1', port: 0, handle, tls, onError: () => undefined });
  listeners.push(listener);
  return { port: listener.port, clock, tls };
}

/** The body of a response, from a client that trusts only this certificate. */
async function get(port: number, { cert }: CertificateFiles): Promise<string> {
  const sent = request({ port, host: '127.0.0.1', ca: readFileSync(cert), agent: false });
  sent.end();
  const [response] = (await once(sent, 'response')) as [NodeJS.ReadableStream];
  let body = '';
  for await (const chunk of response) body += String(chunk);
  return body;
}

withOpenssl('a server with a certificate', () => {
  test('serves a client that verifies it, from TLS 1.2 on', async () => {
    const files = makeCertificate(tempFolder(), 'one');
    const { port } = await serve(files);
    expect(await get(port, files)).toBe('served');
    const old = connectTls({ port, host: '127.0.0.1', ca: readFileSync(files.cert), maxVersion: 'TLSv1.1' });
    await expect(once(old, 'secureConnect')).rejects.toThrow();
  });

  test('uses a renewed certificate for new connections, also through a replaced link', async () => {
    const folder = tempFolder();
    const [one, two] = [makeCertificate(folder, 'one'), makeCertificate(folder, 'two')];
    const current = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
    for (const name of ['cert', 'key'] as const) symlinkSync(one[name], current[name]);
    const { port, clock } = await serve(current);
    expect(await get(port, one)).toBe('served');
    for (const name of ['cert', 'key'] as const) {
      symlinkSync(two[name], `${current[name]}.new`);
      renameSync(`${current[name]}.new`, current[name]);
    }
    clock.advance(CHECK_MS);
    expect(await get(port, two)).toBe('served');
    await expect(get(port, one)).rejects.toThrow();
    expect(logged).toEqual(['the TLS certificate was replaced']);
  });

  test('keeps the previous certificate while the files are wrong, and takes them once they are right', async () => {
    const folder = tempFolder();
    const [one, two] = [makeCertificate(folder, 'one'), makeCertificate(folder, 'two')];
    const old = { cert: join(folder, 'old.crt'), key: one.key };
    writeFileSync(old.cert, readFileSync(one.cert));
    const { port, clock } = await serve(one);
    // The renewal has written the certificate, and not yet the key.
    writeFileSync(one.cert, readFileSync(two.cert));
    clock.advance(CHECK_MS);
    expect(await get(port, old)).toBe('served');
    unlinkSync(one.key);
    clock.advance(CHECK_MS);
    expect(await get(port, old)).toBe('served');
    writeFileSync(one.key, readFileSync(two.key));
    clock.advance(CHECK_MS);
    expect(await get(port, two)).toBe('served');
    expect(logged.filter((message) => message.includes('cannot be reloaded')).length).toBeGreaterThan(0);
  });

  test('tells when its certificate has expired', async () => {
    const { tls, clock } = await serve(makeCertificate(tempFolder(), 'one', 1));
    expect(tls.isExpired).toBe(false);
    clock.advance(2 * 86_400_000);
    expect(tls.isExpired).toBe(true);
    expect(new TlsCertificate(makeCertificate(tempFolder(), 'past', -1), clock, LOG).isExpired).toBe(true);
  });

  test('connections that never finish their handshake do not keep others out', async () => {
    const files = makeCertificate(tempFolder(), 'one');
    const { port } = await serve(files);
    const idle: Socket[] = [];
    for (let i = 0; i < 700; i += 1) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      idle.push(socket);
      await once(socket, 'connect');
    }
    expect(await get(port, files)).toBe('served');
    expect(idle.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length).toBeGreaterThan(0);
    for (const socket of idle) socket.destroy();
  });

  test('parses pipelined requests in pieces, as without TLS', async () => {
    const files = makeCertificate(tempFolder(), 'one');
    const { port } = await serve(files);
    const socket = connectTls({ port, host: '127.0.0.1', ca: readFileSync(files.cert) });
    await once(socket, 'secureConnect');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(50));
    let text = '';
    for await (const chunk of socket) {
      text += String(chunk);
      if (text.split('HTTP/1.1 200').length > 50) break;
    }
    expect(text.split('HTTP/1.1 200')).toHaveLength(51);
  });
});

withOpenssl('files that cannot be used are named', () => {
  const folder = tempFolder();
  const at = (name: string): string => join(folder, name);
  beforeAll(() => {
    for (const name of ['one', 'two']) makeCertificate(folder, name);
    writeFileSync(at('text'), 'text');
  });
  test.each([
    [{ cert: at('none'), key: at('one.key') }, 'none cannot be read'],
    [{ cert: at('one.crt'), key: at('none') }, 'none cannot be read'],
    [{ cert: at('text'), key: at('one.key') }, 'text is not a PEM certificate'],
    [{ cert: at('one.crt'), key: at('text') }, 'text is not a PEM private key without a passphrase'],
    [{ cert: at('one.crt'), key: at('two.key') }, 'two.key is not the key of the certificate in'],
    [{ cert: folder, key: at('one.key') }, 'cannot be read'],
  ])('%j', (files, message) => {
    expect(() => readTlsFiles(files)).toThrow(message);
  });
});

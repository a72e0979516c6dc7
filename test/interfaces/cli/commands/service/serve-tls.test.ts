// The served command behind TLS and behind a proxy.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { makeCertificate, withOpenssl } from '../../../../fixtures/certificate.js';
import { initialised, linesOf, put, turnpike } from '../../fake-io.js';

withOpenssl('turnpike serve --tls-cert', () => {
  const stop = new AbortController();
  let [folder, url, token]: string[] = [];
  let ended: Promise<unknown>;

  beforeAll(async () => {
    folder = await initialised();
    makeCertificate(folder, 'server');
    put(
      folder,
      'turnpike.yaml',
      'serve:\n  tls_cert: server.crt\n  tls_key: server.key\n  trusted_proxy: [127.0.0.1]\n',
    );
    const address = new Promise<string>((resolve) => {
      ended = turnpike(folder!, ['serve', '--port', '0'], { stop: stop.signal, onStderr: resolve });
    });
    [url, token] = linesOf(await address)[0]!.split('/#token=');
  });
  afterAll(async () => {
    stop.abort();
    await ended;
  });

  const get = async (headers: Record<string, string>, path = '/api/v1/health'): Promise<IncomingMessage> => {
    const sent = request(`${url!}${path}`, { ca: readFileSync(join(folder!, 'server.crt')), agent: false, headers });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response.resume();
  };

  test('prints an address with https, and serves the API and the page', async () => {
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const authorization = `Bearer ${token!}`;
    expect((await get({ authorization })).statusCode).toBe(200);
    expect((await get({ authorization, origin: url! })).statusCode).toBe(200);
    expect((await get({ authorization, origin: url!.replace('https', 'http') })).statusCode).toBe(403);
  });

  test('counts failed authentications by the address that the trusted proxy names', async () => {
    const from = async (address: string): Promise<number | undefined> =>
      (await get({ authorization: `Bearer ${'x'.repeat(43)}`, 'x-forwarded-for': address })).statusCode;
    for (let n = 0; n < 20; n += 1) expect(await from('198.51.100.1')).toBe(401);
    // Each second that passes allows one more.
    while ((await from('198.51.100.1')) !== 429);
    expect(await from('198.51.100.2')).toBe(401);
  });

  test('a file that is no certificate is refused, and so is an invalid proxy', async () => {
    const folder = await initialised();
    const { key } = makeCertificate(folder, 'server');
    const stderrOf = async (...options: string[]): Promise<string> =>
      (await turnpike(folder, ['serve', '--port', '0', ...options], { stop: AbortSignal.abort() })).stderr;
    expect(await stderrOf('--tls-cert', key, '--tls-key', key)).toMatch('is not a PEM certificate');
    expect(await stderrOf('--trusted-proxy', 'proxy')).toMatch('trusted proxy "proxy": an IP address, or a network');
  });
});

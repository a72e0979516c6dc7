// C98: the keys of an issuer: rotation, limits, and an issuer that cannot be reached or lies.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { OidcIssuerOptions } from '../../../../src/engine/ports/identity-provider.js';
import { OidcProvider } from '../../../../src/features/identity/provider/oidc-provider.js';
import { KEYS_BYTES_MAX, KEYS_MAX } from '../../../../src/features/identity/provider/provider-keys.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import { ManualClock } from '../../../fixtures/manual-clock.js';
import { AUDIENCE, newKey, OidcIssuer } from '../../../fixtures/oidc-issuer.js';

let issuer: OidcIssuer;
let clock: ManualClock;
beforeEach(async () => {
  issuer = await OidcIssuer.open();
  clock = new ManualClock();
  issuer.now = () => clock.now();
});
afterEach(() => issuer.close());

const providerOf = (options: Partial<OidcIssuerOptions> = {}): OidcProvider =>
  new OidcProvider({ issuer: issuer.url, audience: AUDIENCE, clock, log: winstonLog('silent'), ...options });
async function outcome(provider: OidcProvider, token: string): Promise<string> {
  const result = await provider.verify(token, { audience: AUDIENCE });
  return 'problem' in result ? result.problem : 'verified';
}

describe('C98 rotation', () => {
  test('C98 an unknown key causes one fetch, and no more within the cooldown', async () => {
    const provider = providerOf();
    expect(await outcome(provider, await issuer.token())).toBe('verified');
    expect(issuer.count('/jwks')).toBe(1);
    const stranger = await newKey();
    clock.advance(31_000);
    for (let i = 0; i < 5; i += 1)
      expect(await outcome(provider, await issuer.token({}, { key: stranger }))).toBe('key_unknown');
    expect(issuer.count('/jwks')).toBe(2);
    const old = issuer.key;
    await issuer.rotate();
    expect(await outcome(provider, await issuer.token())).toBe('key_unknown');
    clock.advance(31_000);
    expect(await outcome(provider, await issuer.token())).toBe('verified');
    expect(await outcome(provider, await issuer.token({}, { key: old }))).toBe('key_unknown');
    expect(issuer.count('/jwks')).toBe(3);
  });

  test('C98 concurrent tokens share one fetch', async () => {
    const provider = providerOf();
    const tokens = await Promise.all(Array.from({ length: 20 }, () => issuer.token()));
    expect(new Set(await Promise.all(tokens.map((token) => outcome(provider, token))))).toEqual(new Set(['verified']));
    expect([issuer.count('/jwks'), issuer.count('/.well-known/openid-configuration')]).toEqual([1, 1]);
  });

  test('C98 a withdrawn key counts no longer than keys are fresh, although no token names another', async () => {
    const provider = providerOf();
    const token = () => issuer.token({}, { key: old });
    const old = issuer.key;
    expect(await outcome(provider, await token())).toBe('verified');
    await issuer.rotate();
    clock.advance(290_000);
    expect(await outcome(provider, await token())).toBe('verified');
    clock.advance(20_000);
    expect(await outcome(provider, await token())).toBe('key_unknown');
  });
});

describe('C98 an issuer that cannot be reached', () => {
  test('C98 keys go on for an hour, and no longer; then it is unavailable', async () => {
    const provider = providerOf();
    expect(await outcome(provider, await issuer.token())).toBe('verified');
    issuer.isDown = true;
    clock.advance(3_000_000);
    expect(provider.keys.state).toBe('stale');
    expect(await outcome(provider, await issuer.token())).toBe('verified');
    clock.advance(700_000);
    expect(provider.keys.state).toBe('absent');
    expect(await outcome(provider, await issuer.token())).toBe('unavailable');
    issuer.isDown = false;
    clock.advance(31_000);
    expect(await outcome(provider, await issuer.token())).toBe('verified');
  });

  test('C98 a token with an unknown key is not refused as wrong while the issuer cannot be reached', async () => {
    const provider = providerOf();
    issuer.isDown = true;
    expect(await outcome(provider, await issuer.token())).toBe('unavailable');
    issuer.isDown = false;
    expect(await outcome(provider, await issuer.token())).toBe('unavailable');
    clock.advance(31_000);
    expect(await outcome(provider, await issuer.token())).toBe('verified');
    issuer.isDown = true;
    clock.advance(31_000);
    expect(await outcome(provider, await issuer.token({}, { key: await newKey() }))).toBe('unavailable');
  });
});

describe('C98 a set of keys beyond a limit, or from another place, is refused', () => {
  const send = (text: string, status = 200, headers: Record<string, string> = {}) =>
    issuer.answers.set('/jwks', (response) => response.writeHead(status, headers).end(text));
  const setOf = (...keys: readonly unknown[]): string => JSON.stringify({ keys });
  const filler = (count: number): readonly object[] =>
    Array.from({ length: count }, (_, at) => ({ ...issuer.key.jwk, kid: `filler-${at}` }));

  test('C98 the limits: as many keys and bytes as allowed, and one more', async () => {
    const { jwk } = issuer.key;
    send(setOf(jwk, ...filler(KEYS_MAX - 1)));
    expect(await outcome(providerOf(), await issuer.token())).toBe('verified');
    send(setOf(jwk, ...filler(KEYS_MAX)));
    expect(await outcome(providerOf(), await issuer.token())).toBe('unavailable');
    send(setOf(jwk).padEnd(KEYS_BYTES_MAX));
    expect(await outcome(providerOf(), await issuer.token())).toBe('verified');
    send(setOf(jwk).padEnd(KEYS_BYTES_MAX + 1));
    expect(await outcome(providerOf(), await issuer.token())).toBe('unavailable');
  });

  test.each<[what: string, answer: () => void]>([
    ['a redirect to the keys', () => send('', 302, { location: '/elsewhere' })],
    ['a redirect to another machine', () => send('', 307, { location: 'https://other.example/jwks' })],
    ['an error', () => send('{}', 500)],
    ['something else than JSON', () => send('<html>')],
    ['a list', () => send('[]')],
    ['no keys', () => send('{"keys":[]}')],
    ['only keys of other kinds', () => send(setOf({ kty: 'oct', kid: issuer.key.kid, k: 'AAAA' }, null, 7, 'x'))],
    ['a key for encryption', () => send(setOf({ ...issuer.key.jwk, use: 'enc' }))],
    ['two keys with one id', () => send(setOf(issuer.key.jwk, issuer.key.jwk))],
  ])('C98 %s', async (_what, answer) => {
    issuer.answers.set('/elsewhere', (response) => response.writeHead(200).end(setOf(issuer.key.jwk)));
    answer();
    expect(await outcome(providerOf(), await issuer.token())).toBe('unavailable');
    expect(issuer.count('/elsewhere')).toBe(0);
  });

  test('C98 a key is not used for an algorithm that it is not for', async () => {
    send(setOf({ ...issuer.key.jwk, alg: 'ES384' }));
    expect(await outcome(providerOf(), await issuer.token())).toBe('algorithm');
  });

  test('C98 an RSA key that is too short is not used', async () => {
    const { generateKeyPairSync } = await import('node:crypto');
    const jwk = {
      ...generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey.export({ format: 'jwk' }),
      kid: 'k',
    };
    send(setOf(jwk));
    const token = await issuer.token({}, { header: { kid: 'k' } });
    const head = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'k' })).toString('base64url');
    expect(await outcome(providerOf(), [head, ...token.split('.').slice(1)].join('.'))).toBe('algorithm');
  });
});

describe('C98 the discovery document', () => {
  const discover = (changes: Record<string, unknown>) => {
    const document = { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, ...changes };
    issuer.answers.set('/.well-known/openid-configuration', (response) => response.end(JSON.stringify(document)));
  };
  test.each<[what: string, changes: () => Record<string, unknown>]>([
    ['of another issuer', () => ({ issuer: 'https://other.example' })],
    ['of the issuer with a slash', () => ({ issuer: `${issuer.url}/` })],
    ['without an issuer', () => ({ issuer: undefined })],
    ['without keys', () => ({ jwks_uri: undefined })],
    ['with keys on another machine without TLS', () => ({ jwks_uri: 'http://other.example/jwks' })],
    ['with keys in a file', () => ({ jwks_uri: 'file:///etc/passwd' })],
    ['with a password in the address', () => ({ jwks_uri: issuer.url.replace('//', '//user:password@') })],
    ['that is too long', () => ({ more: 'x'.repeat(65_536) })],
  ])('C98 %s is refused', async (_what, changes) => {
    discover(changes());
    expect(await outcome(providerOf(), await issuer.token())).toBe('unavailable');
    expect(issuer.count('/jwks')).toBe(0);
  });

  test('C98 is not needed where the address of the keys is configured', async () => {
    issuer.answers.set('/.well-known/openid-configuration', (response) => response.writeHead(404).end());
    expect(await outcome(providerOf({ jwksUri: `${issuer.url}/jwks` }), await issuer.token())).toBe('verified');
  });
});

describe('C98 the configuration', () => {
  test.each<[what: string, options: Partial<OidcIssuerOptions>]>([
    ['an issuer without TLS on another machine', { issuer: 'http://issuer.example' }],
    ['an issuer with a query', { issuer: 'https://issuer.example/?x' }],
    ['an issuer that is no URL', { issuer: 'issuer' }],
    ['keys without TLS of an issuer with TLS', { issuer: 'https://issuer.example', jwksUri: 'http://127.0.0.1/jwks' }],
    ['no audience', { audience: '' }],
    ['no algorithm', { algorithms: [] }],
    ['a tolerance over the limit', { toleranceSeconds: 301 }],
  ])('C98 %s is refused', (_what, options) => {
    expect(() => providerOf(options)).toThrow(expect.objectContaining({ code: 'USAGE' }));
  });

  test.each(['RS256', 'PS256', 'ES384', 'EdDSA'] as const)(
    'C98 %s is verified if it is allowed, and only then',
    async (alg) => {
      const key = await issuer.rotate(alg);
      const token = await issuer.token({}, { key });
      expect(await outcome(providerOf({ algorithms: [alg] }), token)).toBe('verified');
      expect(await outcome(providerOf({ algorithms: ['ES512'] }), token)).toBe('algorithm');
    },
  );

  test('C98 the clocks may differ by the tolerance', async () => {
    const now = Math.floor(clock.now() / 1_000);
    const provider = providerOf({ toleranceSeconds: 60 });
    expect(await outcome(provider, await issuer.token({ iat: now - 500, exp: now - 55 }))).toBe('verified');
    expect(await outcome(provider, await issuer.token({ iat: now - 500, exp: now - 61 }))).toBe('expired');
    expect(await outcome(provider, await issuer.token({ nbf: now + 55 }))).toBe('verified');
    expect(await outcome(provider, await issuer.token({ nbf: now + 65 }))).toBe('not_yet_valid');
  });
});

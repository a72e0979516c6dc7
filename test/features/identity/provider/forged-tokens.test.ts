// Forged and misread tokens, against the verification that every entrance shares. Each is one change of a token that
// is accepted; most are signed with the right key, because a reader must not understand them differently either.

import { createHmac, webcrypto } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OidcProvider } from '../../../../src/features/identity/provider/oidc-provider.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import { ManualClock } from '../../../fixtures/manual-clock.js';
import { AUDIENCE, newKey, OidcIssuer, type IssuerKey } from '../../../fixtures/oidc-issuer.js';

let issuer: OidcIssuer;
let provider: OidcProvider;
let stranger: IssuerKey;

beforeAll(async () => {
  issuer = await OidcIssuer.open();
  const clock = new ManualClock();
  issuer.now = () => clock.now();
  stranger = await newKey('ES256', issuer.key.kid);
  provider = new OidcProvider({ issuer: issuer.url, audience: AUDIENCE, clock, log: winstonLog('silent') });
});
afterAll(() => issuer.close());

/** The texts of a token's parts; the signature is made of the other two. */
interface Parts {
  readonly header: string;
  readonly claims: string;
}
type Members = Readonly<Record<string, unknown>>;

const head = (changes: Members = {}): string =>
  JSON.stringify({ alg: 'ES256', kid: issuer.key.kid, typ: 'JWT', ...changes });
const body = (changes: Members = {}): string => JSON.stringify(issuer.claims(changes));
const encode = (text: string | Uint8Array): string => Buffer.from(text).toString('base64url');
const partsOf = (token: string): [string, string, string] => token.split('.') as [string, string, string];
const now = (): number => Math.floor(issuer.now() / 1_000);

async function sign({ header = head(), claims = body() }: Partial<Parts> = {}, key = issuer.key): Promise<string> {
  const text = `${encode(header)}.${encode(claims)}`;
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
  return `${text}.${encode(new Uint8Array(await webcrypto.subtle.sign(algorithm, key.privateKey, Buffer.from(text))))}`;
}

function hmac(header: string, secret: string): string {
  const text = `${encode(header)}.${encode(body())}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Replaces the signature of a valid token. */
async function resigned(change: (signature: Buffer) => string): Promise<string> {
  const [header, claims, signature] = partsOf(await sign());
  return `${header}.${claims}.${change(Buffer.from(signature, 'base64url'))}`;
}

/** A signature of ECDSA as other libraries encode it. */
function inDer(signature: Buffer): Buffer {
  const integers = [signature.subarray(0, 32), signature.subarray(32)].map((half) =>
    Buffer.concat([Buffer.from([2, half.length + 1, 0]), half]),
  );
  const inner = Buffer.concat(integers);
  return Buffer.concat([Buffer.from([0x30, inner.length]), inner]);
}

const twice = (text: string, member: string): string => text.replace('{', `{${member},`);

const HEADERS: Readonly<Record<string, () => Promise<string>>> = {
  'two algorithms': () => sign({ header: twice(head(), '"alg":"none"') }),
  'two ids of keys': () => sign({ header: twice(head(), '"kid":"other"') }),
  'two types, one of them escaped': () => sign({ header: twice(head(), '"\\u0074yp":"logout+jwt"') }),
  'a prototype': () => sign({ header: twice(head(), '"__proto__":{"alg":"none"}') }),
  'a byte order mark': () => sign({ header: `\ufeff${head()}` }),
  'text behind it': () => sign({ header: `${head()}{}` }),
  'a list': () => sign({ header: `[${head()}]` }),
  'the algorithm in small letters': () => sign({ header: head({ alg: 'es256' }) }),
  'the algorithm with a blank': () => sign({ header: head({ alg: 'ES256 ' }) }),
  'the algorithm in a list': () => sign({ header: head({ alg: ['ES256'] }) }),
  'another curve': () => sign({ header: head({ alg: 'ES384' }) }),
  'a signature algorithm with an unsupported curve': () => sign({ header: head({ alg: 'ES256K' }) }),
  'alg nOnE': () => sign({ header: head({ alg: 'nOnE' }) }),
  'alg of an empty text': () => sign({ header: head({ alg: '' }) }),
  'no algorithm': () => sign({ header: head({ alg: undefined }) }),
  'an id of a key in a list': () => sign({ header: head({ kid: [issuer.key.kid] }) }),
  'an id of a key with a blank': () => sign({ header: head({ kid: `${issuer.key.kid} ` }) }),
  'an id of a key in capitals': () => sign({ header: head({ kid: issuer.key.kid.toUpperCase() }) }),
  'an id of a key that every object has': () => sign({ header: head({ kid: 'constructor' }) }),
  'an empty id of a key': () => sign({ header: head({ kid: '' }) }),
  'a long id of a key': () => sign({ header: head({ kid: 'k'.repeat(256) }) }),
  'a path for the id of a key, and its content as secret': () =>
    Promise.resolve(hmac(head({ alg: 'HS256', kid: '../../../../../../dev/null' }), '')),
  'a query for the id of a key, and its result as secret': () =>
    Promise.resolve(hmac(head({ alg: 'HS256', kid: "x' UNION SELECT 'secret' --" }), 'secret')),
  'the key set of the issuer as secret': () =>
    Promise.resolve(hmac(head({ alg: 'HS256' }), JSON.stringify({ keys: [issuer.key.jwk] }))),
  'an address of keys': () => sign({ header: head({ jku: 'http://127.0.0.1:1/jwks' }) }, stranger),
  'an address of a certificate': () => sign({ header: head({ x5u: 'http://127.0.0.1:1/pem' }) }, stranger),
  'a certificate': () => sign({ header: head({ x5c: ['MIIB'], x5t: 'x' }) }, stranger),
  'its own key': () => sign({ header: head({ jwk: stranger.jwk }) }, stranger),
  'extensions that are critical': () => sign({ header: head({ crit: ['b64'], b64: false }) }),
  'an empty list of them': () => sign({ header: head({ crit: [] }) }),
  'a payload that is not encoded': () => sign({ header: head({ b64: false }) }),
  'the type of a proof of possession': () => sign({ header: head({ typ: 'dpop+jwt' }) }),
  'the type of a security event': () => sign({ header: head({ typ: 'secevent+jwt' }) }),
  'its type in a list': () => sign({ header: head({ typ: ['JWT'] }) }),
};

const CLAIMS: Readonly<Record<string, () => Promise<string>>> = {
  'two issuers': () => sign({ claims: twice(body(), '"iss":"https://other.example"') }),
  'two subjects, one of them escaped': () => sign({ claims: twice(body(), '"\\u0073ub":"root"') }),
  'two ends': () => sign({ claims: twice(body({ exp: now() - 900 }), `"exp":${now() + 60}`) }),
  'a member of its groups twice': () => sign({ claims: twice(body(), '"groups":{"a":1,"a":2}') }),
  'a prototype': () => sign({ claims: twice(body(), '"__proto__":{"groups":["counsel"]}') }),
  'half a character': () => sign({ claims: twice(body(), '"name":"\\ud800"') }),
  'a list': () => sign({ claims: `[${body()}]` }),
  nothing: () => sign({ claims: 'null' }),
  'another token': async () => sign({ claims: await sign() }),
  'an end that is a text': () => sign({ claims: body({ exp: `${now() + 600}` }) }),
  'an end that is a list': () => sign({ claims: body({ exp: [now() + 600] }) }),
  'an end that is null': () => sign({ claims: body({ exp: null }) }),
  'an end without an end': () => sign({ claims: body().replace(/"exp":\d+/, '"exp":1e999') }),
  'an end before it was issued': () => sign({ claims: body({ iat: now(), exp: -1 }) }),
  'a start that is a text': () => sign({ claims: body({ nbf: `${now()}` }) }),
  'a time of issue that is a text': () => sign({ claims: body({ iat: `${now()}` }) }),
  'an issuer in a list': () => sign({ claims: body({ iss: [issuer.url] }) }),
  'an issuer in capitals': () => sign({ claims: body({ iss: issuer.url.toUpperCase() }) }),
  'an issuer with a path': () => sign({ claims: body({ iss: `${issuer.url}/x` }) }),
  'an issuer with a user': () => sign({ claims: body({ iss: issuer.url.replace('//', '//x@') }) }),
  'an audience in capitals': () => sign({ claims: body({ aud: AUDIENCE.toUpperCase() }) }),
  'an audience that begins like ours': () => sign({ claims: body({ aud: `${AUDIENCE}-2` }) }),
  'audiences without ours': () => sign({ claims: body({ aud: ['a', 'b'] }) }),
  'an audience in two lists': () => sign({ claims: body({ aud: [[AUDIENCE]] }) }),
  'an audience in an object': () => sign({ claims: body({ aud: { [AUDIENCE]: true } }) }),
  'a subject that is a number': () => sign({ claims: body({ sub: 7 }) }),
  'a subject that is empty': () => sign({ claims: body({ sub: '' }) }),
};

const FORMS: Readonly<Record<string, () => Promise<string>>> = {
  'a signature of zeros': () => resigned(() => encode(Buffer.alloc(64))),
  'a signature of ones': () => resigned(() => encode(Buffer.alloc(64, 1))),
  'a signature without its end': () => resigned((whole) => encode(whole.subarray(0, 63))),
  'half a signature': () => resigned((whole) => encode(whole.subarray(0, 32))),
  'a signature and a byte': () => resigned((whole) => encode(Buffer.concat([whole, Buffer.alloc(1)]))),
  'a signature in another encoding': () => resigned((whole) => encode(inDer(whole))),
  'the halves of a signature in the other order': () =>
    resigned((whole) => encode(Buffer.concat([whole.subarray(32), whole.subarray(0, 32)]))),
  'a signature with a sign of padding': () => resigned((whole) => `${encode(whole)}==`),
  'a signature in hexadecimal digits': () => resigned((whole) => whole.toString('hex')),
  'the signature of another token': async () => {
    const [header, claims] = partsOf(await sign({ claims: body({ sub: 'root' }) }));
    return `${header}.${claims}.${partsOf(await sign())[2]}`;
  },
  'a line end behind it': async () => `${await sign()}\n`,
  'a blank in front of it': async () => ` ${await sign()}`,
  'a part more': async () => `${await sign()}.${encode('{}')}`,
  'the five parts of encryption': async () => `${await sign()}.AA.AA`,
  'two parts': async () =>
    partsOf(await sign())
      .slice(0, 2)
      .join('.'),
  'the form of JSON': async () => {
    const [header, payload, signature] = partsOf(await sign());
    return JSON.stringify({ protected: header, payload, signature });
  },
};

const TABLES = { 'in its header': HEADERS, 'in its claims': CLAIMS, 'in its form': FORMS };

const outcome = async (token: string): Promise<string> => {
  const result = await provider.verify(token, { audience: AUDIENCE });
  return 'problem' in result ? result.problem : 'verified';
};

test('C98 the token without a change is verified', async () => {
  expect(await outcome(await sign())).toBe('verified');
});

describe.each(Object.entries(TABLES))('C98 a token is refused that has %s', (_where, table) => {
  test.each(Object.entries(table))('%s', async (_what, forge) => {
    expect(await outcome(await forge())).not.toMatch(/^(?:verified|unavailable)$/);
  });
});

test('C98 none of these tokens made the service ask another address', () => {
  expect([...issuer.requests.keys()].toSorted()).toEqual(['/.well-known/openid-configuration', '/jwks']);
});

// Every way in which a token of an issuer can be wrong, at every place where a caller presents one. The table is
// generated: a new place or a new fault is tested against all others.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportSPKI, importJWK, SignJWT, UnsecuredJWT } from 'jose';
import { newKey, type IssuerKey } from '../../../fixtures/oidc-issuer.js';
import { proposal } from '../../../interfaces/http/http-harness.js';
import { IdentityBench } from './identity-harness.js';
import { GREETING, postTo } from '../../../interfaces/mcp/mcp-harness.js';

let stage: IdentityBench;
let withdrawn: IssuerKey;
let request: { readonly run_id: string; readonly digest: string };
let run: string;

beforeAll(async () => {
  stage = await IdentityBench.open();
  withdrawn = stage.issuer.key;
  request = await stage.pending();
  const { http, issuer } = stage;
  run = await http.start(await issuer.token(AGENT), { case: 'case-0001' });
  // The service knows the first key, then the issuer withdraws it.
  await issuer.rotate();
  stage.clock.advance(31_000);
  expect((await http.ask('/runs', await stage.counsel())).status).toBe(200);
});
afterAll(() => stage.close());

/** A key for an algorithm that the service does not accept. */
const long = newKey('RS512');
const AGENT = { sub: 'agent-1', name: 'agent one', groups: ['agents'], case_id: 'case-0001' };
const PERSON = { sub: 'anna', name: 'Anna Berg', employee: 'Anna Berg', groups: ['counsel'] };
type Claims = Readonly<Record<string, unknown>>;

/** Makes the token of a caller wrong. */
const FAULTS: Readonly<Record<string, (claims: Claims) => Promise<string>>> = {
  expired: (claims) => sign({ ...claims, iat: seconds() - 900, exp: seconds() - 60 }),
  'not yet valid': (claims) => sign({ ...claims, nbf: seconds() + 60 }),
  'issued in the future': (claims) => sign({ ...claims, iat: seconds() + 60 }),
  'valid for too long': (claims) => sign({ ...claims, exp: seconds() + 100_000 }),
  'without an end': (claims) => sign({ ...claims, exp: undefined }),
  'without a subject': (claims) => sign({ ...claims, sub: undefined }),
  'without the time of issue': (claims) => sign({ ...claims, iat: undefined }),
  'for another audience': (claims) => sign({ ...claims, aud: 'another service' }),
  'for no audience': (claims) => sign({ ...claims, aud: undefined }),
  'of another issuer': (claims) => sign({ ...claims, iss: 'https://issuer.example' }),
  'of the issuer with a slash': (claims) => sign({ ...claims, iss: `${stage.issuer.url}/` }),
  'of no issuer': (claims) => sign({ ...claims, iss: undefined }),
  'with an algorithm that is not allowed': async (claims) => {
    return stage.issuer.token(claims, { key: { ...(await long), kid: stage.issuer.key.kid } });
  },
  'with alg none': (claims) => Promise.resolve(unsigned(claims, {})),
  'with alg none and the id of the key': (claims) => Promise.resolve(unsigned(claims, { kid: stage.issuer.key.kid })),
  'without a signature': async (claims) => `${(await sign(claims)).split('.').slice(0, 2).join('.')}.`,
  'with HS256 and the public key as the secret': (claims) => signWithPublicKey(claims, 'HS256'),
  'with HS512 and the public key as the secret': (claims) => signWithPublicKey(claims, 'HS512'),
  'with an unknown key': async (claims) => stage.issuer.token(claims, { key: await newKey() }),
  'with another key under the id of the right one': async (claims) =>
    stage.issuer.token(claims, { key: await newKey('ES256', stage.issuer.key.kid) }),
  'with a key that the issuer has withdrawn': (claims) => stage.issuer.token(claims, { key: withdrawn }),
  'with a key that it brings itself': async (claims) => {
    const key = await newKey('ES256', stage.issuer.key.kid);
    return stage.issuer.token(claims, { key, header: { jwk: key.jwk } });
  },
  'without the id of a key': (claims) => sign(claims, { kid: undefined }),
  'of another type': (claims) => sign(claims, { typ: 'logout+jwt' }),
  'with an extension that is critical': async (claims) => {
    const [head = '', ...rest] = (await sign(claims)).split('.');
    const header = { ...(decode(head) as object), crit: ['exp'] };
    return [encode(header), ...rest].join('.');
  },
  'changed after it was signed': async (claims) => {
    const [head = '', payload = '', signature = ''] = (await sign(claims)).split('.');
    return [
      head,
      encode({ ...(decode(payload) as object), groups: ['counsel', 'agents'], sub: 'mallory' }),
      signature,
    ].join('.');
  },
  'whom no mapping matches': (claims) => sign({ ...claims, groups: ['staff'] }),
  'without the claim that a mapping needs': (claims) => sign({ ...claims, groups: undefined }),
  'without the claim of the name': (claims) => sign({ ...claims, name: undefined }),
  'with a name that is not a text': (claims) => sign({ ...claims, name: ['Anna Berg'] }),
  'with a name that hides a character': (claims) => sign({ ...claims, name: 'Anna\u200b Berg' }),
  'with a subject that is too long': (claims) => sign({ ...claims, sub: 'x'.repeat(256) }),
  'that is too long': (claims) => sign({ ...claims, more: 'x'.repeat(8_192) }),
};

/** Presents a token. The answer to a valid one is `accepted`. */
interface Entrance {
  readonly claims: Claims;
  readonly present: (token: string) => Promise<Response>;
  readonly accepted: number;
}

const ENTRANCES: Readonly<Record<string, Entrance>> = {
  'a read': { claims: PERSON, present: (token) => stage.http.ask('/runs', token), accepted: 200 },
  'the start of an agent': {
    claims: AGENT,
    present: (token) => stage.http.ask('/agents', token, { json: {} }),
    accepted: 201,
  },
  'a step': {
    claims: AGENT,
    present: (token) => stage.http.ask(`/agents/${run}/steps`, token, { body: proposal('THINK') }),
    accepted: 200,
  },
  'a vote': {
    claims: PERSON,
    present: (token) =>
      stage.http.ask('/approvals', token, {
        json: { run_id: request.run_id, digests: [request.digest], decision: 'approve' },
      }),
    accepted: 200,
  },
  'the content of a request': {
    claims: PERSON,
    present: (token) => stage.http.ask(`/approvals/${request.run_id}/${request.digest}`, token),
    accepted: 200,
  },
  'a stream': {
    claims: PERSON,
    present: async (token) => {
      const abort = new AbortController();
      const response = await stage.http.ask('/stream', token, { signal: abort.signal });
      if (response.status === 200) abort.abort();
      return response;
    },
    accepted: 200,
  },
  MCP: {
    claims: AGENT,
    present: (token) => postTo({ url: `${stage.http.server.url}/mcp`, token }, GREETING),
    accepted: 200,
  },
};

const REFUSED = {
  type: 'urn:turnpike:problem:UNAUTHENTICATED',
  title: 'Unauthorized',
  status: 401,
  detail: 'A bearer token is needed',
  code: 'UNAUTHENTICATED',
};

describe.each(Object.keys(ENTRANCES))('%s', (name) => {
  const { claims, present, accepted } = ENTRANCES[name] as Entrance;

  test.each(Object.keys(FAULTS))(
    'C98 is refused with one constant message to a caller with a token %s',
    async (fault) => {
      const before = await stage.http.bench.turnpike.ledger.size();
      const response = await present(await (FAULTS[fault] as (typeof FAULTS)[string])(claims));
      const text = await response.text();
      expect(response.status).toBe(401);
      expect(JSON.parse(text)).toEqual(REFUSED);
      expect(await stage.http.bench.turnpike.ledger.size()).toBe(before);
    },
  );

  test('C98 accepts the same caller with a valid token', async () => {
    const response = await present(await sign(claims));
    await response.body?.cancel().catch(() => undefined);
    expect(response.status).toBe(accepted);
  });
});

test('C98 counts each refusal by its reason, for the operator', async () => {
  const metrics = await (await stage.http.ask('/metrics', await stage.counsel())).text();
  const seen = [...metrics.matchAll(/turnpike_identity_refused_total\{problem="(\w+)"\} (\d+)/g)];
  const counted = seen.filter(([, , count]) => count !== '0').map(([, problem]) => problem);
  expect(counted.toSorted()).toEqual([
    'algorithm',
    'audience',
    'claim_missing',
    'expired',
    'issuer_unknown',
    'key_unknown',
    'lifetime',
    'malformed',
    'not_yet_valid',
    'signature',
    'unmapped',
  ]);
});

const seconds = (): number => Math.floor(stage.clock.now() / 1_000);
const sign = (claims: Claims, header: Record<string, unknown> = {}): Promise<string> =>
  stage.issuer.token(claims, { header });
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (text: string): unknown => JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));

function unsigned(claims: Claims, header: object): string {
  const token = new UnsecuredJWT(JSON.parse(JSON.stringify(stage.issuer.claims(claims))) as never).encode();
  const [, payload = ''] = token.split('.');
  // With a signature of any form: without one it would not even look like a signed token.
  return [encode({ alg: 'none', ...header }), payload, 'AA'].join('.');
}

async function signWithPublicKey(claims: Claims, alg: string): Promise<string> {
  const { kid, jwk } = stage.issuer.key;
  const key = await importJWK(jwk, 'ES256', { extractable: true });
  if (key instanceof Uint8Array) throw new Error('not a public key');
  const secret = new TextEncoder().encode(await exportSPKI(key));
  return new SignJWT(JSON.parse(JSON.stringify(stage.issuer.claims(claims))) as never)
    .setProtectedHeader({ alg, kid })
    .sign(secret);
}

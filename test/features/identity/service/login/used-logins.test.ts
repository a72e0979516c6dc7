// C98: a login is used once, and logins that strangers begin do not keep people from signing in.

import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import { identitiesSource } from '../../../../../src/home/policy/home-policy.js';
import { winstonLog } from '../../../../../src/system/winston-log.js';
import { OidcIdentityService } from '../../../../../src/features/identity/service/oidc-identity-service.js';
import type { LoginFlow, LoginStep } from '../../../../../src/features/identity/service/login/login-flow.js';
import { USED_LOGINS_MAX, UsedLogins } from '../../../../../src/features/identity/service/login/login-sessions.js';
import { AUDIENCE, CLIENT } from '../../../../fixtures/oidc-issuer.js';
import { IdentityBench } from '../identity-harness.js';

describe('at the callback', () => {
  let stage: IdentityBench;
  afterEach(() => stage.close());

  async function open(): Promise<LoginFlow> {
    stage = await IdentityBench.open({});
    stage.issuer.user = { sub: 'anna', name: 'Anna Berg', employee: 'Anna Berg', groups: ['counsel'] };
    const flow = new OidcIdentityService(
      {
        issuers: [{ issuer: stage.issuer.url, audience: AUDIENCE }],
        identities: identitiesSource(stage.http.bench.contract),
        login: { clientId: CLIENT.id, clientSecret: CLIENT.secret },
      },
      stage.clock,
      winstonLog('silent'),
    ).openFlow('http://127.0.0.1:8080');
    if (flow === null) throw new Error('there is no login');
    return flow;
  }

  interface Begun {
    readonly cookie: string;
    readonly location: URL;
    readonly state: string;
  }

  async function begin(flow: LoginFlow): Promise<Begun> {
    const begun = await flow.begin('/');
    if ('problem' in begun) throw new Error(begun.problem);
    const location = new URL(begun.location);
    const state = location.searchParams.get('state') ?? '';
    return { cookie: begun.cookies[0]?.split(';')[0] ?? '', location, state };
  }

  const guess = (flow: LoginFlow, { cookie, state }: Begun): Promise<LoginStep> =>
    flow.finish(cookie, new URLSearchParams({ code: 'guess', state }));

  /** A person signs in at the issuer, which sends the browser back. */
  async function atIssuer({ location }: Begun): Promise<URLSearchParams> {
    const page = await (await fetch(location)).text();
    return new URL((/href="([^"]+)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&')).searchParams;
  }

  async function signIn(flow: LoginFlow): Promise<LoginStep> {
    const begun = await begin(flow);
    return flow.finish(begun.cookie, await atIssuer(begun));
  }

  test('C98 logins with guessed codes are not counted as used, also while more arrive than are exchanged at once', async () => {
    const flow = await open();
    const held: ServerResponse[] = [];
    stage.issuer.answers.set('/token', (response) => void held.push(response));
    // As many as are exchanged at once: the issuer does not answer them yet.
    const begun = await Promise.all(Array.from({ length: 16 }, () => begin(flow)));
    const exchanges = begun.map((login) => guess(flow, login));
    while (held.length < 16) await new Promise(setImmediate);
    const beyond = await begin(flow);
    expect(await guess(flow, beyond)).toMatchObject({ problem: 'unavailable' });
    stage.issuer.answers.delete('/token');
    for (const response of held) response.writeHead(400, { 'content-type': 'application/json' }).end('{}');
    for (const step of await Promise.all(exchanges)) expect(step).toMatchObject({ problem: 'session' });
    // Nothing of them is left: each of these browsers can still sign in.
    for (const login of [...begun, beyond])
      expect(await flow.finish(login.cookie, await atIssuer(login))).toMatchObject({ location: '/' });
  });

  test('C98 a code that the issuer refuses is not a use of the login; one that it accepts is, also if no mapping matches', async () => {
    const flow = await open();
    stage.issuer.keepsCodes = true;
    const begun = await begin(flow);
    expect(await guess(flow, begun)).toMatchObject({ problem: 'session' });
    const back = await atIssuer(begun);
    const user = stage.issuer.user;
    stage.issuer.user = { ...user, groups: [] };
    expect(await flow.finish(begun.cookie, back)).toHaveProperty('problem');
    stage.issuer.user = user;
    expect(await flow.finish(begun.cookie, back)).toMatchObject({ problem: 'session' });
    expect(flow.sessions).toBe(0);
    expect(await signIn(flow)).toMatchObject({ location: '/' });
  });
});

describe('the limit', () => {
  test('C98 one more accepted login than the limit is refused until one would have expired; no used one is forgotten', () => {
    let now = 0;
    const used = new UsedLogins({ now: () => now });
    const accept = (state: string, expires_at: number): void => {
      if (used.begin(state) !== 'begun') throw new Error(`${state} is refused`);
      used.settle(state, expires_at, true);
    };
    accept('first', now + 1_000);
    for (let n = 1; n < USED_LOGINS_MAX; n += 1) accept(`state ${n}`, now + 2_000);
    expect([used.begin('more'), used.begin('first'), used.begin('state 1')]).toEqual(['full', 'used', 'used']);
    now += 1_000;
    expect([used.begin('more'), used.begin('another'), used.begin('state 1')]).toEqual(['begun', 'full', 'used']);
    used.settle('more', now + 1_000, false);
    expect([used.begin('another'), used.begin('another')]).toEqual(['begun', 'used']);
  });
});

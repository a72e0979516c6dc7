// C98: votes of people whom issuers have authenticated. What is refused after the person is known is recorded in the
// ledger.

import { afterEach, describe, expect, test } from '@jest/globals';
import { identitiesSource } from '../../../../src/home/policy/home-policy.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type { Entry } from '../../../../src/core/contract/run/entry.js';
import type { Principal } from '../../../../src/engine/ports/token-book.js';
import { OidcIdentityService } from '../../../../src/features/identity/service/oidc-identity-service.js';
import { AUDIENCE } from '../../../fixtures/oidc-issuer.js';
import { identitiesText, IdentityBench, MAPPINGS, ROLE, writeIdentities } from './identity-harness.js';

let stage: IdentityBench;
afterEach(() => stage.close());

const votesIn = (entries: readonly Entry[]) =>
  entries.flatMap(({ type, body }) => (type === 'audit_event' && body.target?.name === 'approval' ? [body] : []));
const seconds = (): number => Math.floor(stage.clock.now() / 1_000);

describe('C98 a rule that asks for an issuer', () => {
  test('C98 counts voters of the issuer, and records subject, issuer and verification, but no token', async () => {
    stage = await IdentityBench.open();
    const request = await stage.pending();
    const token = await stage.counsel('Anna Berg', { acr: 'urn:mfa', auth_time: seconds() - 5 });
    expect(await stage.vote(token, request)).toBe('approval.accepted');
    expect(await stage.vote(await stage.counsel('Otto Kern'), request)).toBe('approval.granted');
    const entries = await stage.http.bench.entries();
    const [anna] = votesIn(entries);
    const { kid } = stage.issuer.key;
    expect(anna).toMatchObject({
      actor: { actor_type: 'human', actor_id: 'Anna Berg' },
      authz: { decision: 'allow', rule_id: 'approval.accepted' },
      identity: {
        source: 'oidc',
        issuer: stage.issuer.url,
        subject_sha256: sha256('sub of Anna Berg'),
        mapped: true,
        mapping_id: 'counsel',
        algorithm: 'ES256',
        kid_sha256: sha256(kid),
        acr: 'urn:mfa',
      },
    });
    expect(anna?.identity).toHaveProperty('auth_time');
    const text = JSON.stringify(entries);
    for (const secret of [token, 'sub of Anna Berg', kid, token.split('.')[1] ?? ''])
      expect(text).not.toContain(secret);
  });

  test('C98 refuses votes of the token book, the command and the library, and records each', async () => {
    stage = await IdentityBench.open();
    const request = await stage.pending();
    const book = stage.http.token({ actor: 'berta', role: ROLE, rights: ['approve'] });
    expect(await stage.vote(book, request)).toBe('approval.not_verified');
    const ballot = { run: request.run_id, digests: [request.digest], actor: 'carl', role: ROLE } as const;
    const { turnpike } = stage.http.bench;
    for (const decision of ['approve', 'reject'] as const) {
      expect(await turnpike.approve({ ...ballot, decision })).toMatchObject([{ rule_id: 'approval.not_verified' }]);
    }
    const votes = votesIn(await stage.http.bench.entries());
    expect(votes.map(({ authz, outcome }) => [authz?.rule_id, outcome])).toEqual([
      ['approval.not_verified', 'deny'],
      ['approval.not_verified', 'deny'],
      ['approval.not_verified', 'deny'],
    ]);
    expect(votes[0]?.identity).toMatchObject({ source: 'token', mapped: false });
  });

  test('C98 refuses an issuer that the rule does not name', async () => {
    stage = await IdentityBench.open({ rule: 'identity: { issuers: ["https://other.example"] }' });
    expect(await stage.vote(await stage.counsel(), await stage.pending())).toBe('approval.not_verified');
  });

  test('C98 asks for a recent and strong login, and takes the vote after it', async () => {
    stage = await IdentityBench.open({ rule: 'identity: { acr: ["urn:mfa"], max_age_seconds: 300 }' });
    const request = await stage.pending();
    const vote = async (claims: Record<string, unknown>) =>
      stage.vote(await stage.counsel('Anna Berg', claims), request);
    expect(await vote({})).toBe('approval.step_up_required');
    expect(await vote({ auth_time: seconds() - 5 })).toBe('approval.step_up_required');
    expect(await vote({ acr: 'urn:password', auth_time: seconds() - 5 })).toBe('approval.step_up_required');
    expect(await vote({ acr: 'urn:mfa' })).toBe('approval.step_up_required');
    expect(await vote({ acr: 'urn:mfa', auth_time: seconds() - 310 })).toBe('approval.step_up_required');
    expect(await vote({ acr: 'urn:mfa', auth_time: seconds() + 120 })).toBe('approval.step_up_required');
    expect(await vote({ acr: 'urn:mfa', auth_time: seconds() - 290 })).toBe('approval.accepted');
  });

  test('C98 D1 a person whom the overlay has suspended cannot vote with a valid token; that is recorded', async () => {
    stage = await IdentityBench.open();
    const request = await stage.pending();
    expect(await stage.vote(await stage.counsel('Anna Berg'), request)).toBe('approval.accepted');
    // The overlay names the person; the actor of the token has another name.
    await stage.suspend('employee Otto Kern');
    expect(await stage.vote(await stage.counsel('Otto Kern'), request)).toBe('approval.role_unknown');
    expect(await stage.vote(await stage.counsel('Otto Kern', { name: 'Another Name' }), request)).toBe(
      'approval.role_unknown',
    );
    await stage.suspend('employee Anna Berg');
    expect(await stage.vote(await stage.counsel('Carla Voss'), request)).toBe('approval.accepted');
    expect(votesIn(await stage.http.bench.entries()).map(({ authz }) => authz?.decision)).toEqual([
      'allow',
      'deny',
      'deny',
      'allow',
    ]);
  });

  test('C98 a person who starts an export cannot approve it under another name', async () => {
    stage = await IdentityBench.open();
    const json = { case: 'case-local', reason: 'a request', name: 'bag' };
    const started = await stage.http.ask('/exports', await stage.counsel('Anna Berg'), { json });
    const request = (await started.json()) as { run_id: string; digest: string };
    expect(await stage.vote(await stage.counsel('Anna Berg'), request)).toBe('approval.by_requester');
    const renamed = await stage.counsel('Anna Berg', { name: 'A. Berg-Kern', sub: 'another subject' });
    expect(await stage.vote(renamed, request)).toBe('approval.by_requester');
  });
});

describe('C98 voters of several sources', () => {
  const rule = 'identity: {}';

  test('C98 one person with two issuers votes once', async () => {
    stage = await IdentityBench.open({ rule, issuers: 2 });
    const [first, second] = stage.issuers;
    const request = await stage.pending();
    expect(await stage.vote(await stage.counsel('Anna Berg', {}, first), request)).toBe('approval.accepted');
    const same = { name: 'Anna from elsewhere', employee: 'employee Anna Berg' };
    expect(await stage.vote(await stage.counsel('x', same, second), request)).toBe('approval.already_voted');
    const alike = { name: 'Anna from elsewhere', employee: 'employee Ann\u0430 Berg' };
    expect(await stage.vote(await stage.counsel('x', alike, second), request)).toBe('approval.look_alike');
    expect(await stage.vote(await stage.counsel('Otto Kern', {}, second), request)).toBe('approval.granted');
  });

  test('C98 one subject of one issuer votes once, whatever person its claims name', async () => {
    stage = await IdentityBench.open({ rule });
    const request = await stage.pending();
    expect(await stage.vote(await stage.counsel('Anna Berg'), request)).toBe('approval.accepted');
    const renamed = { sub: 'sub of Anna Berg', name: 'Otto Kern', employee: 'employee Otto Kern' };
    expect(await stage.vote(await stage.counsel('x', renamed), request)).toBe('approval.already_voted');
  });

  test('C98 a voter of the token book is another person only if policy maps its actor to one', async () => {
    const tokens = 'tokens:\n  - { actor: berta-laptop, person: Berta Lang }';
    stage = await IdentityBench.open({
      rule: '',
      identities: (issuers) => identitiesText(issuers, MAPPINGS, tokens),
    });
    const request = await stage.pending();
    const book = (actor: string) => stage.http.token({ actor, role: ROLE, rights: ['approve'] });
    expect(await stage.vote(await stage.counsel('Anna Berg'), request)).toBe('approval.accepted');
    expect(await stage.vote(book('carl'), request)).toBe('approval.person_unmapped');
    const ballot = {
      run: request.run_id,
      digests: [request.digest],
      decision: 'approve',
      actor: 'carl',
      role: ROLE,
    } as const;
    expect(await stage.http.bench.turnpike.approve(ballot)).toMatchObject([{ rule_id: 'approval.person_unmapped' }]);
    expect(await stage.vote(book('berta-laptop'), request)).toBe('approval.granted');
  });

  test('C98 the same the other way round', async () => {
    stage = await IdentityBench.open({ rule: '' });
    const request = await stage.pending();
    const book = stage.http.token({ actor: 'berta', role: ROLE, rights: ['approve'] });
    expect(await stage.vote(book, request)).toBe('approval.accepted');
    expect(await stage.vote(await stage.counsel('Anna Berg'), request)).toBe('approval.person_unmapped');
  });
});

describe('C98 identities.yaml', () => {
  test('C98 a change counts within a second, once it is pinned; until then no token is accepted', async () => {
    stage = await IdentityBench.open();
    const { http } = stage;
    const token = await stage.counsel();
    const status = async () => (await http.ask('/runs', token)).status;
    expect(await status()).toBe(200);
    const changed = identitiesText([stage.issuer.url], MAPPINGS.replace('[counsel]', '[partners]'));
    writeIdentities(http.bench, changed, false);
    stage.clock.advance(1_000);
    expect(await status()).toBe(401);
    writeIdentities(http.bench, changed);
    stage.clock.advance(1_000);
    expect(await status()).toBe(401);
    writeIdentities(http.bench, identitiesText([stage.issuer.url], MAPPINGS));
    stage.clock.advance(1_000);
    expect(await status()).toBe(200);
  });

  test('C98 a service is not ready while the file cannot be used', async () => {
    stage = await IdentityBench.open();
    const text = identitiesText([stage.issuer.url], MAPPINGS);
    const reasonOf = async (): Promise<unknown> => {
      stage.clock.advance(1_000);
      const { checks } = await stage.http.bench.turnpike.readiness.report();
      return checks.find(({ name }) => name === 'identity-provider')?.reason;
    };
    expect(await reasonOf()).toBeNull();
    writeIdentities(stage.http.bench, `${text}# edited`, false);
    expect(await reasonOf()).toBe('identities.yaml cannot be used');
    writeIdentities(stage.http.bench, text);
    expect(await reasonOf()).toBeNull();
  });

  test('C98 an unexpected error of its source refuses callers, and the process continues', async () => {
    let isBroken = false;
    stage = await IdentityBench.open();
    const file = identitiesSource(stage.http.bench.contract);
    await stage.http.server.close();
    const identities = { load: () => (isBroken ? Promise.reject(new TypeError('a secret')) : file.load()) };
    const issuers = [{ issuer: stage.issuer.url, audience: AUDIENCE }];
    const service = new OidcIdentityService({ issuers, identities }, stage.clock, winstonLog('silent'));
    await service.check();
    const credentials = { method: 'GET', cookie: null, csrf: null, origin: null, bearer: await stage.counsel() };
    const accepted = (await service.identify(credentials)) as { principal: Principal };
    expect(accepted.principal.actor).toBe('Anna Berg');
    isBroken = true;
    stage.clock.advance(1_000);
    expect(service.holds(accepted.principal)).toBe(true);
    expect(await service.identify({ ...credentials, bearer: await stage.counsel('Otto Kern') })).toEqual({
      problem: 'policy',
    });
    expect(service.holds(accepted.principal)).toBe(false);
  });

  test('C98 keeps an agent to the case of its claim', async () => {
    stage = await IdentityBench.open();
    const { http, issuer } = stage;
    const token = await issuer.token({ sub: 'a', name: 'agent one', groups: ['agents'], case_id: 'case-0001' });
    const other = await http.ask('/agents', token, { json: { case: 'case-0002' } });
    expect([other.status, ((await other.json()) as { code: string }).code]).toEqual([403, 'RIGHT_MISSING']);
    expect((await http.ask('/agents', token, { json: {} })).status).toBe(201);
    expect((await http.ask('/stream', token)).status).toBe(403);
  });

  test.each([
    [
      'has no mappings for the issuer',
      ([url = '']: readonly string[]) => identitiesText([`${url}/other`], MAPPINGS),
      'USAGE',
    ],
    ['is not valid', () => 'version: v1\n', 'POLICY_INVALID'],
  ])('C98 a service does not start where it %s', async (_what, identities, code) => {
    stage = await IdentityBench.open();
    await expect(IdentityBench.open({ identities })).rejects.toMatchObject({ code });
  });
});

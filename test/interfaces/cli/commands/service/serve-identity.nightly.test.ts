// `turnpike serve --oidc-issuer` as a process of its own, against an issuer on loopback: what valid and faulty tokens
// get, what the process reports, and what it never writes down.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AUDIENCE, newKey, OidcIssuer } from '../../../../fixtures/oidc-issuer.js';
import { diskFolder } from '../../../../fixtures/temp-folder.js';
import { buildMain, ServedProcess, WAIT_MS } from '../../../service/failures/served-process.js';

const MS_MAX = 3 * WAIT_MS;
const folder = diskFolder('identity');
let main: string;
beforeAll(async () => {
  main = await buildMain(join(folder, 'built'));
}, MS_MAX);

const identitiesOf = (issuer: string): string => `version: v1
contract_version: v1
last_updated: 2026-11-25
issuers:
  - issuer: ${issuer}
    mappings:
      - id: readers
        claims: { groups: [readers] }
        actor: { claim: employee_number }
        role: SANDBOX_AGENT
        case: any
        rights: [observe]
      - id: agents
        claims: { groups: [agents] }
        actor: { claim: employee_number }
        role: SANDBOX_AGENT
        case: { claim: case_id }
        rights: [act]
`;

const READER = { sub: 'subject-1', employee_number: 'e-0042', groups: ['staff', 'readers'] };
const AGENT = { sub: 'subject-2', employee_number: 'reporting agent', groups: ['agents'], case_id: 'case-0001' };
const seconds = (): number => Math.floor(Date.now() / 1_000);

/** How the same settings are given. */
const FORMS = {
  'options of the command': (issuer: string) => ({
    args: ['--oidc-issuer', issuer, '--oidc-audience', AUDIENCE, '--oidc-algorithm', 'ES256'],
    file: '',
  }),
  'turnpike.yaml': (issuer: string) => ({
    args: [],
    file: `serve:\n  oidc_issuer: [${issuer}]\n  oidc_audience: ${AUDIENCE}\n  oidc_algorithm: [ES256]\n`,
  }),
};

describe.each(Object.entries(FORMS))('C98 turnpike serve with %s', (form, settings) => {
  let issuer: OidcIssuer;
  let served: ServedProcess;
  const tokens: string[] = [];

  beforeAll(async () => {
    issuer = await OidcIssuer.open();
    const own = join(folder, form.replaceAll(/\W/g, '-'));
    mkdirSync(own);
    const { args, file } = settings(issuer.url);
    writeFileSync(join(own, 'identities.yaml'), identitiesOf(issuer.url));
    writeFileSync(join(own, 'turnpike.yaml'), file);
    const copies = [
      `cp "${own}/identities.yaml" contract/policy/identities.yaml`,
      ...(file === '' ? [] : [`cp "${own}/turnpike.yaml" turnpike.yaml`]),
      'turnpike policy check >&2',
      'turnpike policy pin >&2',
    ];
    served = ServedProcess.start({ main, folder: own, prepare: copies.join('\n'), args });
    await served.begin();
    await served.untilReady();
  }, MS_MAX);
  afterAll(async () => {
    await served.end();
    await issuer.close();
  }, MS_MAX);

  /** The status and code of a request with a token. */
  async function ask(token: string, path = '/runs', body?: object): Promise<string> {
    tokens.push(token);
    const headers = { authorization: `Bearer ${token}` };
    const { status, text } = await served.ask(path, {
      headers,
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    return `${status} ${(JSON.parse(text) as { code?: string }).code ?? ''}`.trim();
  }

  test('C98 a reader of the issuer reads, and starts nothing', async () => {
    const token = await issuer.token(READER);
    expect(await ask(token)).toBe('200');
    expect(await ask(token, '/agents', {})).toBe('403 RIGHT_MISSING');
  });

  test('C98 an agent of the issuer acts under the name of its claim, in the case of its claim', async () => {
    const token = await issuer.token(AGENT);
    expect(await ask(token, '/agents', { case: 'case-0001' })).toBe('201');
    expect(await ask(token, '/agents', { case: 'case-0002' })).toBe('403 RIGHT_MISSING');
    const [record] = served
      .command('runs', '--json', '--all')
      .split('\n')
      .filter((line) => line.includes('"reporting agent"'));
    expect(record).toContain('"case-0001"');
  });

  test.each<[fault: string, problem: string, token: () => Promise<string>]>([
    ['that has expired', 'expired', () => issuer.token({ ...READER, iat: seconds() - 900, exp: seconds() - 300 })],
    ['for another audience', 'audience', () => issuer.token({ ...READER, aud: 'another service' })],
    ['of another issuer', 'issuer_unknown', () => issuer.token({ ...READER, iss: 'https://issuer.example' })],
    [
      'with an algorithm that is not accepted',
      'algorithm',
      async () => issuer.token(READER, { key: await newKey('RS256') }),
    ],
    [
      'with another key under the id of the right one',
      'signature',
      async () => issuer.token(READER, { key: await newKey('ES256', issuer.key.kid) }),
    ],
    ['that no mapping matches', 'unmapped', () => issuer.token({ ...READER, groups: ['others'] })],
  ])('C98 a token %s is refused, and counted as %s', async (_fault, problem, token) => {
    expect(await ask(await token())).toBe('401 UNAUTHENTICATED');
    const line = `turnpike_identity_refused_total{problem="${problem}"} 1`;
    // The figures of one moment serve all who ask within it.
    await served.until(line, async () => (await served.admin('/metrics')).split('\n').includes(line));
  });

  test('C98 reports the check and the state of the keys', async () => {
    expect((await served.admin('/readyz?verbose')).split('\n')).toContain('[+]identity-provider ok');
    const metrics = await served.admin('/metrics');
    expect(metrics.split('\n')).toContain('turnpike_identity_keys{issuer="1"} 2');
    expect(metrics).not.toContain(issuer.url);
    expect([issuer.count('/.well-known/openid-configuration'), issuer.count('/jwks')]).toEqual([1, 1]);
  });

  test('C98 no part of a token is in the log or in the ledger', () => {
    const written = [
      served.stderr,
      served.command('runs', '--json', '--all'),
      ...['ledger.db', 'ledger.db-wal'].map((name) => readFileSync(served.path(`.turnpike/${name}`), 'latin1')),
    ].join('\n');
    expect(tokens.length).toBeGreaterThan(6);
    for (const token of tokens) {
      for (const part of token.split('.').slice(1)) expect(written).not.toContain(part);
    }
  });

  test('ends without an error, and its ledger verifies', async () => {
    expect(served.command('ledger', 'verify')).toMatch(/^ok: /);
    expect(await served.stop()).toBe(0);
  });
});

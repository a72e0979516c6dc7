// What `turnpike serve` refuses to start with: settings of issuers that would identify no caller, or the wrong ones.

import { beforeAll, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { initialised, put, turnpike, type Said } from '../../fake-io.js';

const FILE = 'contract/policy/identities.yaml';
const ISSUER = 'https://login.example.com';
const VALID = `version: v1
contract_version: v1
last_updated: 2026-11-25
issuers:
  - issuer: ${ISSUER}
    mappings:
      - id: readers
        claims: { groups: [readers] }
        actor: { claim: sub }
        role: SANDBOX_AGENT
        case: any
        rights: [observe]
`;
const OIDC = ['--oidc-issuer', ISSUER, '--oidc-audience', 'turnpike'];

let folder: string;
beforeAll(async () => {
  folder = await initialised();
});

/** Starts the service, and ends it at once. */
async function serveWith(text: string | null, options: readonly string[], isPinned = true): Promise<Said> {
  if (text === null) rmSync(join(folder, FILE), { force: true });
  else put(folder, FILE, text);
  if (isPinned) await turnpike(folder, ['policy', 'pin']);
  return turnpike(folder, ['serve', '--port', '0', ...options], { stop: AbortSignal.abort() });
}

test('C98 a service with an issuer and its mappings starts, although the issuer cannot be reached', async () => {
  expect(await serveWith(VALID, OIDC)).toMatchObject({ code: 0, stderr: expect.stringMatching(/^http:/) });
});

test.each<[what: string, text: string | null, options: readonly string[], isPinned: boolean, said: string]>([
  ['no identities.yaml', null, OIDC, true, 'USAGE: contract has no policy/identities.yaml, which says who'],
  [
    'an identities.yaml without a pin',
    `${VALID}# edited\n`,
    OIDC,
    false,
    'identities.yaml is not pinned (not_in_manifest): run `turnpike policy pin`',
  ],
  [
    'an issuer without mappings',
    VALID,
    ['--oidc-issuer', 'https://other.example.com', '--oidc-audience', 'turnpike'],
    true,
    'USAGE: identities.yaml has no mappings for https://other.example.com: it would identify no caller',
  ],
  [
    'an issuer over plain HTTP',
    VALID,
    ['--oidc-issuer', 'http://login.example.com', '--oidc-audience', 'turnpike'],
    true,
    'USAGE: an issuer is an https URL',
  ],
])('C98 refuses to start with %s', async (_what, text, options, isPinned, said) => {
  const { code, stderr } = await serveWith(text, options, isPinned);
  expect(stderr).toContain(said);
  expect(code).toBe(stderr.startsWith('USAGE: ') ? 2 : 1);
});

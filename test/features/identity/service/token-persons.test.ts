// C98: the persons behind actors of the token book, in requests and in votes.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { identitiesText, IdentityBench, MAPPINGS, ROLE, writeIdentities } from './identity-harness.js';

let stage: IdentityBench;
afterEach(() => stage.close());

const TOKENS =
  'tokens:\n  - { actor: berta-laptop, person: employee Berta Lang }\n  - { actor: berta-phone, person: employee Berta Lang }';
const identities = (issuers: readonly string[]): string => identitiesText(issuers, MAPPINGS, TOKENS);
const book = (actor: string): string => stage.http.token({ actor, role: ROLE, rights: ['approve', 'govern'] });

describe('C98 a person with a token of the token book', () => {
  test('C98 who has started an export with it cannot approve the export with a token of an issuer', async () => {
    stage = await IdentityBench.open({ rule: '', identities });
    const json = { case: 'case-local', reason: 'a request', name: 'bag' };
    const started = await stage.http.ask('/exports', book('berta-laptop'), { json });
    const request = (await started.json()) as { run_id: string; digest: string };
    expect(await stage.vote(await stage.counsel('Berta Lang'), request)).toBe('approval.by_requester');
    expect(await stage.vote(book('berta-phone'), request)).toBe('approval.by_requester');
  });

  test.each([
    ['not pinned', (text: string) => writeIdentities(stage.http.bench, `${text}# edited\n`, false)],
    ['invalid', () => writeIdentities(stage.http.bench, 'version: v1\n')],
    ['missing', () => rmSync(join(stage.http.bench.contract, 'policy/identities.yaml'))],
    [
      'a folder',
      () => {
        const path = join(stage.http.bench.contract, 'policy/identities.yaml');
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ])('C98 has one vote, also while identities.yaml is %s', async (_what, breakFile) => {
    stage = await IdentityBench.open({ rule: '', identities });
    const request = await stage.pending();
    expect(await stage.vote(book('berta-laptop'), request)).toBe('approval.accepted');
    breakFile(identities([stage.issuer.url]));
    stage.clock.advance(1_000);
    expect(await stage.vote(await stage.counsel('Otto Kern'), request)).toBe('401 UNAUTHENTICATED');
    expect(await stage.vote(book('berta-phone'), request)).toBe('approval.already_voted');
  });
});

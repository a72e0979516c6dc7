// C98: a person signs in at an issuer, reads, votes and signs out, in a real browser.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identitiesSource } from '../../../../../src/home/policy/home-policy.js';
import { pinManifest } from '../../../../../src/home/policy/manifest-policy-source.js';
import type { Entry } from '../../../../../src/core/contract/run/entry.js';
import { AUDIENCE, CLIENT, OidcIssuer } from '../../../../fixtures/oidc-issuer.js';
import { identitiesText, MAPPINGS } from '../../../../features/identity/service/identity-harness.js';
import { inChromium, Tab, withBrowser } from './browser.js';
import { Stage } from './stage.js';

inChromium('C98 signing in', () => {
  withBrowser();
  let stage: Stage;
  let issuer: OidcIssuer;
  beforeAll(async () => {
    issuer = await OidcIssuer.open();
    stage = await Stage.open({
      serving: (folder) => {
        const contract = join(folder, 'contract');
        writeFileSync(join(contract, 'policy/identities.yaml'), identitiesText([issuer.url], MAPPINGS));
        const files = ['lanes', 'roles', 'actions', 'identities'].map((name) => ({
          path: `policy/${name}.yaml`,
          bytes: readFileSync(join(contract, `policy/${name}.yaml`)),
          pin: { problem: 'never_committed' as const },
        }));
        writeFileSync(join(contract, 'pins.json'), JSON.stringify(pinManifest(files)));
        const login = { clientId: CLIENT.id, clientSecret: CLIENT.secret };
        const issuers = [{ issuer: issuer.url, audience: AUDIENCE }];
        return Promise.resolve({ identity: { issuers, identities: identitiesSource(contract), login } });
      },
    });
  }, 120_000);
  afterAll(async () => {
    await stage.close();
    await issuer.close();
  });

  test('C98 a person signs in, reads the ledger, votes and signs out; the page never has a token', async () => {
    const employee = 'e-17';
    issuer.user = { sub: 'anna', name: 'Anna Berg', employee, groups: ['counsel'] };
    // The first requests have no session, and the last ones have none any more.
    const tab = await Tab.open(`${stage.server.url}/`, { allowed: /401 \(Unauthorized\)/ });
    const { page } = tab;
    const addresses: string[] = [];
    page.on('framenavigated', (frame) => addresses.push(frame.url()));
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.locator('#go').click();
    await tab.see('.session-menu', 'Anna Berg');
    await tab.see('.connection', 'Live');
    const { origin, pathname, search } = new URL(page.url());
    expect([origin, pathname, search]).toEqual([stage.server.url, '/', '']);
    await tab.view('signed-in');
    const reachable = await page.evaluate(() => [document.cookie, sessionStorage.length, localStorage.length]);
    expect(reachable).toEqual(['', 0, 0]);
    const [cookie] = await page.context().cookies(stage.server.url);
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' });

    await page.goto(`${stage.server.url}/approvals`);
    await page.getByRole('button', { name: 'Approve' }).first().click();
    await page.getByRole('button', { name: 'Yes, approve' }).click();
    await tab.until(async () => {
      const votes: (Entry['body'] & { readonly identity?: unknown })[] = [];
      for await (const { text } of stage.turnpike.ledger.log()) {
        const { type, body } = JSON.parse(text) as Entry;
        if (type === 'audit_event' && body.target?.name === 'approval') votes.push(body);
      }
      return votes.some(({ identity }) => (identity as { source?: string } | undefined)?.source === 'oidc');
    }, true);

    await page.getByRole('button', { name: 'Sign out' }).click();
    await tab.see('[role=alert]');
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    expect(await page.context().cookies(stage.server.url)).toEqual([]);
    expect(addresses.filter((address) => /token|eyJ/.test(new URL(address).search + new URL(address).hash))).toEqual(
      [],
    );
    await tab.close();
  }, 180_000);
});

// What becomes of a vote, on the page of approvals: the export of the demonstration is written, and a failure is shown.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inChromium, withBrowser } from './browser.js';
import { Stage } from './stage.js';

inChromium('a vote', () => {
  withBrowser();
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open();
  });
  afterAll(() => stage.close());

  test('for the export of the demonstration writes it, and the page says that the export is completed', async () => {
    const tab = await stage.tab('', { path: '/approvals' });
    await tab.see('article', 'export');
    // The reason is a person's, not an agent's.
    await tab.see('.request .tag', 'caller text, untrusted');
    expect(await tab.text('.request')).not.toContain('agent text');
    await tab.page.getByRole('button', { name: 'Approve' }).click();
    await tab.page.getByRole('button', { name: 'Yes, approve' }).click();
    await tab.see('.vote-notice[role="status"]', 'counted (approval.granted)');
    await tab.see('.vote-notice', 'The export is completed');
    await tab.see('.empty', 'No approvals are pending');
    await tab.view('vote-completed-light');
    const written = statSync(join(stage.home, 'exports/case-session.zip'));
    expect([written.size > 1_000, written.mode & 0o777]).toEqual([true, 0o600]);
    await tab.close();
  });

  test('for an export that then fails shows the failure, and so does a vote that is not accepted', async () => {
    // A file stands where the folder of exports should be.
    rmSync(join(stage.home, 'exports'), { recursive: true, force: true });
    writeFileSync(join(stage.home, 'exports'), '');
    const request = { case: 'case-session', reason: 'Again.', destination: 'again.zip', format: 'zip' } as const;
    await stage.turnpike.export({ ...request, actor: 'governance', role: 'ATTORNEY_ADMIN' });
    const looker = await stage.tab('', {
      path: '/approvals',
      token: stage.token({ actor: 'looker', rights: ['observe'] }),
      allowed: /403/,
    });
    await looker.see('article', 'export');
    await looker.page.getByRole('button', { name: 'Approve' }).click();
    await looker.page.getByRole('button', { name: 'Yes, approve' }).click();
    await looker.see('.vote-notice[role="alert"]', 'The vote was not recorded: this token has no right to approve');
    await looker.close();
    const tab = await stage.tab('', { path: '/approvals', scheme: 'dark' });
    await tab.see('article', 'export');
    await tab.page.getByRole('button', { name: 'Approve' }).click();
    await tab.page.getByRole('button', { name: 'Yes, approve' }).click();
    await tab.see('.vote-notice[role="alert"]', /The export is failed/);
    await tab.view('vote-failed-dark');
    await tab.close();
    rmSync(join(stage.home, 'exports'));
    mkdirSync(join(stage.home, 'exports'));
  });
});

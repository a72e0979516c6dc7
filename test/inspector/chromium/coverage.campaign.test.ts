// The page that shows how often each element of policy decided.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inChromium, withBrowser } from './browser.js';
import { Stage } from './stage.js';

const MS_MAX = 120_000;

inChromium('the coverage of policy', () => {
  withBrowser();
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open();
  }, MS_MAX);
  afterAll(() => stage.close());

  test(
    'shows how often each element decided, and only those that never did if a reader asks for them',
    async () => {
      const tab = await stage.tab('', { path: '/coverage' });
      await tab.see('h1', 'Coverage');
      await tab.see('article small', 'elements never decided');
      const rows = async () => tab.page.locator('tbody tr').allTextContents();
      const all = await rows();
      expect(all).toContainEqual(expect.stringMatching(/^grant.*action WRITE_FILE\d+\d+$/));
      await tab.page.getByLabel('only what never decided').click();
      const never = await rows();
      expect(never.length).toBeGreaterThan(0);
      expect(never).toEqual(all.filter((row) => row.endsWith('never decided')));
      await tab.view('coverage-light');
      await tab.close();
      const approver = await stage.tab('', {
        path: '/coverage',
        token: stage.token({ actor: 'voter', rights: ['approve'] }),
        allowed: /403/,
      });
      await approver.see('[role="alert"]', 'observe');
      await approver.close();
    },
    MS_MAX,
  );
});

// The page that shows how often each element of policy decided.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inChromium, withBrowser } from './browser.js';
import { Stage } from './stage.js';

inChromium('the coverage of policy', () => {
  withBrowser();
  let stage: Stage;
  beforeAll(async () => {
    stage = await Stage.open();
  });
  afterAll(() => stage.close());

  test('shows how often each element decided, and only those that never did if a reader asks for them', async () => {
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
    const dark = await stage.tab('theme=dark', { path: '/coverage' });
    await dark.see('article table');
    // Like the cards of approvals: one left edge for all that a card has, space around each cell, lines between rows.
    const edges = await dark.page
      .locator('article')
      .first()
      .evaluate((card) => {
        const edgeOf = (selector: string): number => {
          const range = document.createRange();
          range.selectNodeContents(card.querySelector(selector)!);
          return Math.round(range.getBoundingClientRect().left);
        };
        const cell = getComputedStyle(card.querySelector('tbody tr:last-child td')!);
        return {
          lefts: new Set(['h2', 'p.quiet', 'th', 'tbody td'].map(edgeOf)).size,
          space: parseFloat(cell.paddingTop) > 0,
          line: parseFloat(cell.borderTopWidth) > 0,
          isInside: card.querySelector('table')!.scrollWidth <= card.clientWidth,
        };
      });
    expect(edges).toEqual({ lefts: 1, space: true, line: true, isInside: true });
    await dark.view('coverage-dark');
    await dark.close();
    const approver = await stage.tab('', {
      path: '/coverage',
      token: stage.token({ actor: 'voter', rights: ['approve'] }),
      allowed: /403/,
    });
    await approver.see('[role="alert"]', 'observe');
    await approver.close();
  });
});

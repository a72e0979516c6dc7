// The page while agents work: live updates, loss and return of the service, votes, and hostile text of an agent.

import { afterEach, expect, test } from '@jest/globals';
import { PHASES } from '../../../../../src/core/contract/run/phase.js';
import { DESK, inChromium, Tab, withBrowser } from './browser.js';
import { proposal, Stage, type Staging } from './stage.js';

const GONE = /Failed to load resource|net::ERR_|status of 40[134]/;

inChromium('the page while agents work', () => {
  withBrowser();
  const stages: Stage[] = [];
  const tabs: Tab[] = [];
  afterEach(async () => {
    for (const stage of stages) stage.release.resolve(null);
    for (const tab of tabs.splice(0)) await tab.close();
    for (const stage of stages.splice(0)) await stage.close();
  });
  const staged = async (staging: Staging): Promise<Stage> => {
    const stage = await Stage.open({ full: false, ...staging });
    stages.push(stage);
    return stage;
  };
  const open = async (...args: Parameters<Stage['tab']>): Promise<Tab> => {
    const tab = await (stages.at(-1) as Stage).tab(...args);
    tabs.push(tab);
    return tab;
  };
  const phases = (tab: Tab): Promise<readonly string[]> =>
    tab.page
      .locator('.rail li')
      .evaluateAll((all) => all.map((one) => (one.getAttribute('class') ?? '').split(' ')[0] ?? ''));
  const rowsShown = (tab: Tab): Promise<number> =>
    tab.page
      .locator('[role="grid"][aria-label="Events"]')
      .getAttribute('aria-rowcount')
      .then(Number, () => 0);

  test('an empty ledger is reported, the first run appears by itself, and each phase of a live step lights up', async () => {
    const stage = await staged({});
    const tab = await open();
    await tab.see('main', 'No run yet');
    await tab.see('.badge', 'Nothing to verify yet');
    await tab.view('empty-light');
    const agent = await stage.agent();
    await tab.see('.chart [data-state="running"].active');
    await tab.page.keyboard.press('2');
    // The rail at every change.
    await tab.page.evaluate(() => {
      const seen: string[][] = [[]];
      Object.assign(globalThis, { seen });
      new MutationObserver(() =>
        seen.push([...document.querySelectorAll('.rail li')].map((one) => one.className.split(' ')[0] ?? '')),
      ).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    const slow = agent.submit(proposal('CALL_TOOL', { tool: 'slow.tool', input: {} }));
    await stage.entered.promise;
    const before = PHASES.indexOf('EXECUTE');
    const waiting = PHASES.map((_, at) => (at < before ? 'passed' : at === before ? 'active' : 'ahead'));
    await tab.until(() => phases(tab), waiting);
    await tab.see('.rail .outcome', 'in progress');
    await tab.see('.chart [data-state^="EXECUTE"].active');
    await tab.view('live-light');
    stage.release.resolve(null);
    expect(await slow).toMatchObject({ outcome: 'SUCCESS' });
    await tab.until(
      () => phases(tab),
      PHASES.map(() => 'passed'),
    );
    await tab.see('.rail .outcome', 'SUCCESS');
    const seen = await tab.page.evaluate(() => (globalThis as unknown as { seen: string[][] }).seen);
    const lit = PHASES.filter((_, at) => seen[0]?.[at] !== 'passed' && seen.at(-1)?.[at] === 'passed');
    expect(lit).toEqual(PHASES);
    // A denied step stops where it was denied; later phases stay dark, except for the record.
    await agent.submit(proposal('DELETE_FILE', { path: '/etc/passwd' }));
    await tab.see('.rail .outcome', /DENIED|VALIDATION_ERROR/);
    expect(await phases(tab)).toContain('refused');
    expect((await phases(tab)).slice(-2)).toEqual(['passed', 'passed']);
    // Every position in between can be visited.
    await tab.page.keyboard.press('[');
    const walked = new Set<string>();
    for (let back = 0; back < 25; back += 1) {
      await tab.page.keyboard.press('ArrowLeft');
      walked.add((await phases(tab)).indexOf('active').toString());
    }
    expect(walked.size).toBeGreaterThan(5);
  });

  test('a lost stream is reported, the loaded data stays usable, and the stream resumes without loss or duplicates', async () => {
    const stage = await staged({});
    const agent = await stage.agent();
    await agent.submit(proposal('THINK'));
    const tab = await open('list=all', { allowed: GONE });
    await tab.see('.connection', 'Live');
    const { port } = stage.server;
    await stage.server.close();
    await tab.see('.connection', 'Connection lost');
    await tab.see('.live', 'Offline');
    const before = await rowsShown(tab);
    await tab.page.keyboard.press('k');
    await tab.view('lost-light');
    await tab.page.keyboard.press('l');
    for (let step = 0; step < 5; step += 1) await agent.submit(proposal('THINK'));
    await stage.serve();
    expect(stage.server.port).toBe(port);
    await tab.see('.connection', /^Live/);
    const size = await stage.turnpike.ledger.size();
    expect(size).toBeGreaterThan(before);
    await tab.until(() => rowsShown(tab), size);
    const numbers = await tab.page
      .locator('[role="row"] .number')
      .evaluateAll((all) => all.map((one) => Number(one.textContent)));
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at));
    // Requests that failed meanwhile are repeated.
    await tab.see('.chart svg');
    await tab.page.keyboard.press('Home');
    await tab.see('.badge', `Chain verified to @${size - 1}`);
  });

  test('another ledger at the same address is reported, and nothing is mixed', async () => {
    const first = await staged({});
    await (await first.agent()).submit(proposal('THINK'));
    const tab = await open('list=all', { allowed: GONE });
    await tab.see('.connection', 'Live');
    const [port, token] = [first.server.port, first.token()];
    const before = await rowsShown(tab);
    await first.server.close();
    const second = await staged({});
    await second.server.close();
    second.server = { ...second.server, port };
    second.takeTokensOf(first);
    const agent = await second.agent();
    for (let step = 0; step < 9; step += 1) await agent.submit(proposal('THINK'));
    await second.serve();
    await tab.see('.banner', 'another ledger');
    await tab.see('.connection', 'Another ledger');
    expect(await rowsShown(tab)).toBe(before);
    await tab.view('other-light');
    await tab.page.getByRole('button', { name: 'Load the page again' }).click();
    await tab.until(() => rowsShown(tab), await second.turnpike.ledger.size());
    expect(token).not.toBe('');
  });

  test('an invalid token is reported, and a retry with a valid one reads the ledger', async () => {
    await staged({});
    const tab = await open('', { token: 'x'.repeat(43), allowed: GONE });
    await tab.see('[role="alert"]', 'The service refused this page’s token');
    await tab.see('[role="alert"]', 'turnpike token --actor NAME');
    await tab.see('.connection', 'Token refused');
    await tab.see('.badge', 'Nothing to verify');
    await tab.view('refused-light');
    const without = await Tab.open(stages[0]?.server.url ?? '', { allowed: GONE, scheme: 'dark' });
    tabs.push(without);
    await without.see('[role="alert"]', 'opened without one');
    await without.view('refused-dark');
    // Only the reader triggers the retry, which is one request.
    let asked = 0;
    without.page.on('request', () => (asked += 1));
    await without.page.getByRole('button', { name: 'Try again' }).click();
    await without.see('.connection', 'Token refused');
    await without.until(() => Promise.resolve(asked), 1);
    const approvals = await open('', { path: '/approvals', token: 'x'.repeat(43), allowed: GONE });
    await approvals.see('[role="alert"]', 'turnpike token --actor NAME --role ROLE --right approve');
    await approvals.view('approvals-refused-light');
    // A token that is no longer valid: the data stays, and nothing more is requested.
    await (await stages[0]?.agent())?.submit(proposal('THINK'));
    const once = await open('', { allowed: GONE });
    await once.see('.badge', 'verified');
    await once.see('.chart svg');
    stages[0]?.revokeTokens();
    await once.see('.banner', 'no longer accepts this page’s token');
    await once.see('.banner', 'turnpike token');
    await once.see('.connection', 'Token refused');
    await once.see('.chart svg');
    await once.view('revoked-light');
    // A token that may approve but not observe still gets the pending approvals.
    const deaf = await open('', {
      path: '/approvals',
      token: stages[0]?.token({ rights: ['approve'] }) ?? '',
      allowed: GONE,
    });
    await deaf.see('.empty', 'No approvals are pending');
  });

  test('an address with another token, opened in a loaded page, reloads the page with that token, which is stored nowhere else', async () => {
    const stage = await staged({});
    await (await stage.agent()).submit(proposal('THINK'));
    const tab = await open('list=all', { token: 'x'.repeat(43), allowed: GONE });
    await tab.see('[role="alert"]', 'The service refused this page’s token');
    const token = stage.token();
    const went = async (path: string): Promise<void> => {
      const loaded = tab.page.waitForEvent('load');
      // As after pasting an address: the browser loads nothing if only the part after `#` differs.
      await tab.page.evaluate((to) => void (location.href = to), `${stage.server.url}${path}`);
      await loaded;
      await tab.until(
        () => Promise.resolve(tab.address),
        (address) => !address.includes('token'),
      );
      expect(await tab.page.evaluate(() => [location.href, document.body.textContent].join())).not.toContain(token);
    };
    await went(`/#token=${token}&list=all`);
    await tab.see('.connection', 'Live');
    expect(tab.address).toContain('list=all');
    // An invalid token replaces the page of the current reader.
    await went(`/#token=${'y'.repeat(43)}`);
    await tab.see('[role="alert"]', 'The service refused this page’s token');
    await went(`/#token=${token}`);
    await tab.see('.connection', 'Live');
    // Set while the page is about to write the address of its view: the new one stays until its event comes.
    const reloaded = tab.page.waitForEvent('load');
    await tab.page.evaluate((to) => {
      const later = globalThis.setTimeout;
      const due: (() => void)[] = [];
      const capture = (work: () => void, ms: number) => (ms === 150 ? due.push(work) : later(work, ms));
      globalThis.setTimeout = capture as typeof setTimeout;
      addEventListener('hashchange', () => ((location.hash = to), due.at(-1)?.()), { once: true });
      location.hash = '#problems=1';
    }, `#token=${token}&list=all`);
    await reloaded;
    await tab.see('.connection', 'Live');
    expect(tab.address).toContain('list=all');
    const approvals = await open('', { path: '/approvals', token: 'x'.repeat(43), allowed: GONE });
    await approvals.see('[role="alert"]');
    const loaded = approvals.page.waitForEvent('load');
    await approvals.page.evaluate((to) => void (location.hash = to), `#token=${token}`);
    await loaded;
    await approvals.see('.empty', 'No approvals are pending');
    expect(approvals.address).not.toContain('token');
  });

  test('approvals are on a separate page with a separate right: after an approval the run continues', async () => {
    const stage = await staged({ approved: true });
    const agent = await stage.agent();
    const charge = () => agent.submit(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 7 } }));
    expect(await charge()).toMatchObject({ outcome: 'DENIED' });
    const looker = await open('', {
      path: '/approvals',
      token: stage.token({ actor: 'looker', rights: ['observe'] }),
      allowed: GONE,
    });
    await looker.see('article', 'CALL_TOOL');
    await looker.page.getByRole('button', { name: 'Approve' }).click();
    await looker.page.getByRole('button', { name: 'Yes, approve' }).click();
    await looker.see('[role="alert"]', 'no right to approve');
    expect(await charge()).toMatchObject({ outcome: 'DENIED' });
    const tab = await open('', { path: '/approvals' });
    await tab.see('article', '0 of 1');
    expect(await tab.page.locator('.unseen').count()).toBe(0);
    await tab.see('article .request', 'billing.charge');
    await tab.view('approvals-light');
    await tab.page.getByRole('button', { name: 'Approve' }).click();
    await tab.see('footer', 'It cannot be taken back');
    await tab.view('approvals-sure');
    await tab.page.getByRole('button', { name: 'Yes, approve' }).click();
    await tab.see('.empty', 'No approvals are pending');
    expect(await charge()).toMatchObject({ outcome: 'SUCCESS' });
    const dark = await open('', { path: '/approvals', scheme: 'dark' });
    await dark.see('.empty', 'No approvals are pending');
    await dark.view('approvals-empty-dark');
    // New requests appear by themselves, and can be decided only after all of them was shown.
    const to = Array.from({ length: 260 }, (_, at) => `person-${at}@example`);
    const input = { to, text: `${'x'.repeat(3_000)}END` };
    expect(await agent.submit(proposal('CALL_TOOL', { tool: 'mail.send', input }))).toMatchObject({
      outcome: 'DENIED',
    });
    await dark.see('article', '0 of 1');
    const yes = dark.page.getByRole('button', { name: 'Approve' });
    expect(await yes.isDisabled()).toBe(true);
    expect(await dark.page.getByRole('button', { name: 'Reject' }).isDisabled()).toBe(true);
    await dark.see('.unseen', 'must see the whole request');
    await dark.view('approvals-unseen-dark');
    while ((await dark.page.getByRole('button', { name: /^more lines/ }).count()) > 0)
      await dark.page
        .getByRole('button', { name: /^more lines/ })
        .first()
        .click();
    expect(await yes.isDisabled()).toBe(true);
    await dark.page.getByRole('button', { name: /^show all/ }).click();
    await dark.see('.request .part', /END$/);
    await dark.until(() => yes.isDisabled(), false);
    expect(await dark.page.locator('.unseen').count()).toBe(0);
    await tab.see('article', '0 of 1');
  });

  test('a reader of content at the head stays at that position while new entries arrive', async () => {
    const stage = await staged({});
    const agent = await stage.agent();
    await agent.submit(proposal('THINK', {}, 'First of all.'));
    const tab = await open('list=all', { size: DESK });
    await tab.see('.live.on');
    await agent.end();
    const size = await stage.turnpike.ledger.size();
    const rows = () => rowsShown(tab);
    await tab.until(rows, size);
    const shown = () => tab.page.getAttribute('[role="slider"]', 'aria-valuenow').then(Number);
    await tab.page.keyboard.press('3');
    await tab.see('.story', 'What the agent saw');
    const before = await shown();
    expect(before).toBe(size - 1);
    await tab.page.getByRole('button', { name: 'Show content' }).first().click();
    await tab.see('.story .untrusted', 'First of all.');
    // The reading was recorded, and the displayed position has not moved.
    await tab.until(rows, (count) => count > size);
    expect(await shown()).toBe(before);
    await tab.see('.connection', 'viewing the past');
    // The total number of entries is still updated.
    await tab.until(
      async () => [await tab.text('.scrubber .where'), (await rows()).toLocaleString('en')] as const,
      ([said, grown]) => said.includes(` / ${grown}`),
    );
    await tab.see('.story .untrusted', 'First of all.');
    await tab.view('held-light');
    // At the head again, new content is not read automatically.
    await tab.page.keyboard.press('l');
    const now = await stage.turnpike.ledger.size();
    const isRead = (text: string): boolean => text.includes('CONTENT_READ');
    const read = await stage.count(isRead);
    const other = await stage.agent();
    await other.submit(proposal('THINK', {}, 'Second.'));
    await tab.until(rows, (count) => count > now);
    expect(await stage.count(isRead)).toBe(read);
  });

  test('text of an agent is inert and marked: markup, scripts, hidden and reordering characters, and sixty kilobytes of it', async () => {
    const stage = await staged({});
    const agent = await stage.agent();
    const markup = '<img src=x onerror=alert(1)><script>alert(2)</script><a href="https://evil.example">click</a>';
    const turned = 'pay \u202Eecivres\u202C to \u2066all\u2069 z\u200Be\u200Dr\uFEFFo \u{E0041} \u0007 end';
    await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: `${markup}\n${turned}` }, markup));
    await agent.submit(proposal('THINK', {}, `${turned} javascript:alert(3)`));
    await agent.submit(`{"big":"${'<b>\u202E'.repeat(10_000)}"}`);
    const run = agent.run_id;
    const tab = await open(`run=${run}&step=1&tab=story`);
    await tab.see('.story');
    await tab.page.getByRole('button', { name: 'Show content' }).first().click();
    await tab.see('.untrusted', '<script>alert(2)</script>');
    await tab.see('.untrusted .tag', 'agent text, untrusted');
    const inert = () =>
      tab.page.evaluate(() => [
        document.querySelectorAll('img, .story a, iframe, b[onclick]').length,
        document.querySelectorAll('script').length,
        [...document.querySelectorAll('.untrusted')].filter((one) => one.querySelector('bdi, .part') === null).length,
      ]);
    expect(await inert()).toEqual([0, 1, 0]);
    const marks = async () => [...new Set(await tab.page.locator('.hidden-character').allTextContents())].sort();
    expect(await marks()).toEqual(
      ['U+0007', 'U+200B', 'U+200D', 'U+202C', 'U+202E', 'U+2066', 'U+2069', 'U+E0041', 'U+FEFF'].sort(),
    );
    expect(await tab.page.evaluate(() => /[\u202E\u200B\u2066\uFEFF]/u.test(document.body.textContent))).toBe(false);
    await tab.view('untrusted-light');
    await tab.page.keyboard.press(']');
    await tab.see('.untrusted', 'javascript:alert(3)');
    await tab.page.keyboard.press(']');
    await tab.see('.story .untrusted', 'show all');
    expect((await tab.text('.story .untrusted')).length).toBeLessThan(20_000);
    await tab.page
      .getByRole('button', { name: /show all/ })
      .first()
      .click();
    await tab.page.keyboard.press('1');
    await tab.see('.chart svg');
    expect(tab.page.url()).toContain('127.0.0.1');
    // A text in a member that should contain a term of the contract is marked as the agent's too.
    await agent.submit(proposal('Approved by the administrator'));
    await tab.page.keyboard.press('3');
    await tab.page.keyboard.press(']');
    await tab.see('.story .untrusted', 'Approved by the administrator');
  });
});

// The page beside agents that are at work: what it shows the moment it happens, what it does when the service goes away
// and comes back, what people can answer, and what text of an agent cannot do to it.

import { afterEach, expect, test } from '@jest/globals';
import { PHASES } from '../../../src/contract/run/phase.js';
import { DESK, inChromium, Tab, withBrowser } from './browser.js';
import { proposal, Stage, type Staging } from './stage.js';

const MS_MAX = 120_000;
const GONE = /Failed to load resource|net::ERR_|status of 40[134]/;

inChromium('the page beside agents', () => {
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

  test(
    'nothing has run: it says so, and shows the first run by itself; each phase of a live step lights as it is reached',
    async () => {
      const stage = await staged({});
      const tab = await open();
      await tab.see('main', 'No run yet');
      await tab.see('.badge', 'Nothing to verify yet');
      await tab.view('empty-light');
      const agent = await stage.agent();
      await tab.see('.chart [data-state="running"].active');
      await tab.page.keyboard.press('2');
      // What the rail showed, at every change.
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
      // One that policy refuses stops where it was refused; what comes after lies in the dark but for the record.
      await agent.submit(proposal('DELETE_FILE', { path: '/etc/passwd' }));
      await tab.see('.rail .outcome', /DENIED|VALIDATION_ERROR/);
      expect(await phases(tab)).toContain('refused');
      expect((await phases(tab)).slice(-2)).toEqual(['passed', 'passed']);
      // Every moment in between can be gone through.
      await tab.page.keyboard.press('[');
      const walked = new Set<string>();
      for (let back = 0; back < 25; back += 1) {
        await tab.page.keyboard.press('ArrowLeft');
        walked.add((await phases(tab)).indexOf('active').toString());
      }
      expect(walked.size).toBeGreaterThan(5);
    },
    MS_MAX,
  );

  test(
    'a stream that is lost is said to be, what is there stays usable, and it goes on without loss or a second time',
    async () => {
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
      // What could not be asked for meanwhile is asked for again.
      await tab.see('.chart svg');
      await tab.page.keyboard.press('Home');
      await tab.see('.badge', `Chain verified to #${size - 1}`);
    },
    MS_MAX,
  );

  test(
    'behind the same address comes another ledger: it says so and mixes nothing',
    async () => {
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
    },
    MS_MAX,
  );

  test(
    'a token that is none is said to be, and the ledger is read when somebody tries again with one',
    async () => {
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
      // To try again is somebody's to say, and no more than one question.
      let asked = 0;
      without.page.on('request', () => (asked += 1));
      await without.page.getByRole('button', { name: 'Try again' }).click();
      await without.see('.connection', 'Token refused');
      await without.until(() => Promise.resolve(asked), 1);
      const approvals = await open('', { path: '/approvals', token: 'x'.repeat(43), allowed: GONE });
      await approvals.see('[role="alert"]', 'turnpike token --actor NAME --role ROLE --right approve');
      await approvals.view('approvals-refused-light');
      // One that holds no longer: what is there stays, and nobody is asked again.
      await (await stages[0]?.agent())?.submit(proposal('THINK'));
      const once = await open('', { allowed: GONE });
      await once.see('.badge', 'verified');
      await once.see('.chart svg');
      stages[0]?.revokeTokens();
      await once.see('.banner', 'does not take this page’s token any more');
      await once.see('.banner', 'turnpike token');
      await once.see('.connection', 'Token refused');
      await once.see('.chart svg');
      await once.view('revoked-light');
      // Who may answer and not look hears of what waits all the same.
      const deaf = await open('', {
        path: '/approvals',
        token: stages[0]?.token({ rights: ['approve'] }) ?? '',
        allowed: GONE,
      });
      await deaf.see('.empty', 'Nothing waits');
    },
    MS_MAX,
  );

  test(
    'an address with another token, opened in a page that is there, opens the page with that, and it stands nowhere',
    async () => {
      const stage = await staged({});
      await (await stage.agent()).submit(proposal('THINK'));
      const tab = await open('list=all', { token: 'x'.repeat(43), allowed: GONE });
      await tab.see('[role="alert"]', 'The service refused this page’s token');
      const token = stage.token();
      const went = async (path: string): Promise<void> => {
        const loaded = tab.page.waitForEvent('load');
        // As somebody does who pastes an address: the browser loads nothing for what differs behind `#` alone.
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
      // One that is none takes the page away from whoever sits there now.
      await went(`/#token=${'y'.repeat(43)}`);
      await tab.see('[role="alert"]', 'The service refused this page’s token');
      await went(`/#token=${token}`);
      await tab.see('.connection', 'Live');
      const approvals = await open('', { path: '/approvals', token: 'x'.repeat(43), allowed: GONE });
      await approvals.see('[role="alert"]');
      const loaded = approvals.page.waitForEvent('load');
      await approvals.page.evaluate((to) => void (location.hash = to), `#token=${token}`);
      await loaded;
      await approvals.see('.empty', 'Nothing waits');
      expect(approvals.address).not.toContain('token');
    },
    MS_MAX,
  );

  test(
    'people approve on a page of its own, with a right of its own: one says yes and the run goes on',
    async () => {
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
      await looker.see('[role="status"]', 'no right to approve');
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
      await tab.see('.empty', 'Nothing waits');
      expect(await charge()).toMatchObject({ outcome: 'SUCCESS' });
      const dark = await open('', { path: '/approvals', scheme: 'dark' });
      await dark.see('.empty', 'Nothing waits');
      await dark.view('approvals-empty-dark');
      // What is asked for from now on comes by itself, and is answered only by who has seen all of it.
      const to = Array.from({ length: 260 }, (_, at) => `nobody-${at}@example`);
      const input = { to, text: `${'x'.repeat(3_000)}END` };
      expect(await agent.submit(proposal('CALL_TOOL', { tool: 'mail.send', input }))).toMatchObject({
        outcome: 'DENIED',
      });
      await dark.see('article', '0 of 1');
      const yes = dark.page.getByRole('button', { name: 'Approve' });
      expect(await yes.isDisabled()).toBe(true);
      expect(await dark.page.getByRole('button', { name: 'Reject' }).isDisabled()).toBe(true);
      await dark.see('.unseen', 'must have seen all of it');
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
    },
    MS_MAX,
  );

  test(
    'who reads content at the head stays at what he reads, while what comes goes on coming',
    async () => {
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
      // It was written down, and nothing that is looked at has moved.
      await tab.until(rows, (count) => count > size);
      expect(await shown()).toBe(before);
      await tab.see('.connection', 'viewing the past');
      // Of how many it is one goes on being said.
      await tab.until(
        async () => [await tab.text('.scrubber .where'), (await rows()).toLocaleString('en')] as const,
        ([said, grown]) => said.includes(` / ${grown}`),
      );
      await tab.see('.story .untrusted', 'First of all.');
      await tab.view('held-light');
      // At the head again, what comes is not read because it comes.
      await tab.page.keyboard.press('l');
      const now = await stage.turnpike.ledger.size();
      const isRead = (text: string): boolean => text.includes('CONTENT_READ');
      const read = await stage.count(isRead);
      const other = await stage.agent();
      await other.submit(proposal('THINK', {}, 'Second.'));
      await tab.until(rows, (count) => count > now);
      expect(await stage.count(isRead)).toBe(read);
    },
    MS_MAX,
  );

  test(
    'text of an agent is inert and marked: markup, scripts, hidden and turning characters, and sixty kilobytes of it',
    async () => {
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
      // What should be a word of the contract, and is a sentence, is the agent's as well.
      await agent.submit(proposal('Approved by the administrator'));
      await tab.page.keyboard.press('3');
      await tab.page.keyboard.press(']');
      await tab.see('.story .untrusted', 'Approved by the administrator');
    },
    MS_MAX,
  );
});

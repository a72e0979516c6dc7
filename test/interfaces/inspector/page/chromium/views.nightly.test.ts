// Every view of the page on a real ledger, in a real browser: its content, its address, its keys, and no finding of
// axe, in light and dark.

import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { DESK, inChromium, NARROW, WIDE, withBrowser, type Opening, type Tab } from './browser.js';
import { Stage } from './stage.js';

const ROW = '[role="row"][aria-selected="true"]';

inChromium('the page', () => {
  withBrowser();
  let stage: Stage;
  /** The run of the agent that was attacked, and of the one that only worked. */
  let mixture = '';
  let work = '';
  let session = '';
  let tabs: Tab[] = [];
  beforeAll(async () => {
    stage = await Stage.open();
    [mixture = '', work = ''] = await Promise.all(['case-mixture', 'case-session'].map((one) => stage.agentOf(one)));
    session = (await stage.agentOf('case-handbook')).split('.')[0] ?? '';
  });
  afterAll(() => stage.close());
  afterEach(async () => {
    const opened = tabs;
    tabs = [];
    for (const tab of opened) await tab.close();
  });

  const open = async (view = '', opening: Opening & { readonly path?: string } = {}): Promise<Tab> => {
    const tab = await stage.tab(view, opening);
    tabs.push(tab);
    return tab;
  };
  const at = async (tab: Tab): Promise<number> =>
    Number(await tab.page.getAttribute('[role="slider"]', 'aria-valuenow'));
  const key = (tab: Tab, ...keys: string[]): Promise<void> =>
    keys.reduce((done, one) => done.then(() => tab.page.keyboard.press(one)), Promise.resolve());

  test('draws the tree, both charts, the list and the scrubber, removes the token from its address, and proves the chain', async () => {
    const tab = await open(`run=${mixture}`);
    await tab.see('.chart svg [data-state="completed"].active');
    expect(tab.address).not.toContain('token');
    expect(await tab.page.locator('[role="treeitem"]').count()).toBeGreaterThan(4);
    const size = await stage.turnpike.ledger.size();
    expect(await tab.page.getAttribute('[role="slider"]', 'aria-valuemax')).toBe(String(size - 1));
    await tab.see('.badge', `Chain verified to @${size - 1}`);
    expect(await tab.page.locator('.ticks').count()).toBeGreaterThan(1);
    await tab.view('run-light');
    await key(tab, '2');
    await tab.see('.chart svg [data-state="EXECUTE"]');
    expect(await tab.page.locator('.rail li').count()).toBe(9);
    await tab.view('step-light');
  });

  test('is as large and as clear in dark, and on a wide screen', async () => {
    const dark = await open(`run=${mixture}&step=16&tab=step`, { scheme: 'dark' });
    await dark.see('.rail .outcome');
    await dark.see('.badge', 'verified');
    await dark.view('step-dark');
    await key(dark, '1');
    await dark.see('.chart svg [data-state="running"]');
    await dark.view('run-dark');
    const wide = await open(`run=${mixture}`, { size: WIDE });
    await wide.see('.badge', 'verified');
    await wide.view('run-wide');
    // The choice in the page has priority over the system setting.
    await wide.page.getByRole('button', { name: 'Theme: auto' }).click();
    await wide.page.getByRole('button', { name: 'Theme: light' }).click();
    await wide.until(
      () => Promise.resolve(wide.address),
      (url) => url.includes('theme=dark'),
    );
    await wide.view('run-wide-dark');
  });

  test('shows the past as it was, and returns to live', async () => {
    const tab = await open(`run=${mixture}`);
    await tab.see('.live.on');
    const head = await at(tab);
    const runs = await tab.page.locator('[role="treeitem"]').count();
    const box = await tab.page.locator('[role="slider"]').boundingBox();
    if (box === null) throw new Error('no scrubber');
    await tab.page.mouse.click(box.x + box.width / 5, box.y + box.height / 2);
    await tab.see('.connection', 'viewing the past');
    const past = await at(tab);
    expect(Math.abs(past - head / 5)).toBeLessThan(5);
    expect(await tab.page.locator('[role="treeitem"]').count()).toBeLessThan(runs);
    await tab.see('.crumbs', 'not created yet');
    // A run that did not exist yet has no active states.
    expect(await tab.page.locator('.chart [data-state].active, .chart [data-state].visited').count()).toBe(0);
    await tab.view('past-light');
    // Before the first event of the listed run there is nothing to move to; in the whole log there is.
    await key(tab, 'ArrowLeft');
    expect(await at(tab)).toBe(past);
    await tab.page.getByLabel('this run').uncheck();
    await key(tab, 'ArrowLeft', 'ArrowLeft');
    expect(await at(tab)).toBe(past - 2);
    await key(tab, 'l');
    await tab.see('.live.on');
    expect(await at(tab)).toBe(head);
    expect(await tab.page.locator('[role="treeitem"]').count()).toBeGreaterThanOrEqual(runs);
    await key(tab, 'Home');
    expect(await at(tab)).toBe(0);
    await key(tab, 'End');
    expect(await at(tab)).toBe(head);
  });

  test('opens the same view from its address in a new page', async () => {
    const tab = await open(`run=${mixture}`);
    await tab.see('.live.on');
    await key(tab, '2', '[', '[', '[');
    await tab.page.getByLabel('problems').check();
    await tab.page.locator('[role="row"]').nth(2).click();
    await key(tab, 'j');
    await tab.until(
      () => Promise.resolve(tab.address),
      (url) => /problems=1/.test(url) && /at=\d/.test(url),
    );
    // The address is written a moment later.
    await tab.page.waitForTimeout(300);
    const said = async (of: Tab): Promise<readonly string[]> => {
      const parts = ['.tree', '.crumbs', '.tabs', '.rail', '.chart', ROW, '.details', '.scrubber', '.list-head'];
      return Promise.all(parts.map((part) => of.page.locator(part).ariaSnapshot()));
    };
    const again = await open(tab.address.split('#')[1] ?? '');
    await again.see('.rail .outcome');
    for (const one of [tab, again]) {
      await one.see('.badge', 'verified');
      await one.see('.details h3', 'Entry');
    }
    expect(again.address.split('#')[1]).toBe(tab.address.split('#')[1]);
    expect(await said(again)).toEqual(await said(tab));
  });

  test('filters by words, outcome and run, and reports an empty result', async () => {
    const tab = await open(`run=${mixture}&list=all`);
    await tab.see('[role="grid"]');
    const rows = async (): Promise<number> =>
      Number(await tab.page.getAttribute('[role="grid"][aria-label="Events"]', 'aria-rowcount'));
    const all = await rows();
    expect(all).toBe(await stage.turnpike.ledger.size());
    await key(tab, '/');
    await tab.page.keyboard.type('denied');
    const denied = await stage.count((text) => text.includes('"outcome":"DENIED"') && text.includes('"step_trace"'));
    expect(denied).toBeGreaterThan(3);
    await tab.until(rows, (count) => count >= denied && count < all / 2);
    await tab.page.getByLabel('Filter events').fill('DENIED step');
    await tab.page.getByLabel('Filter events').fill(mixture.slice(0, 12));
    await tab.until(rows, (count) => count > 50 && count < all);
    await tab.page.getByLabel('Filter events').fill('');
    await tab.page.getByLabel('problems').check();
    const problems = await rows();
    expect(problems).toBeLessThan(all / 2);
    await tab.page.getByLabel('this run').check();
    await tab.until(rows, (count) => count > 0 && count < problems);
    await tab.page.getByLabel('Filter events').fill('zebra');
    await tab.see('.note', 'No event matches');
    await tab.view('no-match');
    await tab.page.getByRole('button', { name: 'Clear the filter' }).click();
    await tab.until(rows, (count) => count > 50);
  });

  test('compares two steps on the chart and in the list: only A, only B, both', async () => {
    const denied = await stage.stepOf(mixture, 'DENIED');
    const tab = await open(`run=${mixture}&step=1&tab=step`);
    await tab.see('.rail .outcome', 'SUCCESS');
    await key(tab, 'c');
    await tab.page.getByRole('button', { name: new RegExp(`^Step ${denied},`) }).click();
    await tab.see('.legend', 'both');
    for (const side of ['a', 'b', 'both']) {
      if (side !== 'b') expect(await tab.page.locator(`.chart .side-${side}`).count()).toBeGreaterThan(0);
      expect(await tab.page.locator(`[role="row"].side-${side}`).count()).toBeGreaterThan(0);
    }
    expect(await tab.page.locator('.chart .edge.side-b').count()).toBeGreaterThan(0);
    await tab.view('compare-light');
    await tab.until(
      () => Promise.resolve(tab.address),
      (url) => url.includes(`cmp=${mixture}:${denied}`),
    );
    await key(tab, 'Escape');
    expect(await tab.page.locator('.legend').count()).toBe(0);
    const dark = await open(`run=${mixture}&cmp=${work}`, { scheme: 'dark' });
    await dark.see('.legend', 'both');
    await dark.view('compare-runs-dark');
  });

  test('explains a decision: the checks in order, the rule that decided, and the agent’s view next to it', async () => {
    const denied = await stage.stepOf(mixture, 'DENIED');
    const tab = await open(`run=${mixture}&step=${denied}&tab=story`);
    await tab.see('.story', 'What the agent saw');
    await tab.see('.story', 'What was recorded');
    await tab.page.getByRole('button', { name: 'Show content' }).first().click();
    await tab.see('.story .untrusted');
    await tab.see('.story .why-not', 'Not taken from');
    await tab.view('story-light');
    const decision = await stage.find((text) => text.includes('"decision":"deny"') && text.includes('"authz"'));
    const why = await open(`list=all&at=${decision}`);
    await why.see('.why', 'What would reverse it');
    expect(await why.page.locator('.why ol li.h-denied').count()).toBe(1);
    await why.view('why-light');
  });

  test('shows a run tree in wall time, and a session with its phases, tasks and gates', async () => {
    const time = await open(`run=${mixture}&tab=time`);
    await time.see('.waterfall .bar');
    // Its content was read later, which does not extend its duration.
    expect(await time.text('.waterfall .span.selected .track small')).toMatch(/^\d+ ms$|^[1-9]\.\d s$/);
    await time.view('waterfall-light');
    const tab = await open(`run=${session}&tab=session`);
    await tab.see('.session .phases', 'gate');
    expect(await tab.page.locator(`[id="run-${session}"] .said`).textContent()).toBe('running');
    await tab.see('.session .task');
    await tab.view('session-light');
    // The packet that the agent received, word for word, and only on request.
    await tab.page.locator('.task .packet button').first().click();
    await tab.see('.packet-body', 'the proof itself is not stored');
    expect(await tab.text('.session')).not.toContain('Ada keeps the keys');
    await tab.page.getByRole('button', { name: 'Show its text' }).click();
    await tab.see('.packet-body .untrusted', 'Ada keeps the keys');
    await tab.see('.packet-body', 'the hash matches');
    await tab.see('.packet-body .tag', 'spec text, untrusted');
    await tab.view('session-packet-light');
    const dark = await open(`run=${session}&tab=session`, { scheme: 'dark' });
    await dark.page.locator('.task .packet button').first().click();
    await dark.see('.packet-body', 'the proof itself is not stored');
    await dark.view('session-packet-dark');
    await tab.page.getByRole('tab', { name: 'Session machine' }).click();
    await tab.see('.chart svg');
    await tab.view('session-machine-light');
  });

  test('shows what was proved, what that does not prove, and the keys, and fits into a small window', async () => {
    const tab = await open(`run=${mixture}&step=9&tab=step`);
    await tab.see('.badge', 'verified');
    await tab.page.locator('.badge').click();
    await tab.see('.popover', 'What that does not prove');
    await tab.see('.popover', 'its signature is valid, the root matches');
    await tab.view('proof-light');
    await key(tab, 'Escape', '?');
    await tab.see('dialog[open]', 'filter the events');
    await tab.view('keys-light');
    await key(tab, 'Escape');
    await tab.until(() => tab.page.locator('dialog[open], .popover').count(), 0);
    await tab.page.setViewportSize(NARROW);
    await tab.view('narrow');
    await tab.page.getByRole('button', { name: 'Events', exact: true }).click();
    await tab.see('.side [role="grid"]');
    await tab.view('narrow-events');
    await key(tab, 'Escape');
    await tab.page.getByRole('button', { name: 'Runs', exact: true }).click();
    await tab.see('[role="tree"]');
    await tab.view('narrow-runs');
    await tab.page.setViewportSize(DESK);
  });

  test('scrolls the displayed step into view, without querying the browser for its position', async () => {
    const tab = await open(`run=${mixture}&step=1&tab=step`, { size: NARROW });
    await tab.see('.rail .outcome');
    await tab.see('.chip[data-step="1"][aria-pressed="true"]');
    await tab.page.evaluate(() => {
      const own = Object.getOwnPropertyDescriptor(Element.prototype, 'scrollLeft');
      const asked: string[] = [];
      Object.assign(globalThis, { asked });
      Object.defineProperty(Element.prototype, 'scrollLeft', {
        ...own,
        get(this: Element): unknown {
          // After scrolling, the browser computes the layout anyway.
          if ((globalThis as { event?: Event }).event?.type !== 'scroll') asked.push(this.className);
          return own?.get?.call(this);
        },
      });
    });
    const shown = (): Promise<string> =>
      tab.page.evaluate(() => {
        const chip = document.querySelector<HTMLElement>('.chip[aria-pressed="true"]');
        const [own, box] = [chip, chip?.closest('.chips')].map((one) => one?.getBoundingClientRect());
        const isIn = own !== undefined && box !== undefined && own.left >= box.left - 1 && own.right <= box.right + 1;
        return `${chip?.dataset['step'] ?? ''} ${isIn ? 'in sight' : 'out of sight'}`;
      });
    for (let step = 2; step <= 16; step += 1) {
      await key(tab, ']');
      await tab.until(shown, `${step} in sight`);
    }
    for (let step = 15; step >= 1; step -= 1) {
      await key(tab, '[');
      await tab.until(shown, `${step} in sight`);
    }
    // In the past, only the steps that had started are shown.
    await key(tab, 'l', 'End', 'ArrowLeft', 'PageUp', 'ArrowRight');
    await tab.stands();
    expect(await tab.page.evaluate(() => (globalThis as unknown as { asked: string[] }).asked)).toEqual([]);
  });

  test('works with the keyboard alone: every control is reachable, and every key does what the list says', async () => {
    const tab = await open(`run=${mixture}`);
    await tab.see('.badge', /Chain verified to @/);
    // The tab is named after the step as soon as the course of the run is loaded.
    await tab.see('[role="tab"]', /Step machine · #/);
    const controls = await tab.page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>('button:enabled, a, input, [tabindex="0"]')]
        .filter((one) => one.checkVisibility() && one.tabIndex >= 0)
        .map((one) => one.ariaLabel ?? one.textContent),
    );
    const reached = new Set<string>();
    for (let tries = 0; tries < 150 && controls.some((one) => !reached.has(one)); tries += 1) {
      await key(tab, 'Tab');
      reached.add(
        await tab.page.evaluate(() => document.activeElement?.ariaLabel ?? document.activeElement?.textContent ?? ''),
      );
    }
    expect(controls.filter((one) => !reached.has(one))).toEqual([]);
    // The steps are one tab stop, and arrow keys move among them without selecting.
    expect(await tab.page.locator('.chip[tabindex="0"]').count()).toBe(1);
    await tab.page.locator('.chip[tabindex="0"]').focus();
    const focused = () => tab.page.evaluate(() => (document.activeElement as HTMLElement).dataset['step']);
    const view = tab.address;
    await key(tab, 'Home');
    await tab.until(focused, '1');
    await key(tab, 'ArrowRight', 'ArrowRight');
    await tab.until(focused, '3');
    await key(tab, 'End');
    await tab.until(focused, (step) => Number(step) > 15);
    await key(tab, 'ArrowLeft', 'Home', 'ArrowRight');
    await tab.until(focused, '2');
    expect([tab.address, await tab.page.locator('.chip[tabindex="0"]').count()]).toEqual([view, 1]);
    await key(tab, 'Enter');
    await tab.see('[role="tab"][aria-selected="true"]', 'Step machine · #2');
    await key(tab, '1');
    await tab.page.evaluate(() => (document.activeElement as HTMLElement).blur());
    const head = await at(tab);
    await key(tab, 'k');
    const before = await at(tab);
    expect(before).toBeLessThan(head);
    await key(tab, 'j', 'PageUp');
    expect(await at(tab)).toBeLessThan(before - 20);
    await key(tab, 'PageDown', 'l');
    expect(await at(tab)).toBe(head);
    for (const [digit, name] of [
      ['2', 'Step machine'],
      ['3', 'Agent’s view'],
      ['4', 'Waterfall'],
      ['1', 'Run machine'],
    ]) {
      await key(tab, digit ?? '');
      await tab.see('[role="tab"][aria-selected="true"]', name);
    }
    const size = () => tab.text('.zoom button:nth-child(2)');
    const fit = await size();
    await key(tab, '+');
    expect(await size()).not.toBe(fit);
    await key(tab, '0');
    expect(await size()).toBe(fit);
    await tab.page.locator('[role="tree"]').focus();
    await key(tab, 'Home');
    const first = await tab.text('[role="treeitem"][aria-selected="true"]');
    await key(tab, 'ArrowDown');
    expect(await tab.text('[role="treeitem"][aria-selected="true"]')).not.toBe(first);
    const shown = await tab.page.locator('[role="treeitem"]').count();
    await key(tab, 'Home', 'ArrowRight');
    await tab.until(
      () => tab.page.locator('[role="treeitem"]').count(),
      (count) => count !== shown,
    );
    expect(await tab.page.locator(ROW).count()).toBeLessThan(2);
  });
});

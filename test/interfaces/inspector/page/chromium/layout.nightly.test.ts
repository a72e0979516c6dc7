// The page on screens of every width: each button can be pressed where it is drawn, no two controls overlap, and axe
// finds nothing.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inChromium, withBrowser, type Tab } from './browser.js';
import { proposal, Stage } from './stage.js';

const WIDTHS = [390, 768, 1024, 1180, 1280, 1440];
const MS_MAX = 180_000;

/** Runs in the page. @returns the controls that cannot be pressed at their centre, and the pairs that overlap */
function findLayoutFaults(): { readonly controls: number; readonly faults: readonly string[] } {
  const faults: string[] = [];
  const nameOf = (one: Element): string =>
    `${one.tagName.toLowerCase()}.${one.className} "${(one.getAttribute('aria-label') ?? one.textContent).slice(0, 40)}"`;
  const tab = document.querySelector('[data-drawer="none"] [role="tab"][aria-selected="true"]');
  if (tab !== null) {
    const [own, list] = [tab.getBoundingClientRect(), (tab.parentElement ?? tab).getBoundingClientRect()];
    if (own.left < list.left - 1 || own.right > list.right + 1) faults.push(`${nameOf(tab)} is selected and cut off`);
  }
  for (const detail of document.querySelectorAll('.why li > span')) {
    if (detail.textContent !== '' && detail.getBoundingClientRect().width < 60)
      faults.push(`${nameOf(detail)} has no room`);
  }
  const line = document.querySelector('.definition span')?.getBoundingClientRect();
  for (const state of line === undefined ? [] : document.querySelectorAll('.chart .state')) {
    const { left, right, top, bottom } = state.getBoundingClientRect();
    if (line !== undefined && left < line.right && right > line.left && top < line.bottom && bottom > line.top)
      faults.push(`${nameOf(state)} is behind the line below the chart`);
  }
  const controls = [...document.querySelectorAll<HTMLElement>('button, a, input, [role="slider"]')].filter((one) =>
    one.checkVisibility({ checkVisibilityCSS: true }),
  );
  for (const one of controls) {
    one.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const { left, top, width, height } = one.getBoundingClientRect();
    const hit = document.elementFromPoint(left + width / 2, top + height / 2);
    if (
      hit === null ||
      !(one.contains(hit) || hit.contains(one)) ||
      hit === document.body ||
      hit === document.documentElement
    )
      faults.push(
        `${nameOf(one)} is not hit at ${left + width / 2}, ${top + height / 2}: ${hit === null ? 'nothing' : nameOf(hit)}`,
      );
    if (one.matches('[role="tab"]') && one.scrollWidth > one.clientWidth + 1)
      faults.push(`${nameOf(one)}: its text leaves it`);
    if (left < -1 || left + width > innerWidth + 1) faults.push(`${nameOf(one)} leaves the window`);
  }
  // The part of each control that its scrolling ancestors show.
  const shownOf = (one: HTMLElement) => {
    let { left, top, right, bottom } = one.getBoundingClientRect();
    for (let above = one.parentElement; above !== null; above = above.parentElement) {
      if (getComputedStyle(above).overflowX === 'visible' && getComputedStyle(above).overflowY === 'visible') continue;
      const box = above.getBoundingClientRect();
      [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
      [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { left, top, right, bottom };
  };
  const boxes = controls.map((one) => ({ one, box: shownOf(one) }));
  for (const [place, a] of boxes.entries()) {
    for (const b of boxes.slice(place + 1)) {
      if (a.one.contains(b.one) || b.one.contains(a.one)) continue;
      const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (wide > 1 && high > 1) faults.push(`${nameOf(a.one)} and ${nameOf(b.one)} overlap by ${wide} x ${high}`);
    }
  }
  return { controls: controls.length, faults };
}

inChromium('the page on every screen', () => {
  withBrowser();
  let stage: Stage;
  let run = '';
  beforeAll(async () => {
    stage = await Stage.open({ full: false, approved: true });
    const agent = await stage.agent();
    for (let step = 0; step < 30; step += 1) await agent.submit(proposal('THINK'));
    await agent.submit(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 7 } }));
    await agent.submit('not json');
    run = agent.run_id;
  }, MS_MAX);
  afterAll(() => stage.close());

  const faultsOf = async (tab: Tab): Promise<readonly string[]> => {
    await tab.stands();
    const { controls, faults } = await tab.page.evaluate(findLayoutFaults);
    expect(controls).toBeGreaterThan(2);
    return faults;
  };

  test.each(WIDTHS)(
    'at %d pixels every control can be pressed, none overlaps another, and axe finds nothing',
    async (width) => {
      const size = { width, height: width < 700 ? 800 : 754 };
      const tab = await stage.tab(`run=${run}&step=31&tab=step`, { size });
      await tab.see('.rail .outcome', 'needs approval');
      await tab.see('.badge', 'verified');
      const found: Record<string, readonly string[]> = { step: await faultsOf(tab) };
      await tab.view(`layout-${width}-step`);
      for (const [key, name] of [
        ['1', 'run'],
        ['3', 'story'],
        ['4', 'waterfall'],
      ] as const) {
        await tab.page.keyboard.press(key);
        found[name] = await faultsOf(tab);
        await tab.view(`layout-${width}-${name}`);
      }
      for (const name of width < 1024 ? ['Runs', 'Events'] : []) {
        await tab.page.getByRole('button', { name, exact: true }).click();
        found[name] = await faultsOf(tab);
        await tab.view(`layout-${width}-${name.toLowerCase()}`);
        await tab.page.getByRole('button', { name, exact: true }).click();
      }
      await tab.close();
      const approvals = await stage.tab('', { size, path: '/approvals' });
      await approvals.see('article', '0 of 1');
      found['approvals'] = await faultsOf(approvals);
      await approvals.page.getByRole('button', { name: 'Approve' }).click();
      found['sure'] = await faultsOf(approvals);
      await approvals.view(`layout-${width}-approvals`);
      await approvals.page.getByRole('button', { name: 'Cancel' }).click();
      await approvals.page.getByRole('link', { name: 'Coverage' }).click();
      await approvals.see('td', 'never decided');
      found['coverage'] = await faultsOf(approvals);
      await approvals.view(`layout-${width}-coverage`);
      await approvals.close();
      expect(Object.fromEntries(Object.entries(found).filter(([, faults]) => faults.length > 0))).toEqual({});
    },
    MS_MAX,
  );
});

// A live page under load: at every moment, all of its panels show the same revision of the ledger. A sample reads all
// of them in one evaluation of the page: what each panel says that it shows, and what its texts say.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inChromium, withBrowser, type Tab } from './browser.js';
import { proposal, Stage } from './stage.js';

const SAMPLES = Number(process.env['TURNPIKE_REVISION_SAMPLES'] ?? 400);
const MS_MAX = 60_000 + SAMPLES * 60;

/** One sample: the revisions of all panels, and those that the page's texts give. */
interface Sample {
  readonly panels: Readonly<Record<string, number>>;
  readonly texts: Readonly<Record<string, number>>;
  /** The state of the run in the list of runs and in the chart. */
  readonly states: readonly string[];
}

/** Runs in the page. @returns the samples that do not agree, and the number of revisions that were seen */
async function sampleAll(count: number) {
  const number = (text: string | null | undefined): number => Number((text ?? '').replaceAll(',', ''));
  const textOf = (selector: string): string => document.querySelector(selector)?.textContent ?? '';
  const sample = (): Sample => {
    const panels: Record<string, number> = {};
    for (const panel of document.querySelectorAll<HTMLElement>('[data-revision]'))
      panels[panel.className.split(' ')[0] ?? ''] = Number(panel.dataset['revision']);
    const [, verified = '', fresh = '0'] = /to #(\d+)(?: · ([\d,]+) new)?/.exec(textOf('.badge')) ?? [];
    const slider = document.querySelector('[role="slider"]');
    const texts: Record<string, number> = {
      scrubber: number(textOf('.scrubber .where b')),
      scrubbed: number(textOf('.scrubber .where span').split('/')[1]),
      slider: number(slider?.getAttribute('aria-valuenow')) + 1,
      sliderEnd: number(slider?.getAttribute('aria-valuemax')) + 1,
      list: number(document.querySelector('[role="grid"]')?.getAttribute('aria-rowcount')),
      row: number(textOf('[role="row"][aria-selected="true"] .number')) + 1,
      details: number(textOf('.details header small').replace(/\D/g, '')) + 1,
    };
    if (verified !== '') texts['badge'] = number(verified) + number(fresh) + 1;
    const chart = [...document.querySelectorAll<HTMLElement>('.chart [data-state].active')].map(
      (one) => one.getAttribute('data-state')?.split('.')[0] ?? '',
    );
    const pill = textOf('.crumbs .pill');
    // The chart of a step has phases; that of the run has the state that the list of runs has.
    const isRun = document.querySelector('#tab-run')?.getAttribute('aria-selected') === 'true';
    const states = isRun && chart.length > 0 ? [pill, ...chart.filter((one) => one !== '')] : [];
    return { panels, texts, states };
  };
  const wrong: Sample[] = [];
  const revisions = new Set<number>();
  let panels = 0;
  for (let taken = 0; taken < count; taken += 1) {
    const one = sample();
    const numbers = [...Object.values(one.panels), ...Object.values(one.texts)];
    revisions.add(numbers[0] ?? 0);
    panels = Math.max(panels, numbers.length);
    if (new Set(numbers).size > 1 || new Set(one.states).size > 1) wrong.push(one);
    // Between tasks of the page: before, between and after its drawings.
    await new Promise<void>((resolve) =>
      taken % 3 === 0 ? requestAnimationFrame(() => resolve()) : setTimeout(resolve, taken % 7),
    );
  }
  return { wrong: wrong.slice(0, 5), count: wrong.length, revisions: revisions.size, panels };
}

inChromium('a live page under load', () => {
  withBrowser();
  let stage: Stage;
  let tab: Tab;
  let working = true;
  const work: Promise<void>[] = [];
  beforeAll(async () => {
    stage = await Stage.open({ full: false });
  }, MS_MAX);
  afterAll(async () => {
    working = false;
    await Promise.all(work);
    await tab.close();
    await stage.close();
  });

  test(
    `shows one revision in all panels in each of ${SAMPLES} samples`,
    async () => {
      const start = () => stage.turnpike.startAgent({ case: 'case-load' });
      const shown = await start();
      await shown.submit(proposal('THINK'));
      const others = await Promise.all([start(), start()]);
      tab = await stage.tab(`run=${shown.run_id}&list=all&tab=run`);
      await tab.see('.chart svg');
      await tab.see('.connection', 'Live');
      for (const [nth, agent] of [shown, ...others].entries())
        work.push(
          (async () => {
            for (let step = 0; working; step += 1) {
              const path = `/sandbox/${nth}-${step % 5}.md`;
              await agent.submit(step % 3 === 0 ? proposal('THINK') : proposal('WRITE_FILE', { path, content: 'x' }));
              await new Promise((resolve) => setTimeout(resolve, 20));
            }
          })(),
        );
      // Half of the samples on each machine: the course of a step is another panel.
      const first = await tab.page.evaluate(sampleAll, Math.ceil(SAMPLES / 2));
      await tab.page.keyboard.press('2');
      await tab.see('.rail');
      const second = await tab.page.evaluate(sampleAll, Math.floor(SAMPLES / 2));
      process.stdout.write(
        `revisions: ${first.count + second.count} of ${SAMPLES} samples differ; ` +
          `${first.revisions + second.revisions} revisions, ${first.panels} and ${second.panels} values a sample\n`,
      );
      expect([...first.wrong, ...second.wrong]).toEqual([]);
      expect(Math.min(first.panels, second.panels)).toBeGreaterThan(13);
      // The page was drawn again and again meanwhile.
      expect(first.revisions + second.revisions).toBeGreaterThan(SAMPLES / 100);
    },
    MS_MAX,
  );
});

// The speed of the inspector page on long ledgers, in a real Chromium: the first draw, a step of the scrubber, live
// entries, and the memory of the page. Prints figures, asserts nothing. `npm run bench -- inspector [10000 ...]`

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { pageFiles, serveTurnpike, singleTokenBook } from '../../dist/src/interfaces/http/index.js';
import { patientContract } from './contract.mjs';
import { payload } from './payloads.mjs';

const given = process.argv.slice(2).map(Number).filter(Boolean);
const SIZES = given.length > 0 ? given : [10_000, 100_000];
const LIVE_EVENTS = 200;
const LIVE_MS = 5_000;
const ROUNDS = 5;
const STEPS = 60;
const token = 'a-token-of-the-bench';
const dist = fileURLToPath(new URL('../../dist/inspector', import.meta.url));
const page = pageFiles(dist);
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const ms = (number) => `${Math.round(number)} ms`;
const path = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((one) =>
  existsSync(one),
);
if (path === undefined) throw new Error('Chromium is not installed');

/** Lets agents work until the ledger has this length. */
async function fill(turnpike, size) {
  while ((await turnpike.ledger.size()) < size) {
    const runs = await Promise.all(Array.from({ length: 8 }, (_, at) => turnpike.startAgent({ case: `case-${at}` })));
    await Promise.all(
      runs.map(async (run) => {
        for (let step = 0; step < 90 && (await turnpike.ledger.size()) < size; step += 1)
          await run.respond(payload(step % 7 === 3 ? 'denied' : 'write')).catch(() => undefined);
        await run.end().catch(() => undefined);
      }),
    );
  }
}

/** Processor time of a page's main thread so far, in milliseconds: other load does not count. */
async function busy(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
}

async function firstDraw(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const tab = await context.newPage();
  await tab.addInitScript(() => {
    const look = () => {
      const drawn = document.querySelector('.chart svg g g') && document.querySelector('[role="row"]');
      if (drawn === null) return requestAnimationFrame(look);
      requestAnimationFrame(() => (globalThis.drawnAt = performance.now()));
    };
    requestAnimationFrame(look);
  });
  await tab.goto(`${url}/#token=${token}&list=all`);
  await tab.waitForFunction(() => globalThis.drawnAt !== undefined, null, { timeout: 60_000 });
  const drawn = await tab.evaluate(() => globalThis.drawnAt);
  await tab.waitForFunction(() => document.querySelector('.tree .loading') === null, null, { timeout: 120_000 });
  const whole = await tab.evaluate(() => performance.now());
  return { context, tab, drawn, whole };
}

const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** The main thread's time for one step of the cursor: dragged over the log, and row by row through a run. */
async function scrub(tab, session) {
  const { x, y, width, height } = await tab.locator('[role="slider"]').boundingBox();
  const measured = async (step) => {
    await step(0);
    await tab.waitForTimeout(1_500);
    const before = await busy(session);
    for (let at = 1; at <= STEPS; at += 1) {
      await step(at);
      await tab.evaluate(frame);
    }
    return ((await busy(session)) - before) / STEPS;
  };
  await tab.mouse.move(x + width * 0.9, y + height / 2);
  await tab.mouse.down();
  const dragged = await measured((at) => tab.mouse.move(x + width * 0.9 - at * 2, y + height / 2));
  await tab.mouse.up();
  await tab.getByLabel('this run').check();
  await tab.keyboard.press('l');
  const rows = await measured(() => tab.keyboard.press('ArrowLeft'));
  await tab.getByLabel('this run').uncheck();
  await tab.keyboard.press('l');
  return [dragged, rows];
}

/** The load of the main thread while agents write this number of entries per second. */
async function live(tab, session, turnpike) {
  await tab.waitForTimeout(500);
  const from = await turnpike.ledger.size();
  const run = await turnpike.startAgent({ case: 'case-live' });
  const [begin, before] = [performance.now(), await busy(session)];
  while (performance.now() - begin < LIVE_MS) {
    const due = from + ((performance.now() - begin) / 1000) * LIVE_EVENTS;
    if ((await turnpike.ledger.size()) < due) await run.respond(payload('write'));
    else await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const took = performance.now() - begin;
  const share = ((await busy(session)) - before) / took;
  const rate = ((await turnpike.ledger.size()) - from) / (took / 1000);
  await run.end().catch(() => undefined);
  return { share, rate };
}

const sizes = ['index.html', ...readdirSync(join(dist, 'assets')).map((name) => `assets/${name}`)]
  .map((name) => gzipSync(readFileSync(join(dist, name)), { level: 9 }).length)
  .reduce((sum, size) => sum + size, 0);
console.log(`page: ${(sizes / 1000).toFixed(1)} kB gzip (wanted: < 60)`);

const folder = mkdtempSync(join(tmpdir(), 'turnpike-inspector-'));
const log = winstonLog('error');
const browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  const home = join(folder, 'home');
  const turnpike = await openTurnpike({ home, contract: patientContract(join(folder, 'contract')), log });
  for (const size of SIZES) {
    await fill(turnpike, size);
    const { ledger } = turnpike;
    const grant = { actor: 'bench', role: 'bench', rights: ['observe'] };
    const clock = { now: () => Date.now() };
    const tokens = singleTokenBook(token, grant, clock);
    const served = { turnpike, host: '127.0.0.1', port: 0, storedTokens: false, tokens, page, log };
    const server = await serveTurnpike(served);
    const draws = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const { context, tab, drawn, whole } = await firstDraw(browser, server.url);
      draws.push({ drawn, whole });
      if (round < ROUNDS - 1) {
        await context.close();
        continue;
      }
      const session = await context.newCDPSession(tab);
      await session.send('Performance.enable', { timeDomain: 'threadTicks' });
      await tab
        .waitForSelector('.badge.verified', { timeout: 120_000 })
        .catch(() => console.log('  not proved in time'));
      const proved = await tab.evaluate(() => performance.now());
      const [dragged, row] = await scrub(tab, session);
      const { share, rate } = await live(tab, session, turnpike);
      const heap = await tab.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
      console.log(
        `${await ledger.size()} events: first draw ${ms(median(draws.map((d) => d.drawn)))} ` +
          `(${draws.map((d) => Math.round(d.drawn)).join(' ')}), all read ${ms(median(draws.map((d) => d.whole)))}, ` +
          `proved ${ms(proved)}; scrub ${dragged.toFixed(1)} ms a step, row by row ${row.toFixed(1)} ms; ` +
          `live ${rate.toFixed(0)} events/s ${(share * 100).toFixed(0)} % of the main thread; heap ${heap.toFixed(0)} MB; ` +
          `load ${loadavg()
            .map((load) => load.toFixed(1))
            .join(' ')}`,
      );
      await context.close();
    }
    await server.close();
  }
  await turnpike.close();
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}

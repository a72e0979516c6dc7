// The documentation site, built as `npm run docs` builds it, and read in Chromium from a server on this machine.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { inChromium, Tab, withBrowser } from '../interfaces/inspector/page/chromium/browser.js';
import { entryPoints } from '../../tools/generate/api-report.js';
import { filesIn, ROOT } from '../sources.js';

const SITE = join(ROOT, 'dist/docs');
const BUILD_MS_MAX = 600_000;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};
const DESK = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

let output = '';

// It fails on a dead link and on an exported symbol without a comment.
beforeAll(async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'tools/site/build.mjs')], { cwd: ROOT });
  output = stdout;
}, BUILD_MS_MAX);

const htmlOf = (page: string): string => readFileSync(join(SITE, page), 'utf8');

describe('npm run docs', () => {
  test('finds no problem', () => {
    expect(output).toMatch(/^docs: \d+ pages in dist\/docs in \d+ s, 0 problems$/m);
  });

  test('builds every page of the repository', () => {
    const pages = filesIn('docs', /\.md$/).filter((path) => !path.startsWith('docs/examples/'));
    expect(pages.filter((path) => !existsSync(join(SITE, path.replace(/\.md$/, '.html'))))).toEqual([]);
  });

  test('builds the API of every entry point', () => {
    const missing = [...entryPoints().keys()].filter(
      (name) => !existsSync(join(SITE, 'api', `${name}.html`)) && !existsSync(join(SITE, 'api', `${name}-1.html`)),
    );
    expect(missing).toEqual([]);
  });

  test('shows diagrams inside the page', () => {
    expect(htmlOf('docs/explanation/life-of-a-step.html')).toContain('data-phase="AUTHORIZE"');
  });

  test('has copies of examples, and none of a test or of a source file', () => {
    const copies = readdirSync(join(SITE, 'media')).filter((name) => name.endsWith('.txt'));
    expect(copies).toContain('agent.mjs.txt');
    expect(copies.filter((name) => /\.tsx?\.txt$/.test(name))).toEqual([]);
  });
});

inChromium('the site in a browser', () => {
  withBrowser();
  let server: Server;
  let address = '';

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = decodeURIComponent(new URL(request.url ?? '/', 'http://site').pathname);
      const file = join(SITE, path.endsWith('/') ? `${path}index.html` : path);
      if (!file.startsWith(SITE) || !existsSync(file)) return response.writeHead(404).end();
      return response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'text/plain' }).end(readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  /** Waits for the sidebar, which a narrow screen hides. */
  const navigated = (tab: Tab): Promise<void> =>
    tab.page.locator('#tsd-nav-container .tsd-accordion').first().waitFor({ state: 'attached' });

  const open = async (page: string, size = DESK, scheme: 'light' | 'dark' = 'light'): Promise<Tab> => {
    const tab = await Tab.open(`${address}${page}`, { size, scheme });
    await navigated(tab);
    return tab;
  };

  const shownPicture = async (tab: Tab): Promise<readonly string[]> => {
    const pictures = tab.page.locator('picture img:visible');
    await pictures.first().scrollIntoViewIfNeeded();
    await tab.until(() => pictures.first().evaluate((image: HTMLImageElement) => image.naturalWidth > 0), true);
    return pictures.evaluateAll((all) =>
      all.map((image) => (image as HTMLImageElement).currentSrc.replace(/^.*\//, '')),
    );
  };

  test.each([
    ['index.html', DESK, 'light'],
    ['index.html', DESK, 'dark'],
    ['index.html', PHONE, 'light'],
    ['index.html', PHONE, 'dark'],
    ['docs/tutorials/operator.html', PHONE, 'light'],
    ['docs/how-to/simulate-a-policy.html', PHONE, 'dark'],
    ['docs/contributing.html', PHONE, 'light'],
    ['README.html', PHONE, 'light'],
  ] as const)('%s on a screen of %j in %s fits its width, and axe finds nothing', async (page, size, scheme) => {
    const tab = await open(page, size, scheme);
    await tab.view(`site-${page.replaceAll('/', '-')}-${String(size.width)}-${scheme}`);
    expect(await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await tab.close();
  });

  test('the start page shows one picture, in the theme of the site and not of the system', async () => {
    const tab = await open('index.html', DESK, 'dark');
    expect(await shownPicture(tab)).toEqual([expect.stringMatching(/-dark\.webp$/)]);
    await tab.page.evaluate(() => localStorage.setItem('tsd-theme', 'light'));
    await tab.page.reload();
    await navigated(tab);
    expect(await shownPicture(tab)).toEqual([expect.stringMatching(/-light\.webp$/)]);
    await tab.close();
  });

  test('the start page has four starting points, each with a command, from which one click leads to a tutorial', async () => {
    const tab = await open('index.html');
    const cards = tab.page.locator('.start-cards > div');
    expect(await cards.count()).toBe(4);
    for (let card = 0; card < 4; card += 1) {
      expect(await cards.nth(card).locator('pre').innerText()).toMatch(/^npx turnpike /);
      await cards.nth(card).locator('p a').first().click();
      await tab.see('.tsd-breadcrumb', 'Tutorials');
      await tab.page.goBack();
    }
    await tab.close();
  });

  test('search on the start page finds a page by a word of its text', async () => {
    const tab = await open('index.html', PHONE);
    await tab.page.locator('#tsd-search-trigger').click();
    await tab.page.locator('#tsd-search-input').fill('auditor');
    const result = tab.page.locator('#tsd-search-results a', { hasText: 'First hour as an auditor' });
    await result.first().click();
    await tab.see('h1', 'First hour as an auditor');
    await tab.close();
  });

  test('the sidebar has Contributing as its last part, closed, with the decisions in one group', async () => {
    const tab = await open('index.html');
    const parts = tab.page.locator('#tsd-nav-container > li > details');
    expect(await parts.locator('> summary').allInnerTexts()).toEqual([
      'Tutorials',
      'How-to guides',
      'Explanation',
      'Topics',
      'Reference',
      'Contract',
      'Contributing',
    ]);
    const last = parts.last();
    expect(await last.evaluate((part: HTMLDetailsElement) => part.open)).toBe(false);
    await last.locator('> summary').click();
    await last.locator('details > summary', { hasText: 'Decisions' }).click();
    await last.locator('details a').first().click();
    await tab.see('.tsd-breadcrumb', 'Contributing');
    await tab.close();
  });

  test('next leads through all tutorials in the order of the sidebar, and previous back', async () => {
    const tab = await open('docs/tutorials/service-developer.html');
    const links = tab.page.locator('#tsd-nav-container > li').filter({ hasText: 'Tutorials' }).locator('a');
    const titles = await links.allInnerTexts();
    expect(titles.length).toBe(filesIn('docs/tutorials', /\.md$/).length);
    for (const title of titles.slice(1)) {
      await tab.page.locator('.site-neighbours a[rel="next"]').click();
      await tab.see('h1', title);
    }
    for (const title of titles.slice(0, -1).reverse()) {
      await tab.page.locator('.site-neighbours a[rel="prev"]').click();
      await tab.see('h1', title);
    }
    expect(await tab.page.locator('.site-neighbours a[rel="prev"]').count()).toBe(0);
    await tab.close();
  });
});

// Runs the inspector page in a real Chromium. Every page collects console messages, reports of the content security
// policy and findings of axe, and a test fails if there are any.

import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { readPageFolder, type PageFile } from '../../../../../src/interfaces/inspector/page-folder.js';
import { builtPage } from '../../../../fixtures/built-page.js';
import { suiteFolder } from '../../../../fixtures/temp-folder.js';
import { pictureTool } from '../../../../docs/picture-tools.js';
import { ROOT } from '../../../../sources.js';

const { CHROMIUM } = await pictureTool<{ readonly CHROMIUM: string | undefined }>('chromium.mjs');
const { waitForRest } = await pictureTool<{ readonly waitForRest: (page: Page) => Promise<void> }>('scenes.mjs');
const AXE = readFileSync(join(ROOT, 'node_modules/axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** Permits connections to this machine only. */
const LOOPBACK = 'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';
/** Waiting time for a view, in milliseconds; a machine may be busy. */
const WAIT_MS = 30_000;
export const DESK = { width: 1440, height: 900 } as const;
export const WIDE = { width: 1920, height: 1080 } as const;
export const NARROW = { width: 800, height: 700 } as const;

/** Suites that need a browser. Without one, CI fails, and other runs print one line. */
export const inChromium = ((): typeof describe | typeof describe.skip => {
  if (CHROMIUM !== undefined) return describe;
  if (process.env['CI'] !== undefined) throw new Error('Chromium is not installed, and CI must have it');
  process.stdout.write('skipped: what needs Chromium, which is not installed here\n');
  return describe.skip;
})();

/** The folder for screenshots. */
const screenshots = (): string => process.env['TURNPIKE_SCREENSHOTS'] ?? suiteFolder('pictures');

/** The files of the page, built from the current sources. */
export function presentPage(): Promise<ReadonlyMap<string, PageFile>> {
  return built().then(readPageFolder);
}
export const presentTemplate = async (): Promise<string> => readFileSync(join(await built(), 'one-file.html'), 'utf8');

const built = (): Promise<string> => builtPage('build/page');

let browser: Browser | null = null;

/** Call once per suite: one browser for all of its tests. */
export function withBrowser(): void {
  beforeAll(async () => {
    const args = ['--no-sandbox', '--disable-dev-shm-usage', `--host-resolver-rules=${LOOPBACK}`];
    browser = await chromium.launch({ ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }), args });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    browser = null;
  });
}

export interface Opening {
  readonly size?: { readonly width: number; readonly height: number };
  readonly scheme?: 'light' | 'dark';
  /** The permitted console messages when a failure is expected: the network is gone, a token is refused. */
  readonly allowed?: RegExp;
}

/** A tab, and all its complaints. */
export class Tab {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #complaints: string[] = [];

  private constructor(context: BrowserContext, page: Page, allowed: RegExp | undefined) {
    this.#context = context;
    this.page = page;
    const complain = (text: string): void => {
      if (allowed?.test(text) !== true) this.#complaints.push(text);
    };
    page.on('pageerror', (error) => complain(`thrown: ${error.message}`));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complain(`${message.type()}: ${message.text()}`);
    });
    page.on('dialog', (dialog) => {
      complain(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  static async open(url: string, { size = DESK, scheme = 'light', allowed }: Opening = {}): Promise<Tab> {
    if (browser === null) throw new Error('no browser: call withBrowser()');
    const context = await browser.newContext({ viewport: size, colorScheme: scheme });
    // A violation of the policy in a worker or a frame is reported here too.
    await context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    const tab = new Tab(context, await context.newPage(), allowed);
    tab.page.setDefaultTimeout(WAIT_MS);
    await tab.page.goto(url);
    return tab;
  }

  /** Another page that shares only the browser with this one. */
  get address(): string {
    return this.page.url();
  }

  async axe(): Promise<void> {
    await this.page.evaluate(AXE);
    const found = await this.page.evaluate(async (runOnly) => {
      const { axe } = globalThis as unknown as { axe: { run: (where: Document, how: object) => Promise<Found> } };
      const { violations } = await axe.run(document, { runOnly });
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
    }, RULES);
    expect(found).toEqual([]);
  }

  /** Resolves when nothing has changed for a moment; for a view that never rests, after the next moment. */
  async stands(): Promise<void> {
    await waitForRest(this.page);
  }

  async picture(name: string): Promise<void> {
    await this.page.screenshot({ path: join(screenshots(), `${name}.png`) });
  }

  /** Takes a screenshot and runs axe. */
  async view(name: string): Promise<void> {
    await this.stands();
    await this.picture(name);
    await this.axe();
  }

  /** The text of the first element; '' without one. */
  async text(selector: string): Promise<string> {
    return (await this.page.locator(selector).first().textContent({ timeout: WAIT_MS })) ?? '';
  }

  see(selector: string, text?: string | RegExp): Promise<void> {
    const found = this.page.locator(selector);
    return (text === undefined ? found : found.filter({ hasText: text })).first().waitFor({ timeout: WAIT_MS });
  }

  /** Waits until a condition holds. */
  async until<T>(what: () => Promise<T>, expected: T | ((value: T) => boolean)): Promise<void> {
    const holds = (value: T): boolean =>
      expected instanceof Function ? expected(value) : JSON.stringify(value) === JSON.stringify(expected);
    let value = await what();
    for (let tries = 0; tries < 600 && !holds(value); tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      value = await what();
    }
    if (!holds(value)) expect(value).toEqual(expected instanceof Function ? 'something else' : expected);
  }

  get complaints(): readonly string[] {
    return this.#complaints;
  }

  /** Expects no complaints. */
  async close(): Promise<void> {
    await this.#context.close();
    expect(this.#complaints).toEqual([]);
  }
}

interface Found {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

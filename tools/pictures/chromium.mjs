// Chromium with the page of the demonstration in it, in one theme and size at a time.

import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

/** Undefined where Chromium is not installed. */
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** Permits connections to this machine only. */
const LOOPBACK = 'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';
/** Waiting time for a view, in milliseconds; a machine may be busy. */
const WAIT_MS = 30_000;
/** Glyphs have the same grey levels on every screen. */
const RENDERING = ['--font-render-hinting=none', '--disable-lcd-text', '--force-color-profile=srgb'];

export function launchChromium() {
  if (CHROMIUM === undefined) throw new Error('Chromium is not installed: install it, then run `npm run pictures`');
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-dev-shm-usage', `--host-resolver-rules=${LOOPBACK}`, ...RENDERING],
  });
}

/**
 * Opens the page of a demonstration, and closes it after `use`.
 * @param view what the address has after its token, such as `run=run_x.1&tab=step`
 */
export async function withPage(browser, demo, { size, scheme, scale = 1, path = '/', view = '' }, use) {
  const context = await browser.newContext({
    viewport: size,
    colorScheme: scheme,
    deviceScaleFactor: scale,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    await page.goto(`${demo.url}${path}#token=${demo.token}${view === '' ? '' : `&${view}`}`);
    return await use(page);
  } finally {
    await context.close();
  }
}

/** Waits until the first element of a selector has a text. */
export const see = (page, selector, text) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: WAIT_MS });

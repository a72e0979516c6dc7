// Whether the pictures of docs/pictures still show the page: the views that they show are visited again, in a real
// Chromium, and described without what differs from one start to the next.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { builtPage } from '../fixtures/built-page.js';
import { built } from './built.js';
import { pictureTool, type Manifest, type Picture } from './picture-tools.js';
import { ROOT, textOf } from '../sources.js';

const MS_MAX = 300_000;
/** What the views say, for a reader who wants to know what has changed. */
const DESCRIPTIONS = 'build/pictures';

type Views = Readonly<Record<string, Picture['shows']>>;
type Description = Readonly<Record<string, readonly string[]>>;

interface Camera {
  readonly isRecording: boolean;
  readonly frame: (page: Page) => Promise<void>;
  readonly still: (page: Page) => Promise<void>;
}

interface Tools {
  readonly CHROMIUM: string | undefined;
  readonly launchChromium: () => Promise<Browser>;
  readonly visitViews: (
    browser: Browser,
    camera: Camera,
    report: (file: string, moment: string, description: Description) => void,
  ) => Promise<Views>;
}

const tools: Tools = {
  ...(await pictureTool<Pick<Tools, 'CHROMIUM' | 'launchChromium'>>('chromium.mjs')),
  ...(await pictureTool<Pick<Tools, 'visitViews'>>('views.mjs')),
};
const NO_CAMERA: Camera = { isRecording: false, frame: () => Promise.resolve(), still: () => Promise.resolve() };

if (tools.CHROMIUM === undefined && process.env['CI'] !== undefined)
  throw new Error('Chromium is not installed, and CI must have it');
const inChromium = tools.CHROMIUM === undefined ? describe.skip : describe;

const { pictures } = JSON.parse(textOf('docs/pictures/pictures.json')) as Manifest;

inChromium('a picture of the page', () => {
  let views: Views = {};

  beforeAll(async () => {
    await built();
    await builtPage('dist/inspector');
    const browser = await tools.launchChromium();
    try {
      views = await tools.visitViews(browser, NO_CAMERA, writeDescription);
    } finally {
      await browser.close();
    }
  }, MS_MAX);

  test('of every view is in the list', () => {
    expect(Object.keys(views).sort()).toEqual(Object.keys(pictures).sort());
  });

  test.each(Object.entries(pictures))('%s shows the page of today', (file, { shows }) => {
    const older = changedParts(shows, views[file] ?? {});
    if (older.length > 0)
      throw new Error(
        `docs/pictures/${file} is older than the page: ${older.join(', ')} changed. Run \`npm run pictures\`. ` +
          `${DESCRIPTIONS} has the descriptions of the page of today.`,
      );
  });
});

/** The names of the digests that differ, such as `text` or `a vote: style`. */
function changedParts(before: Picture['shows'] | string, now: Picture['shows'] | string): readonly string[] {
  if (typeof before === 'string' || typeof now === 'string') return before === now ? [] : [''];
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].flatMap((name) =>
    changedParts(before[name] ?? '', now[name] ?? '').map((part) => (part === '' ? name : `${name}: ${part}`)),
  );
}

function writeDescription(file: string, moment: string, description: Description): void {
  mkdirSync(join(ROOT, DESCRIPTIONS), { recursive: true });
  const name = [file, ...moment.split(' ').filter(Boolean)].join('-');
  const text = Object.entries(description).map(([part, lines]) => `${part}\n${lines.join('\n')}\n`);
  writeFileSync(join(ROOT, DESCRIPTIONS, `${name}.txt`), text.join('\n'));
}

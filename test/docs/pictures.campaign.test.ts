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

const MS_MAX = 600_000;
/** The demonstration goes on while a view is described: what differs is described again before it counts. */
const VISITS_MAX = 3;
/** What the views say, for a reader who wants to know what has changed. */
const DESCRIPTIONS = 'build/pictures';

type Views = Readonly<Record<string, Picture['shows']>>;
/** A digest, or those of the parts of a view. */
type Digests = Picture['shows'] | string;
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
      for (let visits = 0; visits < VISITS_MAX && differing(views).length > 0; visits += 1)
        views = combine(views, await tools.visitViews(browser, NO_CAMERA, writeDescription));
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

const differing = (views: Views): readonly string[] =>
  Object.entries(pictures).flatMap(([file, { shows }]) => changedParts(shows, views[file] ?? {}));

/** The digests of two visits: of each, the earlier one if it is the recorded one. */
function combine(earlier: Views, later: Views): Views {
  const pick = (recorded: Digests | undefined, before: Digests | undefined, now: Digests): Digests => {
    if (typeof now === 'string') return before !== undefined && before === recorded ? before : now;
    const partOf = (all: Digests | undefined, name: string) => (typeof all === 'object' ? all[name] : undefined);
    return Object.fromEntries(
      Object.entries<Digests>(now).map(([name, part]) => [
        name,
        pick(partOf(recorded, name), partOf(before, name), part),
      ]),
    ) as Digests;
  };
  return Object.fromEntries(
    Object.entries(later).map(([file, now]) => [file, pick(pictures[file]?.shows, earlier[file], now)]),
  ) as Views;
}

/** The names of the digests that differ, such as `text` or `a vote: style`. */
function changedParts(before: Digests, now: Digests): readonly string[] {
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

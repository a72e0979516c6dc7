// Whether the pictures of docs/pictures still show the page: the views that they show are visited again, in a real
// Chromium, and described without what differs from one start to the next.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { builtPage } from '../fixtures/built-page.js';
import { built } from './built.js';
import { pictureTool, type Manifest, type Picture, type ViewDigests } from './picture-tools.js';
import { ROOT, textOf } from '../sources.js';

const MS_MAX = 900_000;
/** The demonstration goes on while a view is described: what differs is described again before it counts. */
const VISITS_MAX = 3;
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

/** The digests of each still, and of each moment of the animation as `demo.webp: a vote`. */
const listDigests = (views: Views): ReadonlyMap<string, ViewDigests> =>
  new Map(
    Object.entries(views).flatMap(([file, shows]): [string, ViewDigests][] =>
      isOfStill(shows)
        ? [[file, shows]]
        : Object.entries(shows).map(([moment, digests]) => [`${file}: ${moment}`, digests]),
    ),
  );

const isOfStill = (shows: Picture['shows']): shows is ViewDigests =>
  Object.values<unknown>(shows).every((part) => typeof part === 'string');

/** The parts of a view that differ from the recorded one: its structure, texts or styles. */
function changedParts(name: string, now: ViewDigests | undefined): readonly string[] {
  const before = recorded.get(name) ?? {};
  return Object.keys({ ...before, ...now }).filter((part) => before[part] !== now?.[part]);
}

const recorded = listDigests(Object.fromEntries(Object.entries(pictures).map(([file, { shows }]) => [file, shows])));

inChromium('a picture of the page', () => {
  const views = new Map<string, ViewDigests>();

  async function visit(): Promise<void> {
    const browser = await tools.launchChromium();
    try {
      const seen = listDigests(await tools.visitViews(browser, NO_CAMERA, writeDescription));
      // A view counts as a whole: one that was the recorded one in an earlier visit stays.
      for (const [name, digests] of seen) if (changedParts(name, views.get(name)).length > 0) views.set(name, digests);
    } finally {
      await browser.close();
    }
  }

  beforeAll(async () => {
    await built();
    await builtPage('dist/inspector');
    for (let visits = 1; visits <= VISITS_MAX; visits += 1) {
      try {
        await visit();
      } catch (error) {
        if (visits === VISITS_MAX) throw error;
      }
      if ([...recorded.keys()].every((name) => changedParts(name, views.get(name)).length === 0)) return;
    }
  }, MS_MAX);

  test('of every view is in the list', () => {
    expect([...views.keys()].sort()).toEqual([...recorded.keys()].sort());
  });

  test.each([...recorded.keys()])('%s shows the page of today', (name) => {
    const older = changedParts(name, views.get(name));
    if (older.length > 0)
      throw new Error(
        `docs/pictures/${name} is older than the page, or Chromium another one: ${older.join(', ')} changed. ` +
          `Run \`npm run pictures\`. ${DESCRIPTIONS} has the descriptions of the page of today.`,
      );
  });
});

function writeDescription(file: string, moment: string, description: Description): void {
  mkdirSync(join(ROOT, DESCRIPTIONS), { recursive: true });
  const name = [file, ...moment.split(' ').filter(Boolean)].join('-');
  const text = Object.entries(description).map(([part, lines]) => `${part}\n${lines.join('\n')}\n`);
  writeFileSync(join(ROOT, DESCRIPTIONS, `${name}.txt`), text.join('\n'));
}

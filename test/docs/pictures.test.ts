// The pictures of docs/pictures are those of their list, and the badges say what their sources say. `npm run pictures`
// writes both.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { statSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rulesOf } from './coverage.js';
import { pictureTool, type Manifest } from './picture-tools.js';
import { filesIn, importsOf, parse, ROOT, textOf } from '../sources.js';

const STILL_BYTES_MAX = 120_000;
const FILM_BYTES_MAX = 1_500_000;
/** About twenty seconds. */
const FILM_MS = { min: 15_000, max: 25_000 } as const;
const FOLDER = 'docs/pictures';
const { pictures } = JSON.parse(textOf(join(FOLDER, 'pictures.json'))) as Manifest;

describe('docs/pictures', () => {
  test('has exactly the files of its list: every scene in both sizes and both themes, and the animation', async () => {
    const { listStills } = await pictureTool<{ listStills: () => readonly { readonly file: string }[] }>('scenes.mjs');
    const expected = [...listStills().map(({ file }) => file), 'demo.webp'].sort();
    expect(Object.keys(pictures).sort()).toEqual(expected);
    expect(filesIn(FOLDER, /\.webp$/)).toEqual(expected.map((file) => `${FOLDER}/${file}`));
  });

  test('the animation has digests of each of its moments', async () => {
    const { MOMENTS } = await pictureTool<{ MOMENTS: readonly string[] }>('film.mjs');
    expect(Object.keys(pictures['demo.webp']?.shows ?? {})).toEqual(MOMENTS);
  });

  test('each file has the size in pixels and bytes that the list says', () => {
    for (const [file, { width, height, bytes }] of Object.entries(pictures)) {
      const path = join(ROOT, FOLDER, file);
      const size = statSync(path).size;
      expect({ file, bytes: size, ...webpSize(readFileSync(path)) }).toEqual({ file, bytes, width, height });
    }
  });

  test('a still is at most 120 kB, and the animation 1.5 MB with about twenty seconds', () => {
    const { 'demo.webp': film, ...stills } = pictures;
    for (const { bytes } of Object.values(stills)) expect(bytes).toBeLessThanOrEqual(STILL_BYTES_MAX);
    expect(film?.bytes).toBeLessThanOrEqual(FILM_BYTES_MAX);
    expect(film?.milliseconds).toBeGreaterThanOrEqual(FILM_MS.min);
    expect(film?.milliseconds).toBeLessThanOrEqual(FILM_MS.max);
    expect(webpDelays(readFileSync(join(ROOT, FOLDER, 'demo.webp')))).toBe(film?.milliseconds);
  });

  test('each picture has a text for readers who do not see it', () => {
    for (const { alt } of Object.values(pictures)) expect(alt).toMatch(/^[A-Z].{40,250}\.$/);
  });

  test('no picture is packed into the npm package', () => {
    expect(textOf('docs/.npmignore').split('\n')).toContain('/pictures');
  });

  test('sharp is imported only from tools/pictures/encode.mjs', () => {
    const programs = [...filesIn('.', /\.(?:mjs|tsx?)$/)];
    const importers = programs.filter(
      (path) => textOf(path).includes('sharp') && importsOf(parse(path)).includes('sharp'),
    );
    expect(importers).toEqual(['tools/pictures/encode.mjs']);
  });
});

describe('the badges', () => {
  let listBadges: () => Readonly<Record<string, readonly [label: string, value: string]>>;
  let renderBadge: (badge: readonly [string, string]) => string;

  beforeAll(async () => {
    ({ listBadges, renderBadge } = await pictureTool<{
      listBadges: typeof listBadges;
      renderBadge: typeof renderBadge;
    }>('badges.mjs'));
  });

  test('say the license and the Node version of package.json, and how many rules of the contract are tested', () => {
    const { license, engines } = JSON.parse(textOf('package.json')) as {
      readonly license: string;
      readonly engines: { readonly node: string };
    };
    const pages = filesIn('docs/contract', /\.md$/).filter((path) => !path.endsWith('README.md'));
    const rules = pages.flatMap((path) => rulesOf(textOf(path))).length;
    expect(listBadges()).toEqual({
      license: ['license', license],
      node: ['node', engines.node],
      rules: ['contract rules', `${rules} of ${rules} tested`],
    });
    expect(rules).toBeGreaterThan(200);
  });

  test('are the files of docs/pictures/badges', () => {
    const badges = Object.entries(listBadges());
    expect(filesIn(`${FOLDER}/badges`, /./)).toEqual(badges.map(([name]) => `${FOLDER}/badges/${name}.svg`).sort());
    // If this fails: `npm run pictures` writes them.
    for (const [name, badge] of badges) expect(textOf(`${FOLDER}/badges/${name}.svg`)).toBe(renderBadge(badge));
  });

  test('escape what markup would read', () => {
    expect(renderBadge(['a & b', '>=1 <2'])).toContain('<title>a &amp; b: &gt;=1 &lt;2</title>');
  });
});

interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** The chunks of a WebP file: a RIFF container. */
function* webpChunks(file: Buffer): Generator<{ readonly type: string; readonly data: Buffer }> {
  expect(`${file.toString('latin1', 0, 4)} ${file.toString('latin1', 8, 12)}`).toBe('RIFF WEBP');
  expect(file.readUInt32LE(4)).toBe(file.length - 8);
  for (let at = 12; at < file.length;) {
    const size = file.readUInt32LE(at + 4);
    yield { type: file.toString('latin1', at, at + 4), data: file.subarray(at + 8, at + 8 + size) };
    at += 8 + size + (size % 2);
  }
}

/** The size of a lossless picture, or of the canvas of an animation. */
function webpSize(file: Buffer): PixelSize {
  for (const { type, data } of webpChunks(file)) {
    if (type === 'VP8X') return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 };
    if (type !== 'VP8L') continue;
    const bits = data.readUInt32LE(1);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  throw new Error('the file has no size');
}

/** How long the frames of an animation are shown, in milliseconds. */
const webpDelays = (file: Buffer): number =>
  [...webpChunks(file)]
    .filter(({ type }) => type === 'ANMF')
    .reduce((sum, { data }) => sum + data.readUIntLE(12, 3), 0);

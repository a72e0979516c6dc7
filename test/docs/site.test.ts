// The documentation site without its build: the order of its pages, and the link check on pages that are written here.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

/** A module of the site, which is plain JavaScript. */
const site = async <T>(name: string): Promise<T> => (await import(pathToFileURL(join(ROOT, 'site', name)).href)) as T;

interface Part {
  readonly title: string;
  readonly paths: readonly string[];
  readonly group?: { readonly title: string; readonly paths: readonly string[] };
}

describe('the reading order', () => {
  let pages: readonly string[] = [];
  let placePages: (paths: readonly string[]) => readonly Part[];
  let parts: readonly Part[] = [];
  let opened: readonly string[] = [];

  beforeAll(async () => {
    const order = await site<{ placePages: typeof placePages; OPEN_PARTS: readonly string[] }>('order.mjs');
    ({ placePages, OPEN_PARTS: opened } = order);
    ({ PAGES: pages } = await site<{ PAGES: readonly string[] }>('files.mjs'));
    parts = placePages(pages);
  });

  const inPart = (title: string): readonly string[] =>
    parts.filter((part) => part.title === title).flatMap(({ paths, group }) => [...paths, ...(group?.paths ?? [])]);

  test('has a place for every page of the repository', () => {
    const placed = parts.flatMap(({ title }) => inPart(title));
    expect(placed.length).toBeGreaterThan(100);
    expect([...placed, 'README.md'].sort()).toEqual(pages);
  });

  test.each([
    ['Tutorials', /^docs\/tutorials\//],
    ['How-to guides', /^docs\/how-to\/[^/]+$/],
    [
      'Contributing',
      /^(?:AGENTS|CHANGELOG|CONTRIBUTING)|^docs\/(?:architecture|contributing)|\/(?:source|decisions)\//,
    ],
  ])('shows in %s all of its pages and no others', (title, own) => {
    expect([...inPart(title)].sort()).toEqual(pages.filter((path) => own.test(path)));
  });

  test('begins with the tutorial of a service developer, and ends with the auditor', () => {
    expect(inPart('Tutorials').at(0)).toBe('docs/tutorials/service-developer.md');
    expect(inPart('Tutorials').at(-1)).toBe('docs/tutorials/auditor.md');
  });

  test('has the decisions in one group, by number, in a part that is closed on the first visit', () => {
    const group = parts.find(({ title }) => title === 'Contributing')?.group;
    expect(group?.title).toBe('Decisions');
    expect(group?.paths).toEqual(pages.filter((path) => path.startsWith('docs/decisions/')));
    expect(opened).not.toContain('Contributing');
  });

  test.each(['docs/tutorials/new.md', 'docs/how-to/new.md', 'docs/new.md', 'NEW.md'])(
    'refuses %s without a place',
    (path) => {
      expect(() => placePages([...pages, path])).toThrow(`site/order.mjs: no part lists ${path}`);
    },
  );

  test('refuses a place without a page', () => {
    const left = pages.filter((path) => path !== 'docs/tutorials/auditor.md');
    expect(() => placePages(left)).toThrow('site/order.mjs: there is no page docs/tutorials/auditor.md');
  });
});

describe('the link check', () => {
  let deadLinks: (folder: string) => readonly string[];
  let folder = '';

  beforeAll(async () => {
    ({ deadLinks } = await site<{ deadLinks: typeof deadLinks }>('links.mjs'));
    folder = tempFolder('site');
    put(
      'index.html',
      '<h1 id="start">Start</h1><a class="link" href="#start">here</a><a href="guide/one.html">one</a>',
    );
    put('guide/one.html', '<h2 id="the-end">The end</h2>');
    put(
      'guide/two.html',
      '<a href="../">home</a><a href="../index.html#start">start</a><a href="one.html#the-end">end</a>',
    );
  });

  const put = (name: string, html: string): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), html);
  };

  test('accepts links to pages, anchors, folders with an index, and other sites', () => {
    put(
      'guide/three.html',
      '<a href="https://example.com/none#x">elsewhere</a><a href="mailto:a@example.com">mail</a>',
    );
    expect(deadLinks(folder)).toEqual([]);
  });

  test.each([
    ['a page that is missing', '<a href="none.html">none</a>', 'none.html'],
    ['an anchor that is missing', '<a href="one.html#begin">begin</a>', 'one.html#begin'],
    ['an anchor of the page itself', '<a href="#begin">begin</a>', '#begin'],
    ['a folder without an index', '<a href="../guide/">guide</a>', '../guide/'],
    ['an image that is missing', '<img alt="" src="../media/none.svg">', '../media/none.svg'],
    ['a page outside the site', '<a href="../../README.md">readme</a>', '../../README.md'],
  ])('finds a link to %s', (_what, html, link) => {
    put('guide/three.html', html);
    expect(deadLinks(folder)).toEqual([`guide/three.html: ${link}`]);
  });
});

// The link check of the documentation site, on pages that are written here.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

describe('the link check', () => {
  let deadLinks: (folder: string) => readonly string[];
  let folder = '';

  beforeAll(async () => {
    const url = pathToFileURL(join(ROOT, 'site/links.mjs')).href;
    ({ deadLinks } = (await import(url)) as { deadLinks: typeof deadLinks });
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

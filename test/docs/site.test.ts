// The documentation site without its build: the places of its pages, and the link check on pages that are written here.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT, textOf } from '../sources.js';

/** A module of the site, which is plain JavaScript. */
const site = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(join(ROOT, 'tools/site', name)).href)) as T;

interface Part {
  readonly paths: readonly string[];
  readonly group?: { readonly paths: readonly string[] };
}

describe('the reading order', () => {
  let pages: readonly string[] = [];
  let placePages: (paths: readonly string[]) => readonly Part[];

  beforeAll(async () => {
    ({ placePages } = await site<{ placePages: typeof placePages }>('order.mjs'));
    ({ PAGES: pages } = await site<{ PAGES: readonly string[] }>('files.mjs'));
  });

  test('has a place for every page of the repository', () => {
    const placed = placePages(pages).flatMap(({ paths, group }) => [...paths, ...(group?.paths ?? [])]);
    expect(placed.length).toBeGreaterThan(100);
    expect([...placed].sort()).toEqual(pages);
  });

  test.each(['docs/tutorials/new.md', 'docs/how-to/new.md', 'docs/new.md', 'NEW.md'])(
    'refuses %s without a place',
    (path) => {
      expect(() => placePages([...pages, path])).toThrow(`tools/site/order.mjs: no part lists ${path}`);
    },
  );

  test('refuses a place without a page', () => {
    const left = pages.filter((path) => path !== 'docs/tutorials/auditor.md');
    expect(() => placePages(left)).toThrow('tools/site/order.mjs: there is no page docs/tutorials/auditor.md');
  });
});

describe('the links of a page', () => {
  let stagedText: (path: string, source: string, copies: Map<string, string>) => string;

  beforeAll(async () => {
    ({ stagedText } = await site<{ stagedText: typeof stagedText }>('pages.mjs'));
  });

  const staged = (source: string): { text: string; copies: Map<string, string> } => {
    const copies = new Map<string, string>();
    return { text: stagedText('docs/page.md', source, copies), copies };
  };

  test.each([
    ['a page', '[one](trust.md#an-agent)', '[one](trust.md#an-agent)'],
    ['another site', '[one](https://example.com/x)', '[one](https://example.com/x)'],
    ['a folder: to its first page', '[one](tutorials/)', '[one](./tutorials/service-developer.md)'],
    ['a test: to nothing', '[one](../test/docs/site.test.ts)', 'one'],
    ['a source file: to nothing', '[one](../src/index.ts)', 'one'],
    ['a folder without pages: to nothing', '[one](../src)', 'one'],
    ['a file in code: unchanged', '```\n[one](none.md)\n```', '```text\n[one](none.md)\n```'],
  ])('lead to %s', (_what, source, text) => {
    expect(staged(source)).toEqual({ text, copies: new Map() });
  });

  test.each([
    ['an example', '[one](examples/agent.mjs)', '[one](./examples/agent.mjs.txt)', 'docs/examples/agent.mjs'],
    [
      'a unit file',
      '[u]: ../packaging/turnpike.service',
      '[u]: ../packaging/turnpike.service.txt',
      'packaging/turnpike.service',
    ],
    ['a text file', '[one](../llms.txt)', '[one](../llms.txt)', 'llms.txt'],
    ['a diagram', '![one](explanation/proofs.svg)', '![one](./explanation/proofs.svg)', 'docs/explanation/proofs.svg'],
    [
      'an image of raw HTML',
      '<img\n src="explanation/proofs.svg">',
      '<img src="explanation/proofs.svg">',
      'docs/explanation/proofs.svg',
    ],
    [
      'a set of images',
      '<source srcset="explanation/proofs.svg 1x, explanation/ledger.svg 2x">',
      null,
      'docs/explanation/proofs.svg docs/explanation/ledger.svg',
    ],
  ])('copy %s', (_what, source, text, file) => {
    const result = staged(source);
    expect(result.text).toBe(text ?? source);
    expect([...result.copies.values()].join(' ')).toBe(file);
  });

  test.each([
    ['[one](none.md)', 'none.md'],
    ['![one](pictures/none.png)', 'pictures/none.png'],
    ['<img alt="one" src="pictures/none.webp">', 'pictures/none.webp'],
    ['<source media="(x)" srcset="pictures/none.webp 2x">', 'pictures/none.webp'],
  ])('stop the build if nothing is there: %s', (source, file) => {
    expect(() => staged(source)).toThrow(`docs/page.md: the link to docs/${file} is dead`);
  });

  test('stop the build if a reference has nothing to lead to', () => {
    expect(() => staged('[code]: ../src/index.ts')).toThrow('docs/page.md: ../src/index.ts is not on the site');
  });
});

describe('a picture for each theme', () => {
  let stagedText: (path: string, source: string, copies: Map<string, string>) => string;

  beforeAll(async () => {
    ({ stagedText } = await site<{ stagedText: typeof stagedText }>('pages.mjs'));
  });

  const dark = 'docs/explanation/proofs.svg';
  const light = 'docs/explanation/ledger.svg';

  test('is two pictures, of which the theme of the site shows one', () => {
    const copies = new Map<string, string>();
    const source = `<picture>
      <source media="(prefers-color-scheme: dark)" srcset="${dark}">
      <img
        src="${light}"
        alt="One.">
    </picture>`;
    expect(stagedText('README.md', source, copies)).toBe(
      `<picture class="site-light"><img loading="lazy" src="${light}" alt="One."></picture>` +
        `<picture class="site-dark"><source srcset="${dark}"><img loading="lazy" src="${light}" alt="One."></picture>`,
    );
    expect([...copies.keys()]).toEqual([dark, light]);
  });

  test('leaves other conditions', () => {
    const source =
      `<picture><source media="(max-width: 600px) and (prefers-color-scheme: dark)" srcset="${dark}">` +
      `<source media="(max-width: 600px)" srcset="${light}"><img src="${light}"></picture>`;
    expect(stagedText('README.md', source, new Map())).toBe(
      `<picture class="site-light"><source media="(max-width: 600px)" srcset="${light}">` +
        `<img loading="lazy" src="${light}"></picture>` +
        `<picture class="site-dark"><source media="(max-width: 600px)" srcset="${dark}">` +
        `<img loading="lazy" src="${light}"></picture>`,
    );
  });

  test('leaves a picture without a theme as it is', () => {
    const source = `<picture><img src="${light}"></picture>\n\n\`(prefers-color-scheme: dark)\``;
    expect(stagedText('README.md', source, new Map())).toBe(source);
  });
});

describe('the start page', () => {
  let startPage: (readme: string) => string;

  beforeAll(async () => {
    ({ startPage } = await site<{ startPage: typeof startPage }>('start.mjs'));
  });

  const PARTS: readonly (readonly [what: string, text: string])[] = [
    ['a title', '# Name\n\n'],
    ['a bold sentence with its reason', '**It does one thing.**\nFor this reason.\n\n'],
    ['a drawing', '![States](states.svg)\n\n'],
    ['a picture', '<picture>\n  <img src="light.webp">\n</picture>\n\n'],
    ['code in its first section, and what it prints', '## Code\n\n```js\none();\n```\n\nThis:\n\n```text\n1\n```\n\n'],
    [
      'a table of starting points',
      '## Begin\n\n<!-- table: starts -->\n| you have | begin with | then |\n|---|---|---|\n' +
        '| a file | `npx name --check` | [read](docs/a.md), or [ask](docs/b.md) |\n' +
        '| iron | `npx name` | [Melt](docs/c.md) |\n\n',
    ],
    ['what is guaranteed', '## What is guaranteed\n\n- All. [More](docs/d.md).\n\n'],
  ];
  const LATER = '## Later\n\nNot on the start page.\n';
  const readme = (without = ''): string => PARTS.map(([what, text]) => (what === without ? '' : text)).join('') + LATER;

  test('has the first screen, the code with its output, a card for each starting point, and what is guaranteed', () => {
    const card = (who: string, command: string, then: string): string =>
      `<div>\n\n### ${who}\n\n\`\`\`bash\n${command}\n\`\`\`\n\n${then}\n\n</div>\n\n`;
    expect(startPage(readme())).toBe(
      '# Name\n\n<p class="start-claim">It does one thing.</p>\n\nFor this reason.\n\n![States](states.svg)\n\n' +
        '<picture>\n  <img src="light.webp">\n</picture>\n\n' +
        '## Code\n\n```js\none();\n```\n\nThis:\n\n```text\n1\n```\n\n## Begin\n\n<div class="start-cards">\n\n' +
        card('A file', 'npx name --check', '[Read](docs/a.md), or [ask](docs/b.md).') +
        card('Iron', 'npx name', '[Melt](docs/c.md).') +
        '</div>\n\n## What is guaranteed\n\n- All. [More](docs/d.md).\n\n',
    );
  });

  test.each(PARTS.map(([what]) => what))('stops the build if the README has not %s', (what) => {
    expect(() => startPage(readme(what))).toThrow(`README.md: the start page of the site needs ${what}`);
  });

  test.each(['| a file | npx name | [read](a.md) |', '| a file | `npx name` | read |', '| a file | `npx name` |'])(
    'stops the build at the starting point %s',
    (row) => {
      const changed = readme().replace(/^\| iron .*$/m, row);
      expect(() => startPage(changed)).toThrow(`needs who, one command and a link in: ${row}`);
    },
  );

  test('has four starting points of the README, of which each has a tutorial', () => {
    const cards = startPage(textOf('README.md')).split(/^### /m).slice(1);
    expect(cards.map((card) => /\]\(docs\/tutorials\/[a-z-]+\.md\)/.test(card))).toEqual([true, true, true, true]);
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
    ['a picture that is missing', '<img alt="" width="9" srcset="one.html 1x, none.webp 2x">', 'none.webp'],
    ['a source of a picture that is missing', '<source media="(x)" srcset="../none-dark.webp">', '../none-dark.webp'],
    ['a page outside the site', '<a href="../../README.md">readme</a>', '../../README.md'],
  ])('finds a link to %s', (_what, html, link) => {
    put('guide/three.html', html);
    expect(deadLinks(folder)).toEqual([`guide/three.html: ${link}`]);
  });
});

// The pages for people and tools that change the code: everything that they name exists, and every page is in the
// index.

import { expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { filesIn, ROOT, textOf } from '../sources.js';

const PAGES = ['docs/contributing.md', 'AGENTS.md', 'CONTRIBUTING.md'];
/** Of use without a checkout too. */
const PACKED_PAGES = ['README.md', 'SECURITY.md'];
const TOP_PAGES = [...PACKED_PAGES, 'CHANGELOG.md', 'CONTRIBUTING.md', 'AGENTS.md'];
test('every path that the pages name exists', () => {
  const named = PAGES.flatMap((page) =>
    [...textOf(page).matchAll(/`((?:src|machines|test|docs|policies|\.ci)(?:\/[\w./-]+)?|[A-Z]+\.md)`/g)].map(
      ([, path = '']) => ({ page, path }),
    ),
  );
  expect(named.length).toBeGreaterThan(80);
  expect(named.filter(({ path }) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every file that the pages name without its folder exists', () => {
  const names = new Set(filesIn('.', /\.(?:tsx?|mjs)$/).map((path) => path.split('/').at(-1)));
  const named = [...PAGES, 'docs/architecture.md', 'docs/explanation/extending.md'].flatMap((page) =>
    [...textOf(page).matchAll(/`(?:[\w.-]+\/)*([\w-][\w.-]*\.(?:tsx?|mjs))`/g)].map(([, name = '']) => ({
      page,
      name,
    })),
  );
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ name }) => !names.has(name))).toEqual([]);
});

test('the map of folders has each folder of sources, and no other one', () => {
  const [, map = ''] = /These are the folders:\n\n```\n([^]*?)```/.exec(textOf('docs/contributing.md')) ?? [];
  const parents: string[] = [];
  const named = [...map.matchAll(/^( *)([\w./-]+)\/(?: |$)/gm)].map(([, indent = '', name = '']) => {
    const depth = indent.length / 2;
    parents.splice(depth, Infinity, name);
    return parents.join('/');
  });
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const folders = filesIn('src', /\.tsx?$/).map((path) => path.split('/').slice(0, -1).slice(0, 3).join('/'));
  expect([...new Set(folders)].filter((path) => !named.includes(path)).sort()).toEqual([]);
});

test('every npm script and variable that the pages name exists', () => {
  const { scripts } = JSON.parse(textOf('package.json')) as { readonly scripts: Record<string, string> };
  const named = PAGES.flatMap((page) => [...textOf(page).matchAll(/`npm run ([\w:-]+)/g)].map(([, name = '']) => name));
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  const variables = [...textOf('docs/contributing.md').matchAll(/^\| `(TURNPIKE_WRITE_\w+)` \| `([^`]+)`/gm)];
  expect(variables.length).toBeGreaterThan(0);
  expect(variables.filter(([, name = '', file = '']) => !textOf(file).includes(name))).toEqual([]);
});

test('docs/README.md leads to every page, except those that another listed page lists', () => {
  const listed = textOf('docs/README.md');
  const lists = /^docs\/(?:README\.md|decisions\/|how-to\/source\/|examples\/|contract\/(?!README))/;
  const pages = filesIn('docs', /\.md$/).filter((path) => !lists.test(path));
  expect(pages.length).toBeGreaterThan(40);
  expect(pages.filter((path) => !listed.includes(`](${path.replace('docs/', '')}`))).toEqual([]);
});

test('llms.txt has one line for each page, and the package ships those that are not about changing the code', () => {
  const listed = [...textOf('llms.txt').matchAll(/^- \[(\S+)\]\((\S+)\): \S.*$/gm)].map(([, , path = '']) => path);
  const pages = filesIn('docs', /\.md$/).filter((path) => !path.startsWith('docs/examples/'));
  expect([...listed].sort()).toEqual([...TOP_PAGES, ...pages].sort());
  const { files } = JSON.parse(textOf('package.json')) as { readonly files: readonly string[] };
  expect(files).toEqual(expect.arrayContaining([...PACKED_PAGES, 'docs', 'llms.txt']));
  expect(files).not.toEqual(expect.arrayContaining(['CONTRIBUTING.md']));
});

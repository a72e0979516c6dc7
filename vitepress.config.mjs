// The site that `npm run docs` builds. It is copied to where VitePress looks for it, beside the staged pages.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SITE = join(dirname(fileURLToPath(import.meta.url)), '..');

/** The groups of the sidebar, each with the folder whose pages it lists. */
const GROUPS = [
  ['Tutorials', 'docs/tutorials'],
  ['How-to guides', 'docs/how-to'],
  ['Guides', 'docs'],
  ['Explanation', 'docs/explanation'],
  ['Reference', 'docs/reference'],
  ['TypeScript API', 'api'],
  ['Contract', 'docs/contract'],
  ['Decisions', 'docs/decisions'],
];

const titleOf = (path) => /^# (.+)$/m.exec(readFileSync(join(SITE, path), 'utf8'))?.[1] ?? path;
const plain = (title) => title.replace(/[`\\]|\{#[^}]*\}/g, '').trim();

const pagesIn = (folder) =>
  !existsSync(join(SITE, folder))
    ? []
    : readdirSync(join(SITE, folder), { recursive: folder === 'api' })
        .filter((name) => name.endsWith('.md'))
        .sort()
        .map((name) => ({
          text: plain(titleOf(`${folder}/${name}`)),
          link: `/${folder}/${name.replace(/\.md$/, '.html')}`,
        }));

/** The anchor of a heading as repository hosts make it, so that a link holds there and here. */
const slugify = (title) =>
  title
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

const groups = GROUPS.map(([text, folder]) => ({
  text,
  items: pagesIn(folder),
  collapsed: ['Contract', 'Decisions'].includes(text),
})).filter(({ items }) => items.length > 0);

export default {
  title: 'Turnpike',
  description: 'Lets untrusted LLM agents act through explicit state machines, and proves afterwards what they did.',
  // Where the site is not at the root of its host: `/name/`.
  base: process.env.TURNPIKE_DOCS_BASE ?? '/',
  // Angle brackets in prose are text.
  markdown: { html: false, anchor: { slugify } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/index.html' },
      { text: 'Changes', link: '/CHANGELOG.html' },
      { text: 'Security', link: '/SECURITY.html' },
    ],
    sidebar: [{ text: 'Turnpike', link: '/index.html' }, ...groups],
  },
};

// The pages of the site: the Markdown of the repository, staged with titles and with links that hold in the site.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const STAGE = 'build/site';

/** The page that opens the site. */
export const START = 'README.md';

/** The parts of the sidebar in their order. A page is in the part that lists it, else in the part of its folder. */
const PARTS = [
  { title: 'Tutorials', folder: 'docs/tutorials', pages: [] },
  {
    title: 'How-to guides',
    folder: 'docs/how-to',
    pages: [
      'services',
      'agents',
      'mcp',
      'upstreams',
      'session-commands',
      'policy-simulation',
      'inspectors',
      'operating',
    ],
  },
  {
    title: 'Reference',
    folder: 'docs/reference',
    pages: ['glossary', 'errors', 'http', 'sessions', 'evidence', 'guarantees', 'performance'],
  },
  {
    title: 'Explanation',
    folder: 'docs/explanation',
    pages: [
      'explanation/run-tree',
      'explanation/life-of-a-step',
      'explanation/ledger-and-proofs',
      'explanation/trust',
      'architecture',
      'trust',
    ],
  },
  { title: 'Contract', folder: 'docs/contract', pages: [] },
  { title: 'Decisions', folder: 'docs/decisions', pages: [] },
];
/** For pages that no part lists and that stand in no folder of a part, such as those at the root. */
const PROJECT = 'Project';
/** The part that also has the TypeScript API. */
export const API_PART = 'Reference';
/** The parts of the sidebar that are open on the first visit. */
export const OPEN_PARTS = ['Tutorials', 'How-to guides', 'Explanation'];

const isFile = (path) => existsSync(path) && statSync(path).isFile();

/** The files below a folder whose names end with `ending`, as sorted paths from the folder. */
export const filesBelow = (folder, ending) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(ending) && isFile(join(folder, name)))
    .sort();

const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...filesBelow(join(ROOT, 'docs'), '.md')
    .map((name) => `docs/${name}`)
    .filter((path) => !path.startsWith('docs/examples/')),
].sort();

function partOf(path) {
  const listing = PARTS.find(({ pages }) => pages.some((name) => path === `docs/${name}.md`));
  return (listing ?? PARTS.find(({ folder }) => path.startsWith(`${folder}/`)))?.title ?? PROJECT;
}

/** The place of a page in its part: README first, then the other pages of the folder, then the listed ones. */
function rankOf(path) {
  const listed = PARTS.flatMap(({ pages }) => pages).findIndex((name) => path === `docs/${name}.md`);
  if (listed !== -1) return 2 + listed;
  return posix.basename(path) === 'README.md' ? 0 : 1;
}

/**
 * The parts with their pages, by paths from the root of the repository. Parts without pages are left out.
 *
 * @returns {{ title: string, paths: string[] }[]}
 */
export const parts = () =>
  [...PARTS.map(({ title }) => title), PROJECT]
    .map((title) => ({
      title,
      paths: PAGES.filter((path) => path !== START && partOf(path) === title).sort((a, b) => rankOf(a) - rankOf(b)),
    }))
    .filter(({ paths }) => paths.length > 0);

const textOf = (path) => readFileSync(join(ROOT, path), 'utf8');

function put(path, content) {
  const file = join(ROOT, STAGE, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** Code blocks, which are not changed. */
const CODE_BLOCK = /(^```[^]*?^```$)/m;
const INLINE_LINK = /(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)/g;
/** `[name]: target` at the end of a page, for links written `[label][name]`. */
const REFERENCE_LINK = /^\[([^\]]+)\]: (?!https?:|mailto:|#)([^#\s]+)(#\S*)?$/gm;

/**
 * Stages every page and every file that a page links to.
 *
 * @returns the staged file of each page, by its path in the repository
 * @throws when a link leads to nothing in the repository
 */
export function stagePages() {
  rmSync(join(ROOT, STAGE), { recursive: true, force: true });
  return new Map(PAGES.map((path) => [path, put(path, stagedText(path))]));
}

function stagedText(path) {
  const segments = textOf(path).split(CODE_BLOCK);
  const text = segments
    .map((segment, index) => (index % 2 === 1 ? segment.replace(/^```\n/, '```text\n') : withLinks(path, segment)))
    .join('');
  if (path === START) return text;
  const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
  return `---\ntitle: ${JSON.stringify(plain(title))}\npath: ${JSON.stringify(path)}\n---\n${text}`;
}

const plain = (title) => title.replace(/[`\\]/g, '').trim();

const withLinks = (path, text) =>
  text
    .replace(/^<!--[^]*?-->\n/gm, '')
    .replace(INLINE_LINK, (_all, image, label, to, anchor = '') => {
      const target = targetOf(path, to, anchor);
      return target === null ? label : `${image}[${label}](${target})`;
    })
    .replace(REFERENCE_LINK, (_all, name, to, anchor = '') => `[${name}]: ${targetOf(path, to, anchor)}`);

/** Where a link leads from the staged page; null for a folder, which has no page. */
function targetOf(from, to, anchor) {
  const target = posix.join(posix.dirname(from), to).replace(/\/$/, '');
  if (PAGES.includes(target)) return `${to}${anchor}`;
  if (!existsSync(join(ROOT, target))) throw new Error(`${from}: the link to ${target} is dead`);
  if (!isFile(join(ROOT, target))) return null;
  // A browser shows a text file; what it does with the ending of a source file depends on the server.
  const staged = /\.(?:svg|png)$/.test(target) ? target : `${target}.txt`;
  mkdirSync(dirname(join(ROOT, STAGE, staged)), { recursive: true });
  cpSync(join(ROOT, target), join(ROOT, STAGE, staged));
  return posix.relative(posix.dirname(from), staged).replace(/^(?!\.)/, './');
}

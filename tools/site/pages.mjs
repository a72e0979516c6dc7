// The pages of the site: the Markdown of the repository, staged with titles and with links that hold in the site.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { isFile, PAGES, ROOT } from './files.mjs';
import { readingOrder, TITLES } from './order.mjs';
import { startPage } from './start.mjs';

const STAGE = join(ROOT, 'build/site');

/** Code blocks, which are not changed. */
const CODE_BLOCK = /(^```[^]*?^```$)/m;
const INLINE_LINK = /(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)/g;
/** `[name]: target` at the end of a page, for links written `[label][name]`. */
const REFERENCE_LINK = /^\[([^\]]+)\]: (?!https?:|mailto:|#)([^#\s]+)(#\S*)?$/gm;
/** The images of raw HTML; `srcset` may have several with their sizes. */
const IMAGE_TAG = /<(?:img|source)\s[^>]*>/g;
const IMAGE_SOURCE = /\s(?:src|srcset)="([^"]*)"/g;
const DARK = '(prefers-color-scheme: dark)';
const THEMED_PICTURE = /<picture>(?:(?!<\/picture>)[^])*\(prefers-color-scheme: dark\)[^]*?<\/picture>/g;

const PICTURE = /\.(?:svg|png|webp)$/;
/** Other files that a page may link to, to read or to download. A link to any other file, such as a test, is text. */
const DOWNLOADS = /^(?:docs|packaging|policies)\/|^(?:Dockerfile|LICENSE|llms\.txt)$/;

const put = (path, content) => {
  const file = join(STAGE, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
};

/**
 * Stages every page and every file that a page links to.
 *
 * @returns {{ start: string, pages: string[] }} the staged files: the page that opens the site, and the others
 * @throws when a link leads to nothing in the repository
 */
export function stagePages() {
  rmSync(STAGE, { recursive: true, force: true });
  const copies = new Map();
  const pages = PAGES.map((path) => put(path, stagedPage(path, textOf(path), copies)));
  const start = put('index.md', stagedText('README.md', startPage(textOf('README.md')), copies));
  for (const [staged, source] of copies) cpSync(join(ROOT, source), join(STAGE, staged));
  return { start, pages };
}

const textOf = (path) => readFileSync(join(ROOT, path), 'utf8');

/** A page with the title and the path that the theme shows. */
function stagedPage(path, source, copies) {
  const text = stagedText(path, source, copies);
  const title = TITLES.get(path) ?? /^# (.+)$/m.exec(text)?.[1] ?? path;
  return `---\ntitle: ${JSON.stringify(plain(title))}\npath: ${JSON.stringify(path)}\n---\n${text}`;
}

const plain = (title) => title.replace(/[`\\]/g, '').trim();

/**
 * @param path - of a page in the repository
 * @param source - its text
 * @param copies - receives the files that the page links to: the path in the site, and that in the repository
 * @returns the text for typedoc
 */
export const stagedText = (path, source, copies) =>
  source
    .split(CODE_BLOCK)
    .map((segment, index) =>
      index % 2 === 1 ? segment.replace(/^```\n/, '```text\n') : withLinks(path, segment, copies),
    )
    .join('');

function withLinks(path, text, copies) {
  const targetOf = (to, anchor = '') => findTarget(path, to, anchor, copies);
  return text
    .replace(/^<!--[^]*?-->\n/gm, '')
    .replace(INLINE_LINK, (_all, image, label, to, anchor) => {
      const target = targetOf(to, anchor);
      return target === null ? label : `${image}[${label}](${target})`;
    })
    .replace(REFERENCE_LINK, (_all, name, to, anchor) => {
      const target = targetOf(to, anchor);
      if (target === null) throw new Error(`${path}: ${to} is not on the site: write the link [${name}] inline`);
      return `[${name}]: ${target}`;
    })
    .replace(IMAGE_TAG, (tag) => {
      for (const image of imagesOf(tag)) targetOf(image);
      // Typedoc finds the files of a tag only if it stands on one line.
      return tag.replace(/\s+/g, ' ');
    })
    .replace(THEMED_PICTURE, (picture) => forTheme('light', picture) + forTheme('dark', picture));
}

/** The picture of one theme of the site; the media query of a source follows the system, and not the site. */
const forTheme = (theme, picture) =>
  picture
    .replace(/<source [^>]*>\s*/g, (source) => (source.includes(DARK) === (theme === 'dark') ? source : ''))
    .replace(/ media="([^"]*)"/g, (_all, query) => {
      const rest = query.split(' and ').filter((condition) => condition !== DARK);
      return rest.length === 0 ? '' : ` media="${rest.join(' and ')}"`;
    })
    .replace('<picture>', `<picture class="site-${theme}">`)
    .replace('<img ', '<img loading="lazy" ')
    .replace(/\s*\n\s*/g, '');

/** The files that an image tag of raw HTML names. */
const imagesOf = (tag) =>
  [...tag.matchAll(IMAGE_SOURCE)]
    .flatMap(([, sources]) => sources.split(','))
    .map((source) => source.trim().split(/\s/)[0])
    .filter((source) => !/^(?:https?|data):/.test(source));

/**
 * Where a link leads: to a page, to the first page of a folder, or to a copy of a file; null if none is on the site.
 */
function findTarget(from, to, anchor, copies) {
  const target = posix.join(posix.dirname(from), to).replace(/\/$/, '');
  if (PAGES.includes(target)) return `${to}${anchor}`;
  if (!existsSync(join(ROOT, target))) throw new Error(`${from}: the link to ${target} is dead`);
  const relative = (path) => posix.relative(posix.dirname(from), path).replace(/^(?!\.)/, './');
  if (!isFile(join(ROOT, target))) {
    const first = readingOrder().find((path) => path.startsWith(`${target}/`));
    return first === undefined ? null : relative(first);
  }
  if (!PICTURE.test(target) && !DOWNLOADS.test(target)) return null;
  // A browser shows a text file; what it does with the ending of a source file depends on the server.
  const staged = PICTURE.test(target) ? target : target.replace(/(?:\.txt)?$/, '.txt');
  copies.set(staged, target);
  return relative(staged);
}

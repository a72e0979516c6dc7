// The pages of the site: the Markdown of the repository, staged with titles and with links that hold in the site.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { isFile, PAGES, ROOT } from './files.mjs';
import { START, TITLES } from './order.mjs';

const STAGE = 'build/site';

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
  const title = TITLES.get(path) ?? /^# (.+)$/m.exec(text)?.[1] ?? path;
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

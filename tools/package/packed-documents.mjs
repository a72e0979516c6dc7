// The Markdown of the package. In a checkout, documents link to files that the package does not contain. In the
// package, a link to such a page leads to the table of what only a checkout has (`INSTEAD`), a link to a test or
// another file of the source is its text alone, and pictures, and lines of llms.txt, that are about nothing of the
// package are left out.
//
// npm runs `node tools/package/packed-documents.mjs rewrite` before it packs or publishes, and `restore` afterwards.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Copies of what is rewritten, until it is restored. */
const ORIGINALS = join(ROOT, 'build/package-originals');

/** What a link to one of these leads to instead: what a checkout has, and which page of the package to read. */
const UNPACKED_PAGE = /^docs\/decisions\/|^docs\/examples\/|\.md$/;
const INSTEAD = { page: 'docs/README.md', anchor: 'only-in-a-checkout' };

const DOCUMENT = /(?:\.md|^llms\.txt)$/;
const LINK = /\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^()\s]+)\)/g;
const IMAGE = /!\[[^[\]]*\]\(([^()\s]+)\)/g;
const HTML_PICTURE = /<picture\b[^]*?<\/picture>|<img\b(?:[^>"]|"[^"]*")*>/g;
const HTML_LINK = /<a\b[^>]*?\shref="([^"]*)"[^>]*>([^]*?)<\/a>/g;
const HTML_TAG = /<[a-z](?:[^<>"]|"[^"]*")*>/g;
const LISTED = /^- \[[^\]]*\]\(([^()\s]+)\): .*\n/gm;
const FENCED = /^(```|~~~)[^]*?^\1/gm;
const CODE = /`[^`\n]+`/g;
const HEADING = /^#{1,6} (.+)$/gm;
/** A picture that was taken out, until the paragraphs that had nothing else are gone too. */
const GONE = '\0';
const EMPTIED = /^(?=[^]*\0)(?:[\s\0]|<\/?(?:p|div|center)\b[^>]*>)*$/;

/** The paths that npm would pack. */
export function packedPaths() {
  const args = ['pack', '--dry-run', '--ignore-scripts', '--json'];
  const [packed] = JSON.parse(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 }));
  return packed.files.map(({ path }) => path);
}

export const isDocument = (path) => DOCUMENT.test(path);

/** The text of a document as the package has it. */
export function rewritten(path, text, packed) {
  const isDead = (link) => targetOf(path, link) !== null && !isPacked(targetOf(path, link).file, packed);
  const linked = (whole, words, link, markup) => {
    if (words.includes(GONE) && words.replaceAll(GONE, '').trim() === '') return GONE;
    if (!isDead(link)) return whole;
    const instead = insteadOf(path, link);
    return instead === null ? words : markup(instead);
  };
  const lines = path === 'llms.txt' ? text.replaceAll(LISTED, (line, link) => (isDead(link) ? '' : line)) : text;
  return outsideFences(lines, (part) =>
    withoutEmptied(
      part
        .replaceAll(HTML_PICTURE, (markup) => (htmlLinks(markup).some(isDead) ? GONE : markup))
        .replaceAll(IMAGE, (markup, link) => (isDead(link) ? GONE : markup))
        .replaceAll(LINK, (whole, words, link) => linked(whole, words, link, (to) => `[${words}](${to})`))
        .replaceAll(HTML_LINK, (whole, link, words) =>
          linked(whole, words, link, (to) => `<a href="${to}">${words}</a>`),
        ),
    ),
  );
}

function outsideFences(text, change) {
  let end = 0;
  const parts = [...text.matchAll(FENCED)].flatMap((fence) => {
    const before = text.slice(end, fence.index);
    end = fence.index + fence[0].length;
    return [change(before), fence[0]];
  });
  return [...parts, change(text.slice(end))].join('');
}

const withoutEmptied = (text) =>
  text
    .split(/(?<=\n\n)/)
    .filter((paragraph) => !EMPTIED.test(paragraph))
    .join('')
    .replaceAll(GONE, '');

/** @returns the link that has the place of this one; null if it is to be its text alone */
function insteadOf(path, link) {
  const isPage = UNPACKED_PAGE.test(targetOf(path, link).file);
  return isPage && path !== INSTEAD.page
    ? `${posix.relative(posix.dirname(path), INSTEAD.page)}#${INSTEAD.anchor}`
    : null;
}

/**
 * @param documents the texts by path
 * @param packed all paths of the package
 * @returns each link that leads to no file, or to no heading, of the package, as `path: link`
 */
export function deadLinks(documents, packed) {
  const anchors = new Map([...documents].map(([path, text]) => [path, anchorsOf(text)]));
  return [...documents].flatMap(([path, text]) =>
    [...new Set(linksOf(text.replaceAll(FENCED, '')))]
      .filter((link) => {
        const target = targetOf(path, link);
        if (target === null) return false;
        if (!isPacked(target.file, packed)) return true;
        return target.anchor !== '' && anchors.has(target.file) && !anchors.get(target.file).has(target.anchor);
      })
      .map((link) => `${path}: ${link}`),
  );
}

/** Also those of pictures inside of links. */
const linksOf = (text) => [
  ...[...text.matchAll(LINK)].map(([, , link]) => link),
  ...[...text.matchAll(IMAGE)].map(([, link]) => link),
  ...htmlLinks(text.replaceAll(CODE, '')),
];

const htmlLinks = (text) =>
  (text.match(HTML_TAG) ?? []).flatMap((tag) =>
    [...tag.matchAll(/\s(href|src|srcset)="([^"]*)"/g)].flatMap(([, name, value]) =>
      name === 'srcset' ? value.split(',').map((candidate) => candidate.trim().split(/\s/)[0]) : [value],
    ),
  );

/** @returns null for an address elsewhere */
function targetOf(path, link) {
  if (/^[a-z]+:/.test(link)) return null;
  const [to, anchor = ''] = link.split('#');
  return { file: to === '' ? path : posix.join(posix.dirname(path), to), anchor };
}

/** A folder is in the package with any file of it. */
const isPacked = (file, packed) =>
  packed.includes(file) || packed.some((path) => path.startsWith(`${file.replace(/\/$/, '')}/`));

/** The anchors that viewers of Markdown give its headings. */
function anchorsOf(text) {
  const found = new Set([...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id]) => id));
  const times = new Map();
  for (const [, heading] of text.replaceAll(FENCED, '').matchAll(HEADING)) {
    const words = heading.replaceAll(LINK, '$1').toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-');
    const before = times.get(slug) ?? 0;
    times.set(slug, before + 1);
    found.add(before === 0 ? slug : `${slug}-${before}`);
  }
  return found;
}

/** Rewrites the documents of the package in place, and keeps their originals for `restoreDocuments`. */
export function rewriteDocuments() {
  restoreDocuments();
  const packed = packedPaths();
  const changed = packed.filter(isDocument).flatMap((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    const next = rewritten(path, text, packed);
    return next === text ? [] : [{ path, next }];
  });
  const draft = `${ORIGINALS}.new`;
  rmSync(draft, { recursive: true, force: true });
  for (const { path } of changed) {
    mkdirSync(dirname(join(draft, path)), { recursive: true });
    cpSync(join(ROOT, path), join(draft, path));
  }
  mkdirSync(draft, { recursive: true });
  // Complete before the first document changes, however this process ends.
  renameSync(draft, ORIGINALS);
  for (const { path, next } of changed) writeFileSync(join(ROOT, path), next);
}

/** Puts the originals back, also those that an interrupted run has left. */
export function restoreDocuments() {
  if (!existsSync(ORIGINALS)) return;
  for (const path of readdirSync(ORIGINALS, { recursive: true })) {
    if (isDocument(path)) cpSync(join(ORIGINALS, path), join(ROOT, path));
  }
  rmSync(ORIGINALS, { recursive: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === 'rewrite') rewriteDocuments();
  else restoreDocuments();
}

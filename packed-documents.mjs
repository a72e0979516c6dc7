// The Markdown of the package. In a checkout, documents link to files that the package does not contain: tests,
// decisions, guides for changes of the source. In the package such a link is its text alone, and a line of a list that
// is nothing but such a link is left out.
//
// npm runs `node packed-documents.mjs rewrite` before it packs or publishes, and `restore` afterwards.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('.', import.meta.url));
/** Copies of what is rewritten, until it is restored. */
const ORIGINALS = join(ROOT, 'build/package-originals');

const DOCUMENT = /(?:\.md|^llms\.txt)$/;
const LINK = /\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^()\s]+)\)/g;
const LISTED = /^- \[[^\]]*\]\(([^()\s]+)\): .*\n/gm;
const FENCED = /^(```|~~~)[^]*?^\1/gm;
const HEADING = /^#{1,6} (.+)$/gm;

/** The paths that npm would pack. */
export function packedPaths() {
  const args = ['pack', '--dry-run', '--ignore-scripts', '--json'];
  const [packed] = JSON.parse(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 }));
  return packed.files.map(({ path }) => path);
}

export const isDocument = (path) => DOCUMENT.test(path);

/** The text of a document without links to files that are not in the package. */
export function rewritten(path, text, packed) {
  const isDead = (link) => targetOf(path, link) !== null && !isPacked(targetOf(path, link).file, packed);
  return text
    .replaceAll(LISTED, (line, link) => (path === 'llms.txt' && isDead(link) ? '' : line))
    .replaceAll(LINK, (whole, words, link) => (isDead(link) ? words : whole));
}

/**
 * @param documents the texts by path
 * @param packed all paths of the package
 * @returns each link that leads to no file, or to no heading, of the package, as `path: link`
 */
export function deadLinks(documents, packed) {
  const anchors = new Map([...documents].map(([path, text]) => [path, anchorsOf(text)]));
  return [...documents].flatMap(([path, text]) =>
    [...text.replaceAll(FENCED, '').matchAll(LINK)]
      .map(([, , link]) => link)
      .filter((link) => {
        const target = targetOf(path, link);
        if (target === null) return false;
        if (!isPacked(target.file, packed)) return true;
        return target.anchor !== '' && anchors.has(target.file) && !anchors.get(target.file).has(target.anchor);
      })
      .map((link) => `${path}: ${link}`),
  );
}

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

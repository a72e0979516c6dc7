// The check of the built site: every link and picture inside it leads to a file and, where it names one, to an anchor.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { filesBelow } from './files.mjs';

const TAG = /<(?:a|img|source|link|script)\s[^>]*>/g;
const TARGET = /\s(?:href|src|srcset)="([^"]*)"/g;
/** One of several images of `srcset`, with its size. */
const CANDIDATE = /^\s*(\S+)(?:\s+[\d.]+[wx])?\s*$/;
const EXTERNAL = /^(?:[a-z]+:|\/\/)/;

const unescape = (text) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

/**
 * @param folder - the built site
 * @returns each dead link as `page: link`
 */
export function deadLinks(folder) {
  const pages = new Map(filesBelow(folder, '.html').map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  const anchors = new Map(
    [...pages].map(([name, html]) => [
      name,
      new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => unescape(id))),
    ]),
  );
  return [...pages].flatMap(([page, html]) => {
    const links = new Set([...html.matchAll(TAG)].flatMap(([tag]) => targetsOf(tag)));
    return [...links].filter((link) => !isAlive(folder, page, link, anchors)).map((link) => `${page}: ${link}`);
  });
}

const targetsOf = (tag) =>
  [...tag.matchAll(TARGET)].flatMap(([attribute, value]) =>
    attribute.includes('srcset=')
      ? value.split(',').map((candidate) => unescape(CANDIDATE.exec(candidate)?.[1] ?? candidate))
      : [unescape(value)],
  );

function isAlive(folder, page, link, anchors) {
  if (EXTERNAL.test(link)) return true;
  const [to, anchor = ''] = link.split('#').map(decodeURIComponent);
  const path = to === '' ? page : posix.join(posix.dirname(page), to);
  const target = path.endsWith('/') ? posix.join(path, 'index.html') : path;
  const file = join(folder, target);
  if (!existsSync(file) || !statSync(file).isFile()) return false;
  return anchor === '' || anchors.get(target)?.has(anchor) === true;
}

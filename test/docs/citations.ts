// Collects the ids of rules that files cite, and those that files define.
//
// An id is global (`C35`, `D8`, `F3`, `S4-31`, `U-08`), a source of the contract (`S4`), a decision (`0040`), or local
// (`T1`): an invariant in the list of a comment in one file, e.g. tick.ts.

import { posix } from 'node:path';
import ts from 'typescript';
import { textOf } from '../sources.js';
import { idsIn, isTitle, rulesOf } from './coverage.js';

export interface Citation {
  readonly id: string;
  readonly line: number;
}

const START = '(?<![\\w+/=.#$-])';
const END = '(?![\\w-]|\\.\\d)';
const GLOBAL = new RegExp(
  `${START}(?:C\\d{2,3}|[DF]\\d{1,2}|(?:S[0-4]|U)-\\d{2}(?:\\.\\.(?:S[0-4]-|U-)?\\d{2})?)${END}`,
  'g',
);
const SHORT = new RegExp(`${START}(?:[A-Z]\\d{1,2}|D-\\d)${END}`, 'g');
const DECISION = /\bdecisions? (\d{4})\b(?:(?:,| and) (\d{4})\b)*/g;
/** Names of other things that look like an id. */
const NAMES = ['V8'];

/**
 * The ids that a file cites, without those that `isDefined` accepts. In strings of programs only global ids count,
 * except in titles of tests.
 */
export function citationsIn(path: string, text: string, isDefined: (id: string) => boolean): readonly Citation[] {
  const isProgram = /\.(?:ts|tsx|mjs|js)$/.test(path);
  const prose = path.endsWith('.md') ? text.replace(/^```[^]*?^```/gm, blank) : text;
  const found = [GLOBAL, DECISION, SHORT]
    .flatMap((pattern) => matches(prose, pattern))
    .filter(({ id }) => !NAMES.includes(id) && !isDefined(id));
  if (found.length === 0) return [];
  // Only now, because few files have any: to parse all of them takes seconds.
  const placeAt = isProgram ? placesIn(path, text) : () => (path.endsWith('.md') ? 'words' : 'string');
  const cited = found
    .filter(({ at, pattern }) => placeAt(at) === 'words' || (pattern !== SHORT && placeAt(at) === 'string'))
    .map(({ id, at }) => ({ id, line: prose.slice(0, at).split('\n').length }));
  return [...new Map(cited.map((citation) => [`${citation.line} ${citation.id}`, citation])).values()];
}

/** Line breaks only, so that lines keep their numbers. */
const blank = (text: string): string => text.replace(/[^\n]/g, '');

const matches = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].flatMap(({ index, 0: words }) => idsOf(words).map((id) => ({ id, at: index, pattern })));

const idsOf = (words: string): readonly string[] =>
  words.startsWith('decision') ? (words.match(/\d{4}/g) ?? []) : /^(?:S\d|U)-/.test(words) ? idsIn(words) : [words];

/** What a place in a program is: `words` of a comment or of the title of a test, a `string`, or `code`. */
function placesIn(path: string, text: string): (at: number) => 'words' | 'string' | 'code' {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  return (at) => {
    const node = deepestNode(source, at);
    if (at < node.getStart(source)) return 'words';
    if (isText(node)) return isTitle(node) || isTitle(node.parent) ? 'words' : 'string';
    // Between its parts, a node has comments and punctuation.
    return ts.forEachChild(node, () => true) === true ? 'words' : 'code';
  };
}

function deepestNode(node: ts.Node, at: number): ts.Node {
  const child = ts.forEachChild(node, (each) => (each.pos <= at && at < each.end ? each : undefined));
  return child === undefined ? node : deepestNode(child, at);
}

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) ||
  ts.isTemplateHead(node) ||
  ts.isTemplateMiddleOrTemplateTail(node) ||
  ts.isJsxText(node);

const RESOLUTIONS = 'docs/contract/resolutions.md';
const ENTRY = /^- <a id="([^"]+)"><\/a>\n {2}\*\*([A-Z]\d+)\*\* /gm;

/** The entries of the page of resolutions: anchor and id, in its order. */
export const resolutionsOf = (page: string): readonly { readonly anchor: string; readonly id: string }[] =>
  [...page.matchAll(ENTRY)].map(([, anchor = '', id = '']) => ({ anchor, id }));

/** Every id that any file may cite. */
export function globalIds(pages: readonly string[]): ReadonlySet<string> {
  const decisions = pages.flatMap((path) => /^docs\/decisions\/(\d{4})-/.exec(path)?.slice(1) ?? []);
  const contract = pages.filter((path) => path.startsWith('docs/contract/')).map(textOf);
  const sources = [...textOf('docs/contract/README.md').matchAll(/^\| \[[^\]]+\]\([^)]+\) \| (S\d|U) \|/gm)];
  return new Set([
    ...decisions,
    ...contract.flatMap(rulesOf).map(({ id }) => id),
    ...sources.map(([, id = '']) => id),
    ...resolutionsOf(textOf(RESOLUTIONS)).map(({ id }) => id),
  ]);
}

/** An element of a list of invariants in a comment: `//   T1. Inputs of ...`. */
const INVARIANT = /^\s*(?:\/\/|\*) {2,}([A-Z]\d{1,2}|D-\d)\. \S/gm;

export const invariantsOf = (text: string): readonly string[] => [...text.matchAll(INVARIANT)].map(([, id = '']) => id);

/** The names of files that a text contains, without extension: of its imports, and in words. */
export const filesNamedIn = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(/([\w.-]+)\.(?:js|tsx?|mjs)\b/g)].map(([, name = '']) => name));

export const stemOf = (path: string): string => posix.basename(path).replace(/\.(?:tsx?|mjs|js)$/, '');

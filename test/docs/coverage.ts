// The rules of docs/contract, and which of them the titles of tests cite.

import ts from 'typescript';
import { nodesOf } from '../sources.js';

const ID = /\b(S[0-4]|U)-(\d{2})(?:\.\.(?:\1-)?(\d{2}))?\b/g;
const TITLED = ['test', 'it', 'describe'];

/** The ids that a text cites, in order; `S0-25..S0-27` and `S0-25..27` are three ids. */
export function idsIn(text: string): readonly string[] {
  return [...text.matchAll(ID)].flatMap(([, source = '', from = '', to = from]) => {
    const count = Math.max(0, Number(to) - Number(from)) + 1;
    return Array.from({ length: count }, (_, index) => `${source}-${String(Number(from) + index).padStart(2, '0')}`);
  });
}

/** The ids that the titles of a test file cite. A string that begins with an id counts as one: rows become titles. */
export function citedIn(source: ts.SourceFile): ReadonlySet<string> {
  const strings = nodesOf(source).filter((node) => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node));
  const titles = strings.filter((node) => isTitle(node) || /^.?(?:S[0-4]|U)-\d{2}\b/.test(node.getText()));
  return new Set(titles.flatMap((node) => idsIn(node.getText())));
}

/** Whether this is the first argument of `test(...)`, `describe.each(...)(...)` or similar. */
export function isTitle(node: ts.Node): boolean {
  const call = node.parent;
  if (!ts.isCallExpression(call) || call.arguments[0] !== node) return false;
  const [name = ''] = call.expression.getText().split(/[.(]/, 1);
  return TITLED.includes(name);
}

/** One rule of a contract page: `| S0-01 | what it says |`. */
const ROW = /^\| ((?:S[0-4]|U)-\d{2}) \| (.+) \|$/;

export interface Rule {
  readonly id: string;
  readonly says: string;
}

/** The rules of a page, in their order. */
export const rulesOf = (page: string): readonly Rule[] =>
  page.split('\n').flatMap((line) => {
    const [, id, says] = ROW.exec(line) ?? [];
    return id === undefined || says === undefined ? [] : [{ id, says }];
  });

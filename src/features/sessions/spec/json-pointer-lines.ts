// Finds the lines of JSON pointers in a text, for the author who corrects it. Only for texts that the strict reader has
// accepted: it bounds their depth.

import { parseOwnJson } from '../../../core/contract/json.js';

/** The pointers that end here, and those below, by key or index. */
interface PointerNode {
  readonly children: Map<string, PointerNode>;
  line: number | null;
}

interface Cursor {
  readonly text: string;
  at: number;
  line: number;
}

/**
 * The line (from 1) of what each JSON pointer names, or of the nearest existing value around it. The line of a member
 * is that of its key. The text is read once for all pointers.
 */
export function findPointerLines(text: string, pointers: readonly string[]): readonly number[] {
  const root: PointerNode = { children: new Map(), line: 1 };
  const paths = pointers.map((pointer) => addPointer(root, pointer));
  skipValue({ text, at: 0, line: 1 }, root);
  return paths.map((nodes) => nodes.findLast(({ line }) => line !== null)?.line ?? 1);
}

/** The nodes from the root to the target of a pointer. */
function addPointer(root: PointerNode, pointer: string): readonly PointerNode[] {
  let node = root;
  const nodes = [root];
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const next: PointerNode = node.children.get(name) ?? { children: new Map(), line: null };
    node.children.set(name, next);
    nodes.push(next);
    node = next;
  }
  return nodes;
}

function skipValue(cursor: Cursor, target: PointerNode | undefined): void {
  const opening = skipSpace(cursor);
  if (opening === '"') skipString(cursor);
  else if (opening === '{' || opening === '[') skipMembers(cursor, opening === '[', target);
  else while (!/[\s,\]}]/.test(cursor.text.charAt(cursor.at)) && cursor.at < cursor.text.length) cursor.at += 1;
}

function skipMembers(cursor: Cursor, isArray: boolean, target: PointerNode | undefined): void {
  cursor.at += 1;
  for (let index = 0; ; index += 1) {
    const next = skipSpace(cursor);
    if (next === ',') {
      cursor.at += 1;
      skipSpace(cursor);
    } else if (next === ']' || next === '}' || next === '') {
      cursor.at += 1;
      return;
    }
    const { line } = cursor;
    const name = isArray ? String(index) : skipKey(cursor);
    const node = target?.children.get(name);
    if (node !== undefined) node.line = line;
    skipValue(cursor, node);
  }
}

/** Reads a key and its colon. */
function skipKey(cursor: Cursor): string {
  const start = cursor.at;
  skipString(cursor);
  const key = parseOwnJson(cursor.text.slice(start, cursor.at)) as string;
  skipSpace(cursor);
  cursor.at += 1;
  return key;
}

function skipString(cursor: Cursor): void {
  const { text } = cursor;
  let end = text.indexOf('"', cursor.at + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  cursor.at = end < 0 ? text.length : end + 1;
}

/** Whether an odd number of backslashes precedes. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charAt(start - 1) === '\\') start -= 1;
  return (at - start) % 2 === 1;
}

/** @returns the first character that is not white space; empty at the end */
function skipSpace(cursor: Cursor): string {
  for (;;) {
    const char = cursor.text.charAt(cursor.at);
    if (char === '\n') cursor.line += 1;
    if (char === '' || !' \t\r\n'.includes(char)) return char;
    cursor.at += 1;
  }
}

// Where in a JSON text things stand, for whoever has to mend it. Only for texts that the strict reader has taken: it
// bounds how deep they nest.

/** What is asked for in one place of the text, and below it by key or index. */
interface Wanted {
  readonly below: Map<string, Wanted>;
  line: number | null;
}

interface Cursor {
  readonly text: string;
  at: number;
  line: number;
}

/**
 * The line (from 1) of what each JSON pointer names, or of the nearest thing around it that is there. The line of a
 * member is that of its key. The text is read once, however many pointers there are.
 */
export function linesOfJson(text: string, pointers: readonly string[]): readonly number[] {
  const root: Wanted = { below: new Map(), line: 1 };
  const ways = pointers.map((pointer) => wayTo(root, pointer));
  passValue({ text, at: 0, line: 1 }, root);
  return ways.map((way) => way.findLast(({ line }) => line !== null)?.line ?? 1);
}

/** The places from the root to what a pointer names. */
function wayTo(root: Wanted, pointer: string): readonly Wanted[] {
  let place = root;
  const way = [root];
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const next: Wanted = place.below.get(name) ?? { below: new Map(), line: null };
    place.below.set(name, next);
    way.push(next);
    place = next;
  }
  return way;
}

function passValue(cursor: Cursor, wanted: Wanted | undefined): void {
  const opening = passSpace(cursor);
  if (opening === '"') passString(cursor);
  else if (opening === '{' || opening === '[') passMembers(cursor, opening === '[', wanted);
  else while (!/[\s,\]}]/.test(cursor.text.charAt(cursor.at)) && cursor.at < cursor.text.length) cursor.at += 1;
}

function passMembers(cursor: Cursor, isArray: boolean, wanted: Wanted | undefined): void {
  cursor.at += 1;
  for (let index = 0; ; index += 1) {
    const next = passSpace(cursor);
    if (next === ',') {
      cursor.at += 1;
      passSpace(cursor);
    } else if (next === ']' || next === '}' || next === '') {
      cursor.at += 1;
      return;
    }
    const { line } = cursor;
    const name = isArray ? String(index) : passKey(cursor);
    const place = wanted?.below.get(name);
    if (place !== undefined) place.line = line;
    passValue(cursor, place);
  }
}

/** A key and its colon. */
function passKey(cursor: Cursor): string {
  const start = cursor.at;
  passString(cursor);
  const key = JSON.parse(cursor.text.slice(start, cursor.at)) as string;
  passSpace(cursor);
  cursor.at += 1;
  return key;
}

function passString(cursor: Cursor): void {
  const { text } = cursor;
  let end = text.indexOf('"', cursor.at + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  cursor.at = end < 0 ? text.length : end + 1;
}

/** Whether an odd number of backslashes stands before. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charAt(start - 1) === '\\') start -= 1;
  return (at - start) % 2 === 1;
}

/** @returns the first character that is no white space; empty at the end */
function passSpace(cursor: Cursor): string {
  for (;;) {
    const char = cursor.text.charAt(cursor.at);
    if (char === '\n') cursor.line += 1;
    if (char === '' || !' \t\r\n'.includes(char)) return char;
    cursor.at += 1;
  }
}

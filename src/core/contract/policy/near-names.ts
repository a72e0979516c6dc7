// Names that are probably meant.

const EDITS_MAX = 2;

/** Whether one name becomes the other by at most two edits (a character inserted, deleted or replaced). */
export function isNear(a: string, b: string): boolean {
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, character] of Array.from(a).entries()) {
    const line = [row + 1];
    for (let column = 1; column <= b.length; column += 1) {
      const same = character === b[column - 1] ? 0 : 1;
      const [up = 0, left = 0, before = 0] = [above[column], line[column - 1], above[column - 1]];
      line.push(Math.min(up + 1, left + 1, before + same));
    }
    above = line;
  }
  return (above.at(-1) ?? Infinity) <= EDITS_MAX;
}

const NAME_CHARS_MAX = 120;

/** `; there is "x"` for a known name that is close, and nothing without one. */
export function suggestion(name: string, known: Iterable<string>): string {
  if (name.length > NAME_CHARS_MAX) return '';
  const small = name.toLowerCase();
  for (const each of known)
    if (each.length <= NAME_CHARS_MAX && isNear(each.toLowerCase(), small)) return `; there is "${each}"`;
  return '';
}

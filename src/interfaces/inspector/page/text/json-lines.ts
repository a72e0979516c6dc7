// Formats a JSON value as lines of names and values, without a markup parser. A payload may be anything, so excess
// depth and length are omitted, and the omission is reported.

export interface JsonLine {
  readonly depth: number;
  readonly name: string | null;
  /** Null for a line that only opens the lines below it. */
  readonly value: string | null;
  readonly kind: 'text' | 'number' | 'word' | 'open';
  /** Names from the top, joined by dots: they determine the author of a text. */
  readonly path: string;
}

const DEPTH_MAX = 12;
export const LINES_MAX = 400;
/** Longer than any known name; the path of a longer name is truncated. */
const NAME_MAX = 100;

/** @returns at most `most` lines; `cut` says whether more were omitted, not how many */
export function toJsonLines(
  value: unknown,
  maxLines = LINES_MAX,
  maxDepth = DEPTH_MAX,
): { readonly lines: readonly JsonLine[]; readonly cut: boolean } {
  const lines: JsonLine[] = [];
  let cut = false;
  const add = (line: JsonLine): void => {
    if (lines.length < maxLines) lines.push(line);
    else cut = true;
  };
  const visit = (name: string | null, item: unknown, depth: number, path: string): void => {
    if (cut) return;
    if (typeof item !== 'object' || item === null) {
      add({ depth, name, path, ...scalarOf(item) });
      return;
    }
    const members = Array.isArray(item) ? item.map((one, at) => [String(at), one] as const) : Object.entries(item);
    if (depth >= maxDepth || members.length === 0) {
      const empty = Array.isArray(item) ? '[]' : '{}';
      add({ depth, name, path, value: members.length === 0 ? empty : '…', kind: 'word' });
      return;
    }
    if (name !== null) add({ depth, name, path, value: null, kind: 'open' });
    for (const [key, one] of members) {
      const own = key.length > NAME_MAX ? '…' : key;
      visit(key, one, name === null ? depth : depth + 1, path === '' ? own : `${path}.${own}`);
    }
  };
  visit(null, value, 0, '');
  return { lines, cut };
}

function scalarOf(item: unknown): Pick<JsonLine, 'value' | 'kind'> {
  if (typeof item === 'string') return { value: item, kind: 'text' };
  if (typeof item === 'number') return { value: String(item), kind: 'number' };
  return { value: String(item), kind: 'word' };
}

export function parseJson(text: string): { readonly value: unknown } | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { value } : null;
  } catch {
    return null;
  }
}

// Text made fit for a terminal. What comes from a ledger, a file or an agent may hold what a terminal obeys, or what
// shows a reader something else than what is there: none of it gets out unescaped.

// Controls, formats (bidirectional, zero-width, tags), separators and lone surrogates.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const SHORT: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/**
 * The text as one line that a terminal only shows. Every escape is one of JSON's, so a JSON text whose strings hold raw
 * characters of this kind still means the same.
 */
export const escapeText = (text: string): string =>
  text.replace(UNSAFE, (char) => SHORT.get(char) ?? escapeUnits(char));

const escapeUnits = (char: string): string =>
  Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');

/** A long text with its end cut off, and escaped. */
export const shortenText = (text: string, chars_max: number): string =>
  escapeText(text.length <= chars_max ? text : `${text.slice(0, chars_max - 1)}…`);

/** `1 step`, `2 steps` */
export const countText = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

/** A value as one line of JSON that a terminal only shows. */
export const jsonLine = (value: unknown): string => `${escapeText(JSON.stringify(value))}\n`;

const CODES = { red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36, dim: 2, bold: 1 } as const;
export type Colour = keyof typeof CODES;

/** Colours a text that has been escaped already, or leaves it. */
export type Paint = (text: string, colour: Colour) => string;

export const createPainter =
  (colours: boolean): Paint =>
  (text, colour) =>
    colours ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;

/** One cell of a table: its text, escaped already, and how it is coloured once its width is known. */
export interface TextCell {
  readonly text: string;
  readonly colour?: Colour | undefined;
}

/** Rows with their columns aligned; the last column, and cells that stand at the end of their row, are not padded. */
export function table(rows: readonly (readonly TextCell[])[], paint: Paint): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach(({ text }, i) => (widths[i] = Math.max(widths[i] ?? 0, text.length)));
  return rows.map((row) => `${lineOf(row, widths, paint)}\n`).join('');
}

function lineOf(row: readonly TextCell[], widths: readonly number[], paint: Paint): string {
  const last = row.findLastIndex(({ text }) => text !== '');
  return row
    .slice(0, last + 1)
    .map(({ text, colour }, i) => {
      const painted = colour === undefined || text === '' ? text : paint(text, colour);
      return i === last ? painted : painted + ' '.repeat((widths[i] ?? 0) - text.length);
    })
    .join('  ');
}

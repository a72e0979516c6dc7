// Makes text safe for a terminal. Text from a ledger, a file or an agent may contain control sequences or characters
// that mislead a reader: all of them are escaped.

// Controls, formats (bidirectional, zero-width, tags), separators and lone surrogates.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const SHORT: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/** The text as one line without active characters. Every escape is one of JSON's, so JSON text keeps its meaning. */
export const escapeText = (text: string): string =>
  text.replace(UNSAFE, (char) => SHORT.get(char) ?? escapeUnits(char));

const escapeUnits = (char: string): string =>
  Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');

/** Lines of text, each escaped. */
export const escapeLines = (lines: readonly string[]): string => lines.map((line) => `${escapeText(line)}\n`).join('');

/** A long text, truncated and escaped. */
export const shortenText = (text: string, chars_max: number): string =>
  escapeText(text.length <= chars_max ? text : `${text.slice(0, chars_max - 1)}…`);

/** `1 step`, `2 steps` */
export const countText = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

/** A value as one line of JSON, safe for a terminal. */
export const jsonLine = (value: unknown): string => `${escapeText(JSON.stringify(value))}\n`;

const CODES = { red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36, dim: 2, bold: 1 } as const;
export type Colour = keyof typeof CODES;

/** Colours an escaped text, or returns it unchanged. */
export type Paint = (text: string, colour: Colour) => string;

export const createPainter =
  (colours: boolean): Paint =>
  (text, colour) =>
    colours ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;

/** One cell of a table: its escaped text, and a colour that is applied after padding. */
export interface TextCell {
  readonly text: string;
  readonly colour?: Colour | undefined;
}

/** Rows with aligned columns; the last column and the last cell of a row are not padded. */
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

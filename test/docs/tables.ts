// The tables of a document that a test compares with the code: each follows `<!-- table: NAME -->`.

import { textOf } from '../sources.js';

/** The rows of a table, without its head, as the text of their cells. */
export function tableOf(path: string, name: string): readonly (readonly string[])[] {
  const [, after] = textOf(path).split(`<!-- table: ${name} -->\n`);
  if (after === undefined) throw new Error(`${path} has no table ${name}`);
  const lines = after.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return lines.slice(2, end).map((line) =>
    line
      .slice(1, line.lastIndexOf('|'))
      .split('|')
      .map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')),
  );
}

// The table of failures of docs/operating.md: what each row says that an operator sees.

import { textOf } from '../../../sources.js';

const PAGE = 'docs/operating.md';
const MARK = '<!-- table: failures -->\n';

export interface FailureRow {
  readonly failure: string;
  /** Lines of `/readyz?verbose`; empty if no process answers. */
  readonly readyz: readonly string[];
  /** Lines of `/metrics`. */
  readonly metrics: readonly string[];
  /** Texts in the log. */
  readonly log: readonly string[];
  /** The exit code of the process; null if it goes on. */
  readonly exitCode: number | null;
}

/** The rows of the page. Each `code` of a cell is one text. */
export function failureRows(page = textOf(PAGE)): readonly FailureRow[] {
  const [, after] = page.split(MARK);
  if (after === undefined) throw new Error(`${PAGE} has no table of failures`);
  const lines = after.split('\n');
  const rows = lines.slice(
    2,
    lines.findIndex((line) => !line.startsWith('|')),
  );
  return rows.map((line) => {
    const [, failure = '', readyz = '', metrics = '', log = ''] = line.split('|').map((cell) => cell.trim());
    const [, exitCode] = /exit code (\d)/.exec(readyz) ?? [];
    return {
      failure,
      readyz: codesIn(readyz),
      metrics: codesIn(metrics),
      log: codesIn(log),
      exitCode: exitCode === undefined ? null : Number(exitCode),
    };
  });
}

const codesIn = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

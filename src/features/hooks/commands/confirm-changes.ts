// Shows what an installation changes, and asks before it does.

import { alignSequences } from '../../../core/align-sequences.js';
import { usageError } from '../../../core/errors.js';
import type { FileChange } from '../install/install-client.js';
import type { ArgumentsOf } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import type { YES_OPTION } from './client-options.js';

const ANSWER_CHARS_MAX = 16;

/**
 * Prints the changes, and asks unless there is `--yes`.
 * @returns whether the files may be written
 * @throws UsageError without a terminal and without `--yes`
 */
export async function confirmChanges(
  changes: readonly FileChange[],
  { values: { json, yes } }: ArgumentsOf<readonly [typeof YES_OPTION]>,
  io: Io,
): Promise<boolean> {
  for (const change of changes) await io.stdout.write(json ? jsonLine(changeFacts(change)) : changeText(change));
  if (yes) return true;
  if (!io.stdinIsTTY) throw usageError('there is no terminal to ask at, and nothing was changed: give --yes');
  await io.stderr.write('Change these files? [y/N] ');
  return /^y(?:es)?$/i.test((await readLine(io)).trim());
}

const changeFacts = ({ path, current, after }: FileChange) => ({
  path,
  change: after === null ? 'removed' : current === null ? 'created' : 'changed',
  diff: lineDiff(current ?? '', after ?? ''),
});

const changeText = ({ path, current, after }: FileChange): string => {
  const title = after === null ? `remove ${path}` : current === null ? `create ${path}` : `change ${path}`;
  return [title, ...lineDiff(current ?? '', after ?? '').map((line) => `  ${line}`), '']
    .map((line) => `${escapeText(line)}\n`)
    .join('');
};

async function readLine({ stdin }: Io): Promise<string> {
  let text = '';
  for await (const part of stdin as AsyncIterable<Buffer | string>) {
    text += part.toString();
    if (text.includes('\n') || text.length > ANSWER_CHARS_MAX) break;
  }
  return text.split('\n')[0] ?? '';
}

/** The lines that differ between two texts, as `diff -u` shows them, with three lines around them. Empty if none do. */
function lineDiff(before: string, after: string): readonly string[] {
  const [old, next] = [linesOf(before), linesOf(after)];
  const lines = alignSequences(old, next).map(({ a, b }) => {
    if (a === null) return `+${next[b ?? 0] ?? ''}`;
    return `${b === null ? '-' : ' '}${old[a] ?? ''}`;
  });
  return shorten(lines);
}

const linesOf = (text: string): readonly string[] =>
  text === ''
    ? []
    : text.endsWith('\n')
      ? text.slice(0, -1).split('\n')
      : [...text.split('\n'), '\\ no newline at end'];

const CONTEXT = 3;

/** Without the lines that are far from every change; none if there is no change. */
function shorten(lines: readonly string[]): readonly string[] {
  const near = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => !line.startsWith(' '));
  if (lines.every((line) => line.startsWith(' '))) return [];
  const shown: string[] = [];
  for (const [at, line] of lines.entries()) {
    if (near(at)) shown.push(line);
    else if (at === 0 || near(at - 1)) shown.push('@@');
  }
  return shown;
}

// Shows what an installation changes, and asks before it does.

import { usageError } from '../../../core/errors.js';
import type { FileChange } from '../install/install-client.js';
import type { CommandArguments } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const ANSWER_CHARS_MAX = 16;

/**
 * Prints the changes, and asks unless there is `--yes`.
 * @returns whether the files may be written
 * @throws UsageError without a terminal and without `--yes`
 */
export async function confirmChanges(changes: readonly FileChange[], args: CommandArguments, io: Io): Promise<boolean> {
  for (const change of changes)
    await io.stdout.write(args.flag('json') ? jsonLine(changeFacts(change)) : changeText(change));
  if (args.flag('yes')) return true;
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

/** How many lines of a file are compared one by one. Longer parts count as replaced. */
const COMPARED_MAX = 2_000;
const CONTEXT = 3;

/** The lines that differ between two texts, as `diff -u` shows them, with three lines around them. Empty if none do. */
function lineDiff(before: string, after: string): readonly string[] {
  const [old, next] = [linesOf(before), linesOf(after)];
  let [start, end] = [0, 0];
  while (start < Math.min(old.length, next.length) && old[start] === next[start]) start += 1;
  const shortest = Math.min(old.length, next.length) - start;
  while (end < shortest && old[old.length - 1 - end] === next[next.length - 1 - end]) end += 1;
  const middle = compare(old.slice(start, old.length - end), next.slice(start, next.length - end));
  const same = (lines: readonly string[]): string[] => lines.map((line) => ` ${line}`);
  return middle.length === 0
    ? []
    : shorten([...same(old.slice(0, start)), ...middle, ...same(old.slice(old.length - end))]);
}

const linesOf = (text: string): readonly string[] =>
  text === ''
    ? []
    : text.endsWith('\n')
      ? text.slice(0, -1).split('\n')
      : [...text.split('\n'), '\\ no newline at end'];

/** The longest common lines stay; the others are removed or added. */
function compare(old: readonly string[], next: readonly string[]): readonly string[] {
  if (old.length > COMPARED_MAX || next.length > COMPARED_MAX)
    return [...old.map((line) => `-${line}`), ...next.map((line) => `+${line}`)];
  const width = next.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = next.length - 1; j >= 0; j -= 1) {
      const [down = 0, right = 0, both = 0] = [
        lengths[(i + 1) * width + j],
        lengths[i * width + j + 1],
        lengths[(i + 1) * width + j + 1],
      ];
      lengths[i * width + j] = old[i] === next[j] ? both + 1 : Math.max(down, right);
    }
  const shown: string[] = [];
  for (let [i, j] = [0, 0]; i < old.length || j < next.length;) {
    const [down = 0, right = 0] = [lengths[(i + 1) * width + j], lengths[i * width + j + 1]];
    if (i < old.length && j < next.length && old[i] === next[j]) {
      shown.push(` ${old[i] ?? ''}`);
      [i, j] = [i + 1, j + 1];
    } else if (j >= next.length || (i < old.length && down >= right)) {
      shown.push(`-${old[i] ?? ''}`);
      i += 1;
    } else {
      shown.push(`+${next[j] ?? ''}`);
      j += 1;
    }
  }
  return shown;
}

/** Without the lines that are far from every change. */
function shorten(lines: readonly string[]): readonly string[] {
  const near = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => !line.startsWith(' '));
  const shown: string[] = [];
  for (const [at, line] of lines.entries()) {
    if (near(at)) shown.push(line);
    else if (at === 0 || near(at - 1)) shown.push('@@');
  }
  return shown;
}

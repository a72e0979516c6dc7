// Shows what an installation changes, and asks before it does.

import { usageError } from '../../../core/errors.js';
import type { FileChange } from '../install/install-client.js';
import type { CommandArguments } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { lineDiff } from './line-diff.js';
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

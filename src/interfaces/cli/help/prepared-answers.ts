// Help and version without loading the commands: the build has prepared the texts. A person who looks up an option
// should not wait for everything else.

import { existsSync, readFileSync } from 'node:fs';
import { parseOwnJson } from '../../../core/contract/json.js';
import { packageFile } from '../../../system/package-files.js';

/** What the build has written. */
export interface PreparedTexts {
  readonly version: string;
  readonly overview: string;
  /** By the name of the command. */
  readonly commands: Readonly<Record<string, string>>;
}

/** The file of the build, next to the code; null in a checkout. */
export function readPreparedTexts(): PreparedTexts | null {
  const path = packageFile('help.json');
  return existsSync(path) ? (parseOwnJson(readFileSync(path, 'utf8')) as PreparedTexts) : null;
}

/** The output of `help` and `version`; null for other arguments, and for a command that does not exist. */
export function preparedAnswer(argv: readonly string[], texts: PreparedTexts): string | null {
  const [first, ...rest] = argv;
  if (first === '--version' || (first === 'version' && rest.length === 0)) return `turnpike ${texts.version}\n`;
  if (argv.length === 1 && (first === '--help' || first === '-h' || first === 'help')) return texts.overview;
  if (first !== 'help') return null;
  const name = rest.join(' ');
  return Object.hasOwn(texts.commands, name) ? (texts.commands[name] ?? null) : null;
}

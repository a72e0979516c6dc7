// The key history of a log as a file: one line for each rotation, which is its note as a JSON string. It contains no
// secret. What the notes say is checked elsewhere (src/core/ledger/proof/key-history.ts).

import { readJson } from '../../core/contract/json.js';
import { PolicyError } from '../../core/errors.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';

/** In the key folder. */
export const HISTORY_FILE = 'key-history.list';
const HEADER = 'turnpike-key-history 1';
const BYTES_MAX = 1_048_576;

/** The notes in a file; none if it does not exist. @throws PolicyError if it is not a key history */
export function readHistoryFile(path: string): readonly string[] {
  const bytes = readSmallFile(path, { bytesMax: BYTES_MAX, forbiddenMode: 0o022 });
  if (bytes === null) return [];
  const [header, ...lines] = Buffer.from(bytes).toString('utf8').split('\n');
  if (header !== HEADER || lines.pop() !== '') throw damagedError(path);
  return lines.map((line) => noteIn(line) ?? fail(path));
}

/** Replaces the file durably. */
export const writeHistoryFile = (path: string, notes: readonly string[]): void =>
  replaceFile(path, [HEADER, ...notes.map((note) => JSON.stringify(note)), ''].join('\n'), 0o644);

function noteIn(line: string): string | null {
  const value = readJson(line);
  return typeof value === 'string' ? value : null;
}

const fail = (path: string): never => {
  throw damagedError(path);
};

const damagedError = (path: string): PolicyError =>
  new PolicyError({ code: 'POLICY_INVALID', message: `${path} is not a complete key history: restore it` });

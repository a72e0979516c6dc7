// The session of the command that the documents show, line by line.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from '../fixtures/temp-folder.js';
import { filesIn, ROOT, textOf } from '../sources.js';
import { built } from './built.js';
import { put, shown } from './programs.js';

describe('the session of the command', () => {
  const folder = tempFolder('command');
  const commands = ['init', 'run proposals.jsonl', 'runs', 'replay', 'ledger verify'];
  let session: string;

  beforeAll(async () => {
    await built();
    put('proposals.jsonl', folder);
    const printed: string[] = [];
    for (const command of commands) {
      const output = await shown(
        join(ROOT, 'dist/src/interfaces/cli/main.js'),
        command.split(' '),
        folder,
        join(folder, 'output'),
      );
      printed.push(`$ turnpike ${command}\n${output}`);
    }
    session = printed.join('\n');
  }, 300_000);

  test('prints the text of docs/examples/command.txt, apart from ids, hashes and times', () => {
    if (process.env['TURNPIKE_WRITE_EXAMPLES'] === '1') writeExample('docs/examples/command.txt', session);
    expect(timeless(session)).toBe(timeless(textOf('docs/examples/command.txt')));
  });
});

/** Writes an example, and each block that shows it. */
function writeExample(file: string, text: string): void {
  writeFileSync(join(ROOT, file), text);
  for (const path of ['README.md', ...filesIn('docs', /\.md$/)]) {
    const block = new RegExp(`(<!-- example: ${file} -->\\n\`\`\`\\w*\\n)[^]*?(\`\`\`)`);
    writeFileSync(
      join(ROOT, path),
      textOf(path).replace(block, (_all, before: string, after: string) => before + text + after),
    );
  }
}

/** Replaces what differs from one run to the next by words, and columns that depend on it by one space. */
const timeless = (text: string): string =>
  text
    .replace(/run_\w{21}/g, 'RUN')
    .replace(/\b[0-9a-f]{64}\b/g, 'HASH')
    .replace(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME')
    .replace(/\b\d+(?:\.\d+)? (?:ms|s)\b/g, 'DURATION')
    .replace(/ +/g, ' ')
    .trim();

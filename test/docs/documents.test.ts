// Runs what the documents show: programs word for word, the command's session line by line. Checks that links lead to
// existing pages.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PHASES } from '../../src/contract/run/phase.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { filesIn, ROOT, textOf } from '../sources.js';
import { built } from './built.js';
import { put, shown } from './programs.js';
import { tableOf } from './tables.js';

const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...filesIn('docs', /\.md$/)];

test('every link in a document leads to an existing target', () => {
  const links = DOCUMENTS.flatMap((path) =>
    [...textOf(path).matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, to = '']) => ({ path, to })),
  );
  const files = filesIn('.', /./);
  const broken = links.filter(({ path, to }) => {
    const target = join(dirname(path), to).replace(/\/$/, '');
    return !files.some((file) => file === target || file.startsWith(`${target}/`));
  });
  expect(broken).toEqual([]);
});

test('every document has one title, and no wide line outside of tables and examples', () => {
  const titles = DOCUMENTS.filter((path) => (withoutCode(textOf(path)).match(/^# /gm) ?? []).length !== 1);
  const wide = DOCUMENTS.filter((path) =>
    withoutCode(textOf(path))
      .split('\n')
      .some((line) => line.length > 128 && !line.startsWith('|')),
  );
  expect({ titles, wide }).toEqual({ titles: [], wide: [] });
});

const withoutCode = (text: string): string => text.replace(/^```[^]*?^```/gm, '');

test('S0-02 S0-12 the page on architecture has the nine phases in their order', () => {
  const phases = tableOf('docs/architecture.md', 'phases').map(([, phase = '']) => phase);
  expect(phases.filter((phase) => phase !== '')).toEqual([...PHASES]);
  // The coarse order is the same, with the three validations as one.
  expect([...new Set(PHASES.map((phase) => phase.replace(/_.*/, '')))].join()).toBe(
    'RECEIVE,PARSE,VALIDATE,AUTHORIZE,EXECUTE,RECORD,RESPOND',
  );
});

test('the exit codes are those of the command', () => {
  const codes = tableOf('docs/operating.md', 'exit-codes').map(([code, meaning]) => `${code} ${meaning}`);
  expect(codes).toEqual([
    '0 done',
    '1 the check failed, or the run did not complete',
    '2 wrong usage',
    '3 the system is broken',
    '4 nothing is wrong, and not everything could be checked',
  ]);
});

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
        join(ROOT, 'dist/src/cli/main.js'),
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
  for (const path of DOCUMENTS) {
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

// A block after `<!-- example: FILE -->` is that file, word for word.
test('every example that a document shows is the file itself', () => {
  const blocks = DOCUMENTS.flatMap((path) =>
    [...textOf(path).matchAll(/<!-- example: (\S+) -->\n```\w*\n([^]*?)```/g)].map(([, file = '', text]) => ({
      path,
      file,
      text,
    })),
  );
  expect(blocks.map(({ file }) => file)).toEqual([
    'docs/examples/ten-lines.mjs',
    'docs/examples/command.txt',
    'docs/examples/http-server.mjs',
    'docs/examples/inspect-live.mjs',
  ]);
  for (const { path, file, text } of blocks) expect({ path, text }).toEqual({ path, text: textOf(file) });
});

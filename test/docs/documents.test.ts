// What the documents say: links lead to existing pages, tables and examples are those of the code and of the files.

import { expect, test } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { PHASES } from '../../src/core/contract/run/phase.js';
import { filesIn, nodesOf, parse, ROOT, textOf } from '../sources.js';
import { tableOf } from './tables.js';

const { deadLinks } = (await import(pathToFileURL(join(ROOT, 'tools/package/packed-documents.mjs')).href)) as {
  readonly deadLinks: (documents: ReadonlyMap<string, string>, files: readonly string[]) => readonly string[];
};

const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...filesIn('docs', /\.md$/)];

test('every link in a document, also of its HTML, leads to a file of the checkout and to a heading of it', () => {
  const pages = [...DOCUMENTS, 'AGENTS.md', 'CONTRIBUTING.md', 'llms.txt'];
  const texts = new Map(pages.map((path) => [path, textOf(path)]));
  expect(deadLinks(texts, filesIn('.', /./))).toEqual([]);
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

test('the exit codes on the page are those of the command', () => {
  const type = nodesOf(parse('src/interfaces/cli/command.ts')).find(
    (node) => ts.isTypeAliasDeclaration(node) && node.name.text === 'ExitCode',
  );
  const codes = type === undefined ? [] : nodesOf(type).filter(ts.isNumericLiteral);
  expect(codes.length).toBeGreaterThan(0);
  expect(tableOf('docs/operating.md', 'exit-codes').map(([code]) => code)).toEqual(codes.map(({ text }) => text));
});

// A block after `<!-- example: FILE -->` is that file, word for word.
test('every example that a document shows is the file itself', () => {
  const blocks = DOCUMENTS.flatMap((path) =>
    [...textOf(path).matchAll(/<!-- example: (\S+) -->\n```\w*\n([^]*?)```/g)].map(([, file = '', text]) => ({
      path,
      file,
      text,
    })),
  );
  expect(blocks.length).toBeGreaterThan(0);
  for (const { path, file, text } of blocks) expect({ path, text }).toEqual({ path, text: textOf(file) });
});

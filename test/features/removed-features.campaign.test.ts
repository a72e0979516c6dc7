// The sources without the folders of optional features and without their entries in the lists of features: they
// compile, and what is left decides a step and has the other commands.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { OPTIONAL_FEATURES, REGISTRY, SERVICE_LISTS } from '../optional-features.js';
import { nodesOf, ROOT, textOf } from '../sources.js';

const COPIED = ['src', 'machines', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];
/** The sample needs no declarations, and to write them takes as long as the check. */
const WITHOUT_TYPES = ['--declaration', 'false', '--stripInternal', 'false'];
/** It takes half a minute, and much longer on a busy machine. */
const COMPILE_MS_MAX = 300_000;

/** Decides one step, and prints its response and the commands that are left. */
const SAMPLE = `
import { join } from 'node:path';
import { openTurnpike } from './build/compiled/src/index.js';
import { COMMANDS } from './build/compiled/src/interfaces/cli/turnpike-command.js';

const [contract] = process.argv.slice(2);
const turnpike = await openTurnpike({ home: join(import.meta.dirname, 'home'), contract });
const agent = await turnpike.startAgent({ case: 'case-0001' });
const { outcome } = await agent.submit(
  JSON.stringify({
    schema_version: '1.0.0',
    id: '00000000-0000-4000-8000-000000000001',
    reasoning: 'A note.',
    action: 'WRITE_FILE',
    args: { path: '/sandbox/note.md', content: 'Hello.' },
  }),
);
await turnpike.close();
console.log(JSON.stringify({ outcome, commands: COMMANDS.map(({ name }) => name) }));
`;

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'removed-features-'));
  for (const path of COPIED) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const feature of OPTIONAL_FEATURES) rmSync(join(folder, 'src/features', feature), { recursive: true });
  for (const list of [REGISTRY, ...SERVICE_LISTS]) {
    const path = join(folder, list);
    writeFileSync(path, withoutEntries(path, readFileSync(path, 'utf8')));
  }
  writeFileSync(join(folder, 'sample.mjs'), SAMPLE);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (args: readonly string[]) =>
  spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', timeout: COMPILE_MS_MAX });

test(
  'the sources without the optional features compile',
  () => {
    const { stdout, status } = run([
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '-p',
      'tsconfig.build.json',
      ...WITHOUT_TYPES,
    ]);
    expect(stdout).toBe('');
    expect(status).toBe(0);
  },
  COMPILE_MS_MAX,
);

test('what is left decides a step by the shipped policy, and has the other commands', () => {
  const { stdout, stderr, status } = run(['sample.mjs', join(ROOT, 'policies/contract/v1')]);
  expect(stderr).toBe('');
  expect(status).toBe(0);
  const { outcome, commands } = JSON.parse(stdout) as { outcome: string; commands: readonly string[] };
  expect(outcome).toBe('SUCCESS');
  expect(commands).toContain('ledger verify');
  expect(commands).not.toContain('doctor');
});

test('every optional feature has an entry in the registry', () => {
  const found = entriesIn(ts.createSourceFile(REGISTRY, textOf(REGISTRY), ts.ScriptTarget.Latest, true));
  const features = found.flatMap((node) => pathsIn(node).map(featureOf));
  expect(OPTIONAL_FEATURES.filter((feature) => !features.includes(feature))).toEqual([]);
});

/** A list of features without what it imports of optional features, and without their elements of its arrays. */
function withoutEntries(path: string, text: string): string {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  return entriesIn(source).reduceRight(
    (rest, entry) => rest.slice(0, entry.getFullStart()) + rest.slice(entry.end).replace(/^,/, ''),
    text,
  );
}

/** The imports of optional features, and the elements of arrays that use these imports or load such a feature. */
function entriesIn(source: ts.SourceFile): readonly ts.Node[] {
  const imports = source.statements.filter(ts.isImportDeclaration).filter(isOfOptional);
  const names = imports.flatMap(nodesOf).flatMap((node) => (ts.isImportSpecifier(node) ? [node.name.text] : []));
  const elements = nodesOf(source)
    .filter(ts.isArrayLiteralExpression)
    .flatMap(({ elements }) => [...elements])
    .filter((element) => isOfOptional(element) || nodesOf(element).some((node) => isNamed(node, names)));
  return [...imports, ...elements];
}

const isNamed = (node: ts.Node, names: readonly string[]): boolean =>
  ts.isIdentifier(node) && names.includes(node.text);

const isOfOptional = (node: ts.Node): boolean =>
  pathsIn(node).some((path) => OPTIONAL_FEATURES.includes(featureOf(path)));

const pathsIn = (node: ts.Node): readonly string[] =>
  nodesOf(node).flatMap((each) => (ts.isStringLiteral(each) && each.text.startsWith('./') ? [each.text] : []));

const featureOf = (path: string): string => path.split('/')[1] ?? '';

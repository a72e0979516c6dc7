// The sources without the folders of optional features and without their entries in the registry: they compile, and
// what is left decides a step and has the other commands.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { OPTIONAL_FEATURES, REGISTRY, SERVICE_LISTS } from '../optional-features.js';
import { nodesOf, ROOT } from '../sources.js';

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
  const registry = join(folder, REGISTRY);
  writeFileSync(registry, withoutEntries(readFileSync(registry, 'utf8'), OPTIONAL_FEATURES));
  for (const path of SERVICE_LISTS) {
    const list = join(folder, path);
    writeFileSync(list, withoutImports(readFileSync(list, 'utf8'), OPTIONAL_FEATURES));
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

/** The registry without the entries of these features. An entry belongs to the feature whose modules it imports. */
function withoutEntries(text: string, features: readonly string[]): string {
  const source = ts.createSourceFile(REGISTRY, text, ts.ScriptTarget.Latest, true);
  const entries = nodesOf(source)
    .filter(ts.isArrayLiteralExpression)
    .flatMap(({ elements }) => [...elements])
    .filter((entry) => features.includes(featureOf(entry)));
  expect(entries.map(featureOf).sort()).toEqual([...features].sort());
  return entries.reduceRight((rest, entry) => {
    return rest.slice(0, entry.getFullStart()) + rest.slice(entry.end).replace(/^,/, '');
  }, text);
}

/** A list of routes or tools without what it imports from these features. */
function withoutImports(text: string, features: readonly string[]): string {
  const source = ts.createSourceFile(REGISTRY, text, ts.ScriptTarget.Latest, true);
  const imports = source.statements.filter(
    (statement) => ts.isImportDeclaration(statement) && features.includes(featureOf(statement)),
  );
  const names = imports.flatMap((statement) =>
    nodesOf(statement)
      .filter(ts.isImportSpecifier)
      .map(({ name }) => name.text),
  );
  const uses = nodesOf(source)
    .filter(ts.isArrayLiteralExpression)
    .flatMap(({ elements }) => [...elements])
    .filter((element) => names.some((name) => element.getText() === name || element.getText() === `...${name}`));
  expect(uses.length).toBe(names.length);
  return [...imports, ...uses]
    .sort((one, other) => other.pos - one.pos)
    .reduce((rest, { pos, end }) => rest.slice(0, pos) + rest.slice(end).replace(/^,/, ''), text);
}

function featureOf(entry: ts.Node): string {
  const path = nodesOf(entry).find(
    (node): node is ts.StringLiteral => ts.isStringLiteral(node) && /^\.\//.test(node.text),
  );
  return path?.text.split('/')[1] ?? '';
}

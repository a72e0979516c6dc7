// The sources without the folders of optional features, their entries in lists and their exports: they compile,
// what is left decides a step and has the other commands, and the suites of core, kernel, engine and stores pass.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { commit, git } from '../fixtures/contract-folder.js';
import { unapproved } from '../fixtures/unapproved.js';
import { exportsOfFeature, OPTIONAL_FEATURES, PUBLIC_ENTRIES, REGISTRY, SERVICE_LISTS } from '../optional-features.js';
import { filesIn, importsOf, LEFT_OUT, nodesOf, ROOT, targetOf, textOf } from '../sources.js';

/** The suites that have to pass without the optional features. */
const SUITES = /^test\/(?:core|engine|kernel|machines|stores)\/.*(?<!\.campaign)\.test\.ts$/;
/** Those of them that import an optional feature. */
const IMPORTING = [
  'test/core/contract/field-rules.test.ts',
  'test/core/ledger/verification/lying-store.test.ts',
  'test/core/policy/authorize-run.test.ts',
  'test/core/policy/files/check-policy.test.ts',
  'test/engine/cluster/cluster-simulation.test.ts',
  'test/engine/serial-histories.test.ts',
  'test/kernel/refusals.test.ts',
  'test/kernel/replay/tree-course.test.ts',
  'test/machines/contract-rules.test.ts',
  'test/machines/step.test.ts',
];
/** Those of them that need an optional feature. */
const WITH_FEATURES: readonly string[] = [
  ...IMPORTING,
  // It names a file of exports.
  'test/core/contract/entry-name.test.ts',
  // Sessions have schemas, entries and a table of states.
  'test/core/contract/schema-instances.test.ts',
  'test/core/contract/schemas.test.ts',
  'test/core/ledger/seal-entry.test.ts',
  'test/kernel/replay/machines-diff.test.ts',
  // Trees and policies load features.
  'test/kernel/loaded-features.test.ts',
  // Recorded trees have conditions.
  'test/kernel/replay/histories.test.ts',
  'test/kernel/replay/history-contents.test.ts',
];
/** The answers to options and calls that need a missing feature. */
const REFUSED: readonly string[] = [
  'USAGE: this installation has no feature for the option upstreams',
  'USAGE: this installation has no feature for the option hooks',
  'USAGE: telemetry: this installation has no feature that observes',
  'USAGE: identity: this installation has no feature that identifies callers',
  'USAGE: this installation has no feature with the part decisions',
];
/** The shipped policy, by which most suites decide, has approval rules. */
const NEEDED = 'approvals';
/** The sample needs no declarations, and to write them takes as long as the check. */
const WITHOUT_TYPES = ['--declaration', 'false', '--stripInternal', 'false'];
/** To compile takes half a minute and the suites some minutes, and both much longer on a busy machine. */
const MS_MAX = 1_200_000;

/**
 * Decides one step, and prints its outcome, why the inspector cannot explain it, how the options of missing features
 * are refused, the members that features would add, and the commands that are left.
 */
const SAMPLE = `
import { join } from 'node:path';
import { openTurnpike } from './build/compiled/src/index.js';
import { homeInspectorSource } from './build/compiled/src/interfaces/inspector/ledger-inspector-source.js';
import { turnpikeHttp } from './build/compiled/src/interfaces/http/index.js';
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
const unexplained = await homeInspectorSource(turnpike.ledger, null).why(1).catch(({ code }) => code);
const codeOf = async (work) => {
  try {
    await work();
    return 'accepted';
  } catch ({ code, message }) {
    return code + ': ' + message;
  }
};
const home = join(import.meta.dirname, 'refused');
const refused = [
  await codeOf(() => openTurnpike({ home, contract, upstreams: true })),
  await codeOf(() => openTurnpike({ home, contract, hooks: true })),
  await codeOf(() => openTurnpike({ home, contract, telemetry: {} })),
  await codeOf(() => turnpikeHttp({ turnpike, identity: {} })),
  await codeOf(() => turnpike.decide({})),
];
const added = ['sessions', 'hooks'].filter((name) => name in turnpike);
await turnpike.close();
console.log(JSON.stringify({ outcome, unexplained, refused, added, commands: COMMANDS.map(({ name }) => name) }));
`;

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'removed-features-'));
  for (const name of readdirSync(ROOT).filter((each) => !LEFT_OUT.includes(each)))
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const feature of OPTIONAL_FEATURES) rmSync(join(folder, 'src/features', feature), { recursive: true });
  for (const list of [REGISTRY, ...SERVICE_LISTS]) rewrite(list, withoutEntriesOf(OPTIONAL_FEATURES));
  for (const entry of PUBLIC_ENTRIES) rewrite(entry, withoutExports);
  writeFileSync(join(folder, 'sample.mjs'), SAMPLE);
  writeContract(join(folder, 'contract'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('every optional feature has an entry in the registry', () => {
  const registry = ts.createSourceFile(REGISTRY, textOf(REGISTRY), ts.ScriptTarget.Latest, true);
  const found = entriesIn(registry, OPTIONAL_FEATURES);
  const features = found.flatMap((node) => pathsIn(node).map(featureOf));
  expect(OPTIONAL_FEATURES.filter((feature) => !features.includes(feature))).toEqual([]);
});
/** The shipped policy without what needs a removed feature. */
function writeContract(contract: string): void {
  cpSync(join(ROOT, 'policies/contract/v1/policy'), join(contract, 'policy'), { recursive: true });
  const actions = join(contract, 'policy/actions.yaml');
  writeFileSync(actions, unapproved(readFileSync(actions, 'utf8')));
  git(contract, 'init', '-q');
  commit(contract, 'A policy without approvals');
}

const run = (args: readonly string[]) =>
  spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', timeout: MS_MAX });

test.each([
  ['sources', 'tsconfig.build.json', WITHOUT_TYPES],
  ['sources of the inspector page', 'src/interfaces/inspector/page/tsconfig.json', []],
])(
  'the %s without the optional features compile',
  (_, project, options) => {
    const { stdout, status } = run([join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', project, ...options]);
    expect(stdout).toBe('');
    expect(status).toBe(0);
  },
  MS_MAX,
);

test('what is left decides a step by the shipped policy without approvals, and has the other commands', () => {
  const { stdout, stderr, status } = run(['sample.mjs', join(folder, 'contract')]);
  expect(stderr).toBe('');
  expect(status).toBe(0);
  const { commands, ...decided } = JSON.parse(stdout) as { commands: readonly string[] };
  expect(decided).toEqual({ outcome: 'SUCCESS', unexplained: 'LEDGER_UNSUPPORTED', refused: REFUSED, added: [] });
  expect(commands).toContain('ledger verify');
  for (const removed of ['doctor', 'hook', 'session start']) expect(commands).not.toContain(removed);
});

test(
  'the suites of core, kernel, engine and stores pass, but those that test them with an optional feature',
  () => {
    putBack(NEEDED);
    const all = filesIn('test', /\.test\.ts$/).filter((path) => SUITES.test(path));
    const suites = all.filter((path) => !WITH_FEATURES.includes(path));
    expect(all.filter(isMissing)).toEqual(IMPORTING);
    const jest = [join(ROOT, 'node_modules/jest/bin/jest.js'), '--ci', '--maxWorkers=2'];
    // By default it is left in the folder of all tests.
    const cache = ['--cacheDirectory', join(folder, 'cache')];
    const { stderr, status } = run([...jest, ...cache, '--selectProjects', 'tests', '--runTestsByPath', ...suites]);
    expect(stderr.split('\n').filter((line) => line.startsWith('FAIL'))).toEqual([]);
    expect(stderr).toContain(`Test Suites: ${suites.length} passed`);
    expect(status).toBe(0);
  },
  MS_MAX,
);

const known = new Map<string, boolean>();

/** Whether a file of the copy is missing, or one that it imports. The registry imports features only when needed. */
function isMissing(path: string): boolean {
  const found = known.get(path);
  if (found !== undefined) return found;
  // A file that imports itself over others is decided by them.
  known.set(path, false);
  const missing =
    !existsSync(join(folder, path)) || (/\.tsx?$/.test(path) && importsOf(parse(path)).some(leadsAway(path)));
  known.set(path, missing);
  return missing;
}

const leadsAway = (from: string) => (name: string) => {
  const target = targetOf(from, name);
  return target !== null && isMissing(target);
};

const parse = (path: string): ts.SourceFile =>
  ts.createSourceFile(path, readFileSync(join(folder, path), 'utf8'), ts.ScriptTarget.Latest, true);

function rewrite(path: string, without: (source: ts.SourceFile) => string): void {
  writeFileSync(join(folder, path), without(parse(path)));
}

/** A public entry without its exports of optional features. */
const withoutExports = (source: ts.SourceFile): string =>
  withoutNodes(
    source,
    OPTIONAL_FEATURES.flatMap((feature) => exportsOfFeature(source, feature)),
  );

/** Puts the folder of a feature and its entry in the registry back. */
function putBack(feature: string): void {
  const path = join('src/features', feature);
  cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  cpSync(join(ROOT, REGISTRY), join(folder, REGISTRY));
  rewrite(REGISTRY, withoutEntriesOf(OPTIONAL_FEATURES.filter((name) => name !== feature)));
}

/** A list of features without what it imports of these features, and without their elements of its arrays. */
const withoutEntriesOf =
  (features: readonly string[]) =>
  (source: ts.SourceFile): string =>
    withoutNodes(source, entriesIn(source, features));

/** The text without these nodes and the commas after them. */
const withoutNodes = (source: ts.SourceFile, nodes: readonly ts.Node[]): string =>
  [...nodes]
    .sort((one, other) => one.pos - other.pos)
    .reduceRight((rest, { pos, end }) => rest.slice(0, pos) + rest.slice(end).replace(/^,/, ''), source.text);

/** The imports of these features, and the elements of arrays that use these imports or load such a feature. */
function entriesIn(source: ts.SourceFile, features: readonly string[]): readonly ts.Node[] {
  const isOf = (node: ts.Node): boolean => pathsIn(node).some((path) => features.includes(featureOf(path)));
  const imports = source.statements.filter(ts.isImportDeclaration).filter(isOf);
  const names = imports.flatMap(nodesOf).flatMap((node) => (ts.isImportSpecifier(node) ? [node.name.text] : []));
  const elements = nodesOf(source)
    .filter(ts.isArrayLiteralExpression)
    .flatMap(({ elements }) => [...elements])
    .filter((element) => isOf(element) || nodesOf(element).some((node) => isNamed(node, names)));
  return [...imports, ...elements];
}

const isNamed = (node: ts.Node, names: readonly string[]): boolean =>
  ts.isIdentifier(node) && names.includes(node.text);

const pathsIn = (node: ts.Node): readonly string[] =>
  nodesOf(node).flatMap((each) => (ts.isStringLiteral(each) && each.text.startsWith('./') ? [each.text] : []));

const featureOf = (path: string): string => path.split('/')[1] ?? '';

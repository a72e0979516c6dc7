// What each command reports that gives a verdict, for each part that an installation or a ledger may lack: nothing that
// could not be checked is altered, and nothing is green that was not checked. The commands are those of an
// installation, in a process of its own, so that a missing package is missing for the module resolution of Node.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { FLAGS } from '../../../machines/flags.js';
import type { LedgerInfo } from '../../../src/core/contract/inspection/inspection.js';
import type { InlineData } from '../../../src/interfaces/inspector/render-one-file.js';
import { bundled } from '../../fixtures/bundled.js';
import { ROOT } from '../../root.js';
import { finish, read, tempFolder, turnpike, write } from './fake-io.js';

const ENGINE = '@cedar-policy/cedar-wasm';
const CONDITIONS = `@id("no_secrets")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.args.path like "/sandbox/secret*" };
`;
const ELEMENT = '<script type="application/json" id="turnpike-data">';

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The commands that give a verdict. RUN stands for a run of the ledger, and OUT for a name that is free. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'ledger verify': ['ledger', 'verify'],
  'ledger verify FILE': ['ledger', 'verify', 'bundle', '--key', 'key'],
  'ledger verify FILE without a key': ['ledger', 'verify', 'bundle'],
  replay: ['replay'],
  'replay RUN': ['replay', 'RUN'],
  'replay FILE': ['replay', 'bundle', '--key', 'key'],
  'replay --until': ['replay', '--until', 'last'],
  'replay FILE --until': ['replay', 'bundle', '--key', 'key', '--until', 'last'],
  'inspect --html': ['inspect', 'bundle', '--key', 'key', '--html', 'OUT.html'],
  'policy explain': ['policy', 'explain', 'RUN:DENIED'],
  'policy simulate': ['policy', 'simulate'],
  'policy simulate --fail-on': ['policy', 'simulate', '--fail-on', 'any'],
  'policy coverage': ['policy', 'coverage'],
  'policy check': ['policy', 'check'],
  'machines diff': ['machines', 'diff', 'RUN', 'RUN'],
  'machines diff current': ['machines', 'diff', 'current', 'current'],
  'ledger check-proof': ['ledger', 'check-proof', 'proof', '--key', 'key'],
  'export verify': ['export', 'verify', '.turnpike/exports/bag', '--key', 'key'],
  doctor: ['doctor'],
  backup: ['backup', 'OUT', '--with-keys'],
  restore: ['restore', 'backup', '--home', 'OUT', '--no-erasures', '--actor', 'anna'],
};
/** Those that fold the run trees of a ledger. */
const FOLDING = [
  ...['ledger verify', 'ledger verify FILE', 'ledger verify FILE without a key', 'replay', 'replay RUN', 'replay FILE'],
  ...[
    'replay --until',
    'replay FILE --until',
    'inspect --html',
    'policy explain',
    'policy simulate',
    'policy simulate --fail-on',
    'policy coverage',
  ],
  ...['backup', 'restore'],
];
const BUNDLE = Object.keys(COMMANDS).filter((name) => name.includes('FILE') || name === 'inspect --html');

/** Those that read the home. */
const HOME = [
  ...[
    'ledger verify',
    'replay',
    'replay RUN',
    'replay --until',
    'policy explain',
    'policy simulate',
    'policy simulate --fail-on',
    'policy coverage',
  ],
  ...['machines diff', 'doctor', 'backup'],
];
const SIMULATIONS = ['policy simulate', 'policy simulate --fail-on'];
/** Those that need the entries before the first one of the home. */
const ARCHIVED = [
  ...['ledger verify', 'replay', 'replay RUN', 'policy explain', ...SIMULATIONS, 'policy coverage'],
  ...['machines diff', 'backup'],
];
const ENGINE_READERS = [...FOLDING, 'policy check', 'machines diff current', 'doctor'];
const without = (names: readonly string[], word: string): readonly string[] =>
  names.filter((name) => !name.includes(word));

let folder: string;
/** A folder with the home, the bundle and all that the commands name. */
const made = (name: string): string => join(folder, name);

/** Records two runs, with conditions: one writes a file, the other is denied. */
async function recordIn(name: string): Promise<void> {
  const home = made(name);
  mkdirSync(home);
  const run = async (...argv: string[]): Promise<Result> => {
    const found = await turnpike(home, argv, { stdin: '' });
    if (found.code !== 0) throw new Error(`${argv.join(' ')}: ${found.stdout}${found.stderr}`);
    return found;
  };
  await run('init');
  writeFileSync(join(home, 'contract/policy/conditions.cedar'), CONDITIONS);
  await run('policy', 'pin');
  for (const path of ['/sandbox/a.txt', '/sandbox/secret.txt'])
    await turnpike(home, ['run', '-'], { stdin: [write(path, 'a'), read(path), finish()].join('\n') });
  const why = ['--role', 'APPROVER', '--reason', 'a check'];
  await turnpike(home, ['export', '--case', 'case-local', '--actor', 'anna', ...why, '--to', 'bag']);
  const { stdout } = await run('approvals');
  const [request = ''] = stdout.split('\n');
  await run('approve', ...request.split(' '), '--actor', 'bert', '--role', 'APPROVER');
  recorded.set(name, await findDenial(home));
  await complete(home);
}

/** The run tree with the denial, and where in it that is. */
interface Denial {
  readonly root: string;
  readonly denied: number;
}
const recorded = new Map<string, Denial>();

async function findDenial(home: string): Promise<Denial> {
  await turnpike(home, ['ledger', 'export', 'entries', '--entries']);
  const entries = readFileSync(join(home, 'entries'), 'utf8').split('\n');
  const found = entries.find((each) => each.includes('"rule_id":"no_secrets"')) ?? '{}';
  const { tree_id: root = '', seq: denied = -1 } = JSON.parse(found) as { tree_id?: string; seq?: number };
  return { root, denied };
}

/** What the commands name, from the home as it is now. */
async function complete(home: string): Promise<void> {
  for (const name of ['bundle', 'proof', 'backup']) rmSync(join(home, name), { recursive: true, force: true });
  cpSync(join(home, '.turnpike/keys/ledger.vkey'), join(home, 'key'));
  await turnpike(home, ['ledger', 'export', 'bundle']);
  const last = (await turnpike(home, ['ledger', 'verify', '--json'])).stdout;
  const { entries, archived = 0 } = JSON.parse(last) as { entries: number; archived?: number };
  await turnpike(home, ['ledger', 'prove', `@${archived + entries - 1}`, '--out', 'proof']);
  await turnpike(home, ['backup', 'backup', '--with-keys', '--no-replay']);
}

/** An installation of the current sources, without one package, or with another one in its place. */
async function install(name: string, without: string | null, inPlace?: string): Promise<void> {
  const at = made(name);
  await bundled(at, { 'dist/src/interfaces/cli/program': 'test/interfaces/cli/reading-program.ts' });
  cpSync(join(ROOT, 'dist/inspector'), join(at, 'dist/inspector'), { recursive: true });
  const modules = join(at, 'node_modules');
  rmSync(modules);
  mkdirSync(modules);
  for (const entry of readdirSync(join(ROOT, 'node_modules'))) {
    if (without?.split('/')[0] === entry) continue;
    symlinkSync(join(ROOT, 'node_modules', entry), join(modules, entry));
  }
  if (inPlace === undefined) return;
  const own = join(modules, without ?? '');
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, 'package.json'), JSON.stringify({ exports: { './nodejs': './engine.cjs' } }));
  writeFileSync(join(own, 'engine.cjs'), inPlace);
}

/** Runs every command in a copy of the folder, with one installation. */
async function verdictsOf(installation: string, home: string): Promise<ReadonlyMap<string, Result>> {
  const cwd = made(`${installation} ${home}`);
  cpSync(made(home), cwd, { recursive: true });
  const { root, denied } = recorded.get(home) ?? recorded.get('intact') ?? { root: '', denied: 0 };
  const names = Object.entries(COMMANDS);
  const calls = names.map(([name, argv]) =>
    argv.map((word) =>
      word
        .replace('RUN:DENIED', `${root}#${denied}`)
        .replace('RUN', root)
        .replace('OUT', `out-${name.replaceAll(' ', '-')}`),
    ),
  );
  const child = spawn(process.execPath, [join(made(installation), 'dist/src/interfaces/cli/program.js')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify({ cwd, calls }));
  const [out] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const results = JSON.parse(out) as readonly Result[];
  return new Map(names.map(([name], i) => [name, results[i] ?? { code: -1, stdout: '', stderr: 'it did not run' }]));
}

/** What the page says that a command has written. */
function pageInfo(installation: string, home: string): LedgerInfo {
  const html = readFileSync(join(made(`${installation} ${home}`), 'out-inspect---html.html'), 'utf8');
  const [, rest = ''] = html.split(ELEMENT);
  return (JSON.parse(rest.slice(0, rest.indexOf('</script>'))) as InlineData).info;
}

beforeAll(async () => {
  folder = tempFolder('verdicts');
  await Promise.all([
    install('whole', null),
    install('no engine', ENGINE),
    install(
      'another engine',
      ENGINE,
      `module.exports = { ...require(${JSON.stringify(join(ROOT, 'node_modules', ENGINE, 'nodejs/cedar_wasm.js'))}), getCedarLangVersion: () => '9.9.9' };`,
    ),
    install('no driver', 'pg'),
  ]);
  await recordIn('intact');
  cpSync(made('intact'), made('withheld'), { recursive: true });
  const lanes = join(made('withheld'), 'contract/policy/lanes.yaml');
  writeFileSync(lanes, readFileSync(lanes, 'utf8').replace(/ {2}- lane_id: .*\n/, '$&    withholds_content: true\n'));
  expect(await turnpike(made('withheld'), ['policy', 'pin'])).toMatchObject({ code: 0 });
  await turnpike(made('withheld'), ['run', '-'], { stdin: [write('/sandbox/b.txt', 'b'), finish()].join('\n') });
  await complete(made('withheld'));
  const flags = FLAGS as { number: number; what: string }[];
  flags.push({ number: 9_999, what: 'A flag of a later version.' });
  await recordIn('later').finally(() => flags.pop());
  cpSync(made('intact'), made('erased'), { recursive: true });
  expect(await turnpike(made('erased'), ['ledger', 'erase', 'case-local', '--actor', 'anna', '--yes'])).toMatchObject({
    code: 0,
  });
  await complete(made('erased'));
  cpSync(made('intact'), made('archived'), { recursive: true });
  expect(await turnpike(made('archived'), ['ledger', 'archive', 'archive'])).toMatchObject({ code: 0 });
  cpSync(made('archived'), made('archived in part'), { recursive: true });
  await turnpike(made('archived in part'), ['run', '-'], {
    stdin: [write('/sandbox/b.txt', 'b'), finish()].join('\n'),
  });
  await complete(made('archived in part'));
  cpSync(made('intact'), made('wider'), { recursive: true });
  await turnpike(made('wider'), ['run', '-'], { stdin: [write('/sandbox/b.csv', 'b'), finish()].join('\n') });
  const actions = join(made('wider'), 'contract/policy/actions.yaml');
  const narrow = readFileSync(actions, 'utf8');
  writeFileSync(actions, narrow.replace('path: [.txt, .md]', 'path: [.txt, .md, .csv]'));
  expect(readFileSync(actions, 'utf8')).not.toBe(narrow);
  expect(await turnpike(made('wider'), ['policy', 'pin'])).toMatchObject({ code: 0 });
  await complete(made('wider'));
  cpSync(made('intact'), made('in a database'), { recursive: true });
  const stored = {
    ...{
      version: 1,
      url: 'postgres://127.0.0.1:1/none',
      schema: 'turnpike',
      ledger_id: 'ledger_1',
      volume_id: 'volume_1',
    },
    ...{ keys: join(made('in a database'), '.turnpike/keys'), sandbox: null },
  };
  writeFileSync(join(made('in a database'), '.turnpike/store.json'), JSON.stringify(stored));
  cpSync(made('intact'), made('changed'), { recursive: true });
  const bundle = join(made('changed'), 'bundle');
  writeFileSync(bundle, readFileSync(bundle, 'utf8').replace('no_secrets', 'no_secret_'));
}, 300_000);

type Case = readonly [
  what: string,
  installation: string,
  home: string,
  code: number,
  commands: readonly string[],
  sentence: RegExp,
];
const CASES: readonly Case[] = [
  ['everything', 'whole', 'intact', 4, [], /^/],
  ['a missing engine of conditions', 'no engine', 'intact', 4, ENGINE_READERS, /install Turnpike again/],
  ['an engine of another language', 'another engine', 'intact', 4, FOLDING, /version "4\.\d" of Cedar's language/],
  ['the machines of a later version', 'whole', 'later', 4, FOLDING, /install the version that opened it/],
  ['content of an erased case', 'whole', 'erased', 4, without(FOLDING, '--until'), /erased|not available/],
  ['content that a lane withholds', 'whole', 'withheld', 4, without(BUNDLE, '--until'), /withh/],
  ['an archived tree', 'whole', 'archived', 4, ARCHIVED, /archive/],
  [
    'a tree after archived ones',
    'whole',
    'archived in part',
    4,
    [...ARCHIVED, ...BUNDLE, 'restore'].filter((name) => !name.includes('--until')),
    /archive/,
  ],
  ['a decision that lacks facts', 'whole', 'wider', 4, SIMULATIONS, /1 undecidable/],
  ['a missing driver of the database', 'no driver', 'in a database', 4, HOME, /install it next to this package/],
  ['a changed file', 'whole', 'changed', 1, BUNDLE, /LEDGER_TAMPERED|NOT VERIFIED/],
];

describe.each(CASES)('%s', (_what, installation, home, other, names, sentence) => {
  let found: ReadonlyMap<string, Result>;
  beforeAll(async () => {
    found = await verdictsOf(installation, home);
  }, 120_000);

  test.each(Object.keys(COMMANDS))('%s', (name) => {
    const { code, stdout, stderr } = found.get(name) as Result;
    const isOther = names.includes(name);
    const said = `${stdout}${stderr}`;
    expect({ code, said }).toEqual({ code: isOther ? other : 0, said });
    if (isOther) expect(said).toMatch(sentence);
    if (isOther) expect(stdout).not.toMatch(/^ok:/m);
    if (code !== 1) expect(said).not.toMatch(/altered|TAMPERED|NOT VERIFIED|differ/);
  });

  test('the page says the same as the command', () => {
    const isOther = names.includes('inspect --html');
    const verdict = { verdict: isOther ? 'by_hash_alone' : 'replayed' };
    const notes = isOther ? [expect.stringMatching(sentence)] : [];
    const { replayed, flaw } = pageInfo(installation, home);
    if (other === 1) expect([replayed, flaw]).toEqual([undefined, expect.any(String)]);
    else expect([replayed, flaw]).toEqual([{ ...verdict, notes }, undefined]);
  });
});

// Every command that reads a ledger loads the features that its policies need by itself: each call runs in a process of
// its own, on a home whose policy has conditions, counters, call rules and decision points. The home has a session as
// well, a feature that records entries.

import { beforeAll, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtCommand } from '../../fixtures/build.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { finish, jsonLines, write } from '../../interfaces/cli/fake-io.js';
import { CALLS } from '../../interfaces/cli/reading-calls.js';
import { PLAIN, putSpec } from '../../interfaces/cli/session-fixture.js';
import { proposal } from '../../fixtures/tree.js';

const CONDITIONS = `@id("no_deletes")
forbid (principal, action == Action::"DELETE_FILE", resource)
unless { context.counters.writes < 0 };
@id("few_writes")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.counters.writes >= 5 };
`;
const COUNTERS = `version: v1
contract_version: v1
last_updated: 2026-01-05
counters:
  - { name: writes, over: case, counts: [{ action: WRITE_FILE }] }
`;

const CALL_RULES = '    calls: [{ id: reads, tools: [sandbox.read_file], decision: allow }]\n    scope:';
/** No step of this home asks it. */
const DECISION_POINTS = `
decision_points:
  - { name: fraud, protocol: opa, url: 'https://a.example', actions: [RENAME_FILE], timeout_ms: 50 }
`;

const MS_MAX = 300_000;
const folder = diskFolder('reading-processes');
let program = '';
let tree = '';
let session = '';

/** Runs the built command in a process of its own. */
function runHere(argv: readonly string[], input = ''): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...argv], {
    cwd: folder,
    input,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
    timeout: 60_000,
  });
  return { code: status, said: `${stdout}${stderr}` };
}

function idOf(call: readonly string[], kind: string): string {
  const runs = jsonLines<{ run_id: string; run_kind?: string }>(runHere([...call, '--json']).said);
  return runs.find(({ run_kind }) => run_kind === kind)?.run_id ?? '';
}

beforeAll(async () => {
  program = await builtCommand(diskFolder('built'));
  expect(runHere(['init', '--template', 'documents'])).toMatchObject({ code: 0 });
  writeFileSync(join(folder, 'contract/policy/conditions.cedar'), CONDITIONS);
  writeFileSync(join(folder, 'contract/policy/counters.yaml'), COUNTERS);
  const lanes = join(folder, 'contract/policy/lanes.yaml');
  writeFileSync(lanes, readFileSync(lanes, 'utf8').replace('    scope:', CALL_RULES));
  appendFileSync(join(folder, 'contract/policy/actions.yaml'), DECISION_POINTS);
  expect(runHere(['policy', 'pin'])).toMatchObject({ code: 0 });
  const remove = JSON.stringify(
    proposal('DELETE_FILE', { path: '/sandbox/a.md' }, { id: 'e2a4a0c4-0000-4000-8000-000000000001' }),
  );
  const { code, said } = runHere(['run', '-'], [write('/sandbox/a.md', 'x'), remove, finish()].join('\n'));
  expect([code, said]).toEqual([0, expect.stringContaining('A condition of the policy does not allow this')]);
  tree = idOf(['runs'], 'orchestrator');
  putSpec(folder, PLAIN);
  expect(runHere(['session', 'start', 'plain.json'])).toMatchObject({ code: 0 });
  session = /ses_\w+/.exec(runHere(['session', 'list', '--json']).said)?.[0] ?? '';
}, MS_MAX);

test('the home has a run and a session', () => {
  expect([tree, session]).toEqual([expect.stringMatching(/^run_/), expect.stringMatching(/^ses_/)]);
});

const OTHERS = [
  ['policy', 'explain', 'RUN#13'],
  ['policy', 'explain', 'SESSION#0'],
  ['session', 'replay', 'SESSION'],
  ['policy', 'check'],
];
/** A page that is served until it is stopped is tested elsewhere. */
const ROWS = [...Object.values(CALLS).flat(), ...OTHERS]
  .filter(([first]) => first !== 'inspect')
  .map((call) => [call.join(' '), call] as const);

test('a script that only copies the home verifies the copy', () => {
  const entry = (path: string): string => JSON.stringify(join(program, '../../..', path));
  const script = `import { resolveLocation } from ${entry('index.js')};
import { copyHome } from ${entry('features/backup/index.js')};
const report = await copyHome({ from: resolveLocation('.turnpike'), to: resolveLocation('copy'), keepSource: true });
console.log(report.verdict.verdict ?? JSON.stringify(report.verdict));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([status, stderr, stdout]).toEqual([0, '', 'verified\n']);
});

let outs = 0;

test.each(ROWS)('turnpike %s loads what it needs', (_name, call) => {
  const argv = call.map((part) =>
    part
      .replace('RUN', tree)
      .replace('SESSION', session)
      .replace('OUT', `out-${(outs += 1)}`),
  );
  const { said } = runHere(argv);
  expect(said).not.toMatch(/UNSUPPORTED|does not have (?:it|the feature)/);
});

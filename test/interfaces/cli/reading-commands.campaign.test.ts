// Commands that only read change nothing: no byte, no file and no time of the home directory, after a clean end of the
// last process and after its SIGKILL, on a writable and on a read-only file system.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readBuiltPage } from '../../../src/interfaces/inspector/page-folder.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { mountNamespace } from '../../crash/mount-namespace.js';
import { bundled } from '../../fixtures/bundled.js';
import { folderState } from '../../fixtures/folder-state.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { ROOT } from '../../root.js';
import { finish, jsonLines, linesOf, think, turnpike, write, type Said } from './fake-io.js';
import { CALLS, isReading } from './reading-calls.js';
import type { ReadingCalls, ReadingResult } from './reading-program.js';
import { PLAIN, putSpec } from './session-fixture.js';

const STATES = ['closed', 'killed'] as const;
type State = (typeof STATES)[number];

const PROGRAMS = {
  'build/test/interfaces/cli/main': 'src/interfaces/cli/main.ts',
  'build/test/interfaces/cli/read': 'test/interfaces/cli/reading-program.ts',
};
const namespace = mountNamespace();
const root = diskFolder('reading');
const at = (...path: string[]): string => join(root, ...path);
let run = '';
let outs = 0;

/** The arguments of a call on a home. */
const argvOf = (call: readonly string[], home: string): readonly string[] => [
  ...call.map((part) => part.replace('RUN', run).replace('OUT', `out-${(outs += 1)}`)),
  '--home',
  home,
];

beforeAll(async () => {
  mkdirSync(at('work'));
  const [made] = await Promise.all([turnpike(at('work'), ['init', '--home', at('closed')]), bundled(root, PROGRAMS)]);
  expect(made).toMatchObject({ code: 0 });
  // The programs look for the page where it is relative to the built command.
  if (readBuiltPage() !== null) symlinkSync(join(ROOT, 'dist/inspector'), at('build/inspector'));
  const home = ['--home', at('closed')];
  const stdin = [think(), write('/sandbox/a.md', 'first'), finish()].join('\n');
  expect(await turnpike(at('work'), ['run', '-', ...home], { stdin })).toMatchObject({ code: 0 });
  putSpec(at('work'), PLAIN);
  expect(await turnpike(at('work'), ['session', 'start', 'plain.json', ...home])).toMatchObject({ code: 0 });
  const token = ['token', '--actor', 'anna', '--role', 'reader', '--right', 'observe'];
  expect(await turnpike(at('work'), [...token, ...home])).toMatchObject({ code: 0 });
  const deny = ['policy', 'deny', '--action', 'DELETE_FILE', '--reason', 'not now'];
  expect(await turnpike(at('work'), [...deny, ...home])).toMatchObject({ code: 0 });
  run =
    jsonLines<{ run_id: string }>((await turnpike(at('work'), ['runs', '--json', ...home])).stdout)[0]?.run_id ?? '';
  cpSync(at('closed'), at('killed'), { recursive: true, preserveTimestamps: true });
  await killInTheMiddle(at('killed'));
}, 120_000);

/** Ends a process with SIGKILL when it has answered two proposals and waits for the next one. */
async function killInTheMiddle(home: string): Promise<void> {
  const child = spawn(process.execPath, [at('build/test/interfaces/cli/main.js'), 'run', '-', '--home', home], {
    cwd: at('work'),
  });
  child.stdin.write(`${write('/sandbox/b.md', 'second')}\n${write('/sandbox/c.md', 'third')}\n`);
  let stdout = '';
  while (linesOf(stdout).length < 2) stdout += String((await once(child.stdout, 'data'))[0]);
  child.kill('SIGKILL');
  await once(child, 'close');
}

test('every command with a reading form is called here', () => {
  expect(Object.keys(CALLS).sort()).toEqual(
    COMMANDS.filter(isReading)
      .map(({ name }) => name)
      .sort(),
  );
});

test('the process that was killed has left commits that only the WAL has', () => {
  expect(statSync(at('killed/ledger.db-wal')).size).toBeGreaterThan(0);
  expect(readdirSync(at('closed')).filter((name) => name.startsWith('ledger.db'))).toEqual([
    'ledger.db',
    'ledger.db.lock',
  ]);
});

const ROWS = STATES.flatMap((state) => Object.values(CALLS).flatMap((calls) => calls.map((call) => ({ state, call }))));
const nameOf = ({ state, call }: (typeof ROWS)[number]): string => `${call.join(' ')} on a home that was ${state}`;
/** 2: this home is not in a database; and where the sources were not built, there is no page to serve. */
const codeOf = ([first]: readonly string[]): number =>
  first === 'cluster' || (first === 'inspect' && readBuiltPage() === null) ? 2 : 0;

/** Runs a call in this process. */
const callHere = (call: readonly string[], home: string): Promise<Said> =>
  turnpike(at('work'), argvOf(call, home), { stop: AbortSignal.abort() });

describe('on a writable file system', () => {
  test.each(ROWS.map((row) => [nameOf(row), row] as const))('%s changes nothing', async (_name, { state, call }) => {
    const before = folderState(at(state));
    const said = await callHere(call, at(state));
    expect({ ...said, state: folderState(at(state)) }).toMatchObject({ code: codeOf(call), log: [], state: before });
  });

  test('no copy is left behind', () => {
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('turnpike-read-'))).toEqual([]);
  });

  test('shows every proposal that was answered before the SIGKILL', async () => {
    const { stdout } = await callHere(['runs', '--json'], at('killed'));
    const records = jsonLines<{ run_kind: string; status: string }>(stdout);
    const running = records.filter(({ status }) => status === 'running').map(({ run_kind }) => run_kind);
    expect(running).toContain('agent');
    expect(records.filter(({ run_kind }) => run_kind === 'db_write')).toHaveLength(3);
  });
});

test('without URIs of SQLite, a reader copies the file and shows the same', () => {
  const call = argvOf(['runs', '--json', '--all'], at('closed'));
  const before = folderState(at('closed'));
  const { stdout } = spawnSync(process.execPath, [at('build/test/interfaces/cli/read.js')], {
    input: JSON.stringify({ cwd: at('work'), calls: [call] } satisfies ReadingCalls),
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  expect(JSON.parse(stdout)).toMatchObject([{ code: 0, stdout: expect.stringContaining(run) }]);
  expect(folderState(at('closed'))).toEqual(before);
});

(namespace === null ? describe.skip : describe)('on a read-only mount', () => {
  const results = new Map<State, readonly ReadingResult[]>();
  beforeAll(() => {
    mkdirSync(at('mount'));
    for (const state of STATES) results.set(state, callOnMount(state));
  }, 120_000);

  /** Runs all calls in one process that sees the home only through a read-only mount. */
  function callOnMount(state: State, given = ROWS.filter((row) => row.state === state).map(({ call }) => call)) {
    const calls = given.map((call) => argvOf(call, at('mount')));
    const script = 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && ! touch "$2/x" 2>&- && exec node "$3"';
    const argv = ['sh', '-c', script, 'sh', at(state), at('mount'), at('build/test/interfaces/cli/read.js')];
    const child = spawnSync('unshare', [...(namespace ?? []), ...argv], {
      input: JSON.stringify({ cwd: at('work'), calls } satisfies ReadingCalls),
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], SQLITE_USE_URI: '1' },
      timeout: 100_000,
      maxBuffer: 67_108_864,
    });
    if (child.status !== 0) throw new Error(`${child.stdout}${child.stderr}`);
    return JSON.parse(child.stdout) as ReadingResult[];
  }

  test.each(ROWS.map((row) => [nameOf(row), row] as const))('%s works', (_name, row) => {
    const place = ROWS.filter(({ state }) => state === row.state).indexOf(row);
    expect(results.get(row.state)?.[place]).toMatchObject({ code: codeOf(row.call) });
  });

  test('a command that writes says why it cannot', () => {
    const rotate = ['keys', 'rotate', '--signing', '--actor', 'otto operator', '--role', 'operator'];
    expect(callOnMount('closed', [rotate])).toMatchObject([
      { code: 3, stderr: expect.stringContaining('ledger.db is on a read-only file system: only commands that read') },
    ]);
  });

  test.each(STATES)('a home that was %s shows the same there', async (state) => {
    const call = ['runs', '--json', '--all'];
    const place = ROWS.filter((row) => row.state === state).findIndex((row) => row.call.join() === call.join());
    expect(results.get(state)?.[place]?.stdout).toBe((await callHere(call, at(state))).stdout);
  });
});

// Every command is in one of two tables: it shows how far it is on a terminal, or there is a reason why not. The clock
// of these tests runs so fast that every command seems to take long.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readBuiltPage, readBuiltTemplate } from '../../../src/interfaces/inspector/page-folder.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { sized } from '../../fixtures/campaign.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { fastClock, finish, jsonLines, put, think, turnpike, write, type Said, type World } from './fake-io.js';
import { PLAIN, putSpec } from './session-fixture.js';
import { terminalScreen } from './terminal-screen.js';

/** A call, and what its bar says. RUN stands for a run of the home, OUT for a name that is free. */
interface Row {
  readonly call: readonly string[];
  readonly says: readonly RegExp[];
  /** What it prints differs from call to call, in more than the times. */
  readonly differs?: true;
  /** Its call takes the same way as that of another row, or long: only the campaign makes it. */
  readonly isRare?: true;
  /** The page was not built. */
  readonly unavailable?: boolean;
}

const READING = /reading the ledger: \d+ of \d+ entries, \d+ %/;
const LISTING = /reading the ledger: \d+ entries, /;
const OPENING = /opening the home directory: \d+ s/;
/** A bundle is authenticated, indexed, and then read as a log. */
const BUNDLE = [
  /hashing the file: \d+ s/,
  /reading bundle: \d+\.\d of \d+\.\d MiB/,
  /reading bundle: \d+ of \d+ entries/,
];
const PERSON = ['--actor', 'anna', '--role', 'CASE_OWNER'];

/** A command about a session finds it by reading the ledger. */
const session = (name: string, ...operands: string[]): Row => ({
  call: ['session', name, ...operands],
  says: [/reading the ledger: /],
  differs: true,
  ...(name === 'next' || name === 'status' ? {} : { isRare: true }),
});

const DRAWS: Readonly<Record<string, Row | readonly Row[]>> = {
  runs: { call: ['runs'], says: [LISTING] },
  'runs report': { call: ['runs', 'report', 'RUN', '--outcome', 'done'], says: [OPENING], differs: true },
  'runs resolve': { call: ['runs', 'resolve', 'RUN', ...PERSON, '--outcome', 'done'], says: [OPENING], differs: true },
  run: { call: ['run', '-'], says: [OPENING], differs: true },
  decide: { call: ['decide', 'evaluation.json', '--role', 'CASE_OWNER'], says: [OPENING], differs: true },
  step: { call: ['step', '-'], says: [OPENING], differs: true, isRare: true },
  promote: {
    call: ['promote', ...PERSON, '--case', 'case-0001', '--ticket', 'T-1', '--target', 'notes', '--record', '{}'],
    says: [OPENING, /promoting: /],
    isRare: true,
    differs: true,
  },
  export: {
    call: ['export', ...PERSON, '--case', 'case-0001', '--reason', 'For a review.', '--to', 'OUT'],
    says: [OPENING, /exporting: /],
    differs: true,
  },
  'export verify': {
    call: ['export', 'verify', 'bag'],
    says: [/reading the bag: \d+\.\d of \d+\.\d MiB, \d+ %/],
  },
  approvals: { call: ['approvals'], says: [/reading the ledger: /] },
  approve: { call: ['approve', 'RUN', 'a'.repeat(64), ...PERSON], says: [OPENING], differs: true },
  'session start': { call: ['session', 'start', 'plain.json'], says: [OPENING], differs: true },
  'session next': session('next'),
  'session report': session('report', 'plain.json'),
  'session prepare': session('prepare'),
  'session verify': session('verify'),
  'session status': session('status'),
  'session list': session('list'),
  'session packets': session('packets'),
  'session replay': session('replay'),
  'session pause': session('pause'),
  'session resume': session('resume'),
  'session heartbeat': session('heartbeat'),
  'session end': session('end', '--reason', 'testing'),
  'session review': session('review'),
  'session ack': session('ack', 'att_1', 'pass'),
  'session waive': session('waive', 'first', '--reason', 'testing'),
  'session rebase': session('rebase', 'plain.json'),
  'policy simulate': { call: ['policy', 'simulate'], says: [READING] },
  'policy coverage': { call: ['policy', 'coverage'], says: [READING] },
  'policy explain': { call: ['policy', 'explain', 'RUN#1'], says: [READING] },
  replay: [
    { call: ['replay'], says: [READING] },
    { call: ['replay', 'RUN'], says: [LISTING] },
    { call: ['replay', '--until', 'last'], says: [READING] },
    {
      call: ['replay', 'bundle'],
      says: BUNDLE,
    },
  ],
  'ledger verify': [
    { call: ['ledger', 'verify'], says: [READING] },
    { call: ['ledger', 'verify', '--no-replay'], says: [READING] },
    {
      call: ['ledger', 'verify', 'bundle'],
      says: BUNDLE,
    },
  ],
  'ledger checkpoint': { call: ['ledger', 'checkpoint'], says: [/reading the ledger: /] },
  'ledger prove': { call: ['ledger', 'prove', '@0'], says: [READING] },
  'ledger export': [
    { call: ['ledger', 'export', 'OUT'], says: [READING], differs: true },
    { call: ['ledger', 'export', 'OUT', '--entries'], says: [READING], differs: true },
  ],
  'ledger erase': {
    call: ['ledger', 'erase', 'case-0001', '--actor', 'anna', '--yes'],
    says: [OPENING, /erasing: /],
    differs: true,
  },
  'ledger archive': {
    call: ['ledger', 'archive', 'OUT'],
    says: [
      /looking for the boundary: \d+ of \d+ entries/,
      /writing the archive: \d+ of \d+ entries/,
      /verifying the archive: \d+ of \d+ entries/,
    ],
    differs: true,
  },
  'machines diff': { call: ['machines', 'diff', 'RUN', 'current'], says: [/reading the ledger: /] },
  inspect: [
    { call: ['inspect', '--port', '0'], says: [/reading the ledger: /], differs: true, isRare: true },
    {
      call: ['inspect', 'bundle', '--html', 'OUT'],
      says: [
        /reading the bundle: \d+\.\d of \d+\.\d MiB/,
        /listing entries: \d+ of \d+ entries/,
        /reading entries: \d+ of \d+ entries/,
        /reading runs: \d+ of \d+ runs/,
        /explaining decisions: \d+ of \d+ trees/,
        /reading content: \d+ of \d+ entries/,
      ],
      differs: true,
      isRare: true,
      unavailable: readBuiltTemplate() === null,
    },
  ],
  serve: {
    call: ['serve', '--port', '0'],
    says: [OPENING],
    differs: true,
    isRare: true,
    unavailable: readBuiltPage() === null,
  },
  'keys rotate': {
    call: ['keys', 'rotate', '--cases', ...PERSON],
    says: [OPENING, /encrypting contents again: \d+ of \d+ contents/],
    differs: true,
    isRare: true,
  },
  mcp: { call: ['mcp'], says: [OPENING], differs: true, isRare: true },
  'home copy': {
    call: ['home', 'copy', 'HOME', 'OUT', '--keep-source'],
    says: [/copying entries: \d+ of \d+ entries/, /verifying the copy: \d+ of \d+ entries/],
    differs: true,
  },
  backup: {
    call: ['backup', 'OUT', '--with-keys'],
    says: [
      /copying the ledger: \d+\.\d of \d+\.\d MiB/,
      /verifying the backup: \d+ of \d+ entries/,
      /hashing the files of the backup: \d+ files/,
    ],
    differs: true,
  },
  restore: {
    call: ['restore', 'kept', '--actor', 'anna', '--no-erasures', '--home', 'OUT'],
    says: [/checking the files of the backup: \d+ of \d+ files/, /verifying the restored ledger: \d+ of \d+ entries/],
    differs: true,
  },
  'agents sessions': { call: ['agents', 'sessions'], says: [LISTING] },
  'agents reopen': { call: ['agents', 'reopen', 'RUN', ...PERSON], says: [OPENING], isRare: true, differs: true },
  doctor: { call: ['doctor'], says: [/examining the installation: \d+ entries/], differs: true },
};

const SHORT = 'reads no ledger, and files of limited size only';
const DATABASE = 'asks the database one question';

const SILENT: Readonly<Record<string, string>> = {
  init: SHORT,
  'config print': SHORT,
  completion: SHORT,
  version: SHORT,
  actions: SHORT,
  registrations: SHORT,
  hook: SHORT,
  'agents install': SHORT,
  'agents uninstall': SHORT,
  'agents doctor': SHORT,
  'policy check': SHORT,
  'policy schema': SHORT,
  'policy format': SHORT,
  'policy test': SHORT,
  'policy pin': SHORT,
  'policy deny': SHORT,
  'session check': SHORT,
  'upstream list': 'its time is that of other servers, whose number it does not wait for one by one',
  'upstream pin': 'its time is that of other servers, whose number it does not wait for one by one',
  'ledger check-proof': SHORT,
  'keys list': SHORT,
  token: SHORT,
  'token list': SHORT,
  'token revoke': SHORT,
  'home reopen': SHORT,
  'cluster status': DATABASE,
  worker: 'a service: it reports by its readiness, and opens the ledger as `serve` does',
  'restore acknowledge': 'opens the ledger and appends one entry for each restore',
  'failover accept': 'opens the ledger and appends the entries of one tree',
};

const work = tempFolder('progress');
const at = (...path: string[]): string => join(work, ...path);
let run = '';
let calls = 0;

beforeAll(async () => {
  const home = ['--home', 'home'];
  const expectDone = async (argv: readonly string[], stdin = ''): Promise<Said> => {
    const said = await turnpike(work, argv, { stdin });
    expect(said).toMatchObject({ code: 0 });
    return said;
  };
  await expectDone(['init', '--template', 'reference', ...home]);
  const stdin = [think(), write('/sandbox/a.md', 'first'), finish()].join('\n');
  await expectDone(['run', '-', '--case', 'case-0001', ...home], stdin);
  putSpec(work, PLAIN);
  mkdirSync(at('bag/data'), { recursive: true });
  const { stdout } = await expectDone(['runs', '--json', ...home]);
  run = jsonLines<{ run_id: string }>(stdout)[0]?.run_id ?? '';
  await expectDone(['ledger', 'export', 'bundle', ...home]);
  await expectDone(['backup', 'kept', '--with-keys', ...home]);
  const evaluation = { subject: { type: 'a', id: 'anna' }, action: { name: 'x' }, resource: { type: 'b', id: 'c' } };
  put(work, 'evaluation.json', JSON.stringify(evaluation));
  const content = 'a note';
  put(work, 'bag/data/note.txt', content);
  put(work, 'bag/bagit.txt', 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n');
  put(work, 'bag/manifest-sha256.txt', `${sha256(content)}  data/note.txt\n`);
});

/** Runs a call on a copy of the home. */
async function callOn({ call }: Row, more: readonly string[], world: World): Promise<Said> {
  const home = `home-${(calls += 1)}`;
  cpSync(at('home'), at(home), { recursive: true });
  const names: Readonly<Record<string, string>> = { RUN: run, OUT: `out-${calls}`, HOME: home };
  const argv = call.map((part) => part.replace(/RUN|OUT|HOME/, (name) => names[name] ?? name));
  const homed = argv.includes('--home') || call[0] === 'home' ? argv : [...argv, '--home', home];
  try {
    return await turnpike(work, [...homed, ...more], { stop: AbortSignal.abort(), clock: fastClock(), ...world });
  } finally {
    rmSync(at(home), { recursive: true, force: true });
  }
}

const ROWS = Object.values(DRAWS)
  .flat()
  .filter(({ isRare = false, unavailable = false }) => !unavailable && sized(isRare ? 0 : 1, 1) === 1)
  .map((row) => [row.call.join(' '), row] as const);

test('every command either shows how far it is, or has a reason not to', () => {
  const names = COMMANDS.map(({ name }) => name).sort();
  expect([...Object.keys(DRAWS), ...Object.keys(SILENT)].sort()).toEqual(names);
  expect(Object.keys(SILENT).filter((name) => name in DRAWS)).toEqual([]);
});

describe.each(ROWS)('turnpike %s', (_title, row) => {
  test('shows how far it is on a terminal, and removes that before its result', async () => {
    const screen: string[] = [];
    const keep = (text: string): void => void screen.push(text);
    const said = await callOn(row, [], { stderrTTY: true, stdoutTTY: true, onStdout: keep, onStderr: keep });
    for (const pattern of row.says) expect(said.stderr).toMatch(pattern);
    const shown = terminalScreen(screen.join(''));
    for (const pattern of row.says) expect(shown.filter((line) => pattern.test(line))).toEqual([]);
    const plain = await callOn(row, [], {});
    expect(plain.code).toBe(said.code);
    if (row.differs !== true) {
      expect({ stdout: said.stdout, stderr: terminalScreen(said.stderr) }).toEqual({
        stdout: plain.stdout,
        stderr: terminalScreen(plain.stderr),
      });
    }
    expect(plain.stderr).not.toMatch(/\r|\u001b/u);
  });

  test('shows nothing of it with --json', async () => {
    expect((await callOn(row, ['--json'], { stderrTTY: true })).stderr).not.toMatch(/\r|\u001b/u);
  });
});

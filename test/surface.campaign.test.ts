// What others can name of this version, compared with the version before: tools/surface.mjs prints it from the build.
// TURNPIKE_WRITE_SURFACE=1 writes test/fixtures/surface.txt anew.

import { beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { built } from './docs/built.js';
import { ROOT, textOf } from './sources.js';

const FIXTURE = 'test/fixtures/surface.txt';

const RENAMED = 'a second name from before the types were renamed; the first stays';

const LEASES = 'a worker has leases, no duties: claimLeases, hasLeases, releaseLeases, returnLeases';

/**
 * Lines of the fixture that the code has no more, each with its reason; the members of an export go with it. Writing
 * the fixture anew keeps them, so that a lost line always has a reason.
 */
const GONE: Readonly<Record<string, string>> = {
  'export . Failed': RENAMED,
  'export . NotExecuted': RENAMED,
  'export . Reconciled': RENAMED,
  'export . RequestReading': RENAMED,
  'export . RunAt': RENAMED,
  'export . SessionAt': RENAMED,
  'export ./http Minted': RENAMED,
  'export ./http Serving': RENAMED,
  'export ./http SourceServing': RENAMED,
  'export ./http joinedBooks': RENAMED,
  'export ./http singleToken': RENAMED,
  'export ./inspect XstateInspectServing': RENAMED,
  'export ./mcp HttpServing': RENAMED,
  'export ./mcp Leaving': RENAMED,
  'export ./mcp StdioServing': RENAMED,
  'export ./replay RunAt': RENAMED,
  'export ./replay SessionAt': RENAMED,
  'export-member ./machines Machines.session': 'sessions are a feature: `createSessionMachine` makes their machine',
  'export-member ./postgres SharedLedgerStore.claimDuties': LEASES,
  'export-member ./postgres SharedLedgerStore.hasDuties': LEASES,
  'export-member ./postgres SharedLedgerStore.releaseDuties': LEASES,
  'export-member ./postgres SharedLedgerStore.returnDuties': LEASES,
  'export-member . LedgerStore.allowRotations':
    'it switched a store of an older format; format 1 has rotations from the start',
  'export-member ./postgres SharedLedgerStore.allowRotations':
    'it switched a store of an older format; format 1 has rotations from the start',
};

/** Whether a line is listed as gone, or is a member of an export that is. */
const isGone = (line: string): boolean =>
  Object.hasOwn(GONE, line) || Object.hasOwn(GONE, line.replace(/^export-member (\S+ [^.]+)\..*$/, 'export $1'));

let present: readonly string[] = [];
const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');

beforeAll(async () => {
  await built();
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'tools/surface.mjs')], {
    maxBuffer: 1 << 24,
  });
  present = linesOf(stdout);
  if (process.env['TURNPIKE_WRITE_SURFACE'] !== '1') return;
  const kept = new Set([...present, ...linesOf(textOf(FIXTURE))]);
  writeFileSync(join(ROOT, FIXTURE), `${[...kept].sort().join('\n')}\n`);
}, 300_000);

test('no command, option, route, tool, code, rule, key, variable or export is lost', () => {
  const lines = new Set(present);
  const lost = linesOf(textOf(FIXTURE)).filter((line) => !lines.has(line) && !isGone(line));
  expect(lost).toEqual([]);
});

// If this fails: TURNPIKE_WRITE_SURFACE=1 adds the new lines.
test('every line is in the fixture', () => {
  const known = new Set(linesOf(textOf(FIXTURE)));
  expect(present.filter((line) => !known.has(line))).toEqual([]);
});

test('what is listed as gone was there, is not there, and has a reason', () => {
  const [known, lines] = [new Set(linesOf(textOf(FIXTURE))), new Set(present)];
  const wrong = Object.entries(GONE).filter(([line, why]) => !known.has(line) || lines.has(line) || why === '');
  expect(wrong).toEqual([]);
});

test('every kind of line is there', () => {
  const kinds = new Set(present.map((line) => line.split(' ')[0]));
  for (const kind of KINDS) expect(kinds).toContain(kind);
});

/** What the comparison must not miss because a table moved or became empty. */
const KINDS = [
  'action',
  'address',
  'command',
  'command-option',
  'configuration-key',
  'control-request',
  'error',
  'exit-code',
  'export',
  'fault',
  'lane-rule',
  'ledger-rule',
  'mcp-input',
  'mcp-tool',
  'problem',
  'route',
  'schema-key',
  'session-error',
  'step-rule',
  'variable',
];

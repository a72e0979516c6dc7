// What others can name of this version, compared with the version before: tools/surface.mjs prints it from the build.

import { beforeAll, expect, test } from '@jest/globals';
import { linesOf, SURFACE, surfaceLines } from '../tools/generate/generated-files.js';
import { built } from './docs/built.js';
import { textOf } from './sources.js';

const RENAMED = 'a second name from before the types were renamed; the first stays';

const LEASES = 'a worker has leases, no duties: claimLeases, hasLeases, releaseLeases, returnLeases';

/** Lines of the fixture that the code has no more, each with its reason; the members of an export go with it. */
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

/** Whether another entry of the package has what the main entry had. */
const hasMoved = (line: string, lines: ReadonlySet<string>): boolean => {
  const [, kind = '', name = ''] = /^(export|export-member) \. (.*)$/.exec(line) ?? [];
  return NEW_ENTRIES.some((entry) => lines.has(`${kind} ${entry} ${name}`));
};
const NEW_ENTRIES = ['./sessions', './copies', './ports', './replay'];

let present: readonly string[] = [];

beforeAll(async () => {
  await built();
  present = surfaceLines();
}, 300_000);

test('no command, option, route, tool, code, rule, key, variable or export is lost', () => {
  const lines = new Set(present);
  const lost = linesOf(textOf(SURFACE)).filter((line) => !lines.has(line) && !isGone(line) && !hasMoved(line, lines));
  expect(lost).toEqual([]);
});

// If this fails: `npm run generate -- surface` adds the new lines. It keeps lost ones, so that each has a reason.
test('every line is in the fixture', () => {
  const known = new Set(linesOf(textOf(SURFACE)));
  expect(present.filter((line) => !known.has(line))).toEqual([]);
});

test('what is listed as gone was there, is not there, and has a reason', () => {
  const [known, lines] = [new Set(linesOf(textOf(SURFACE))), new Set(present)];
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

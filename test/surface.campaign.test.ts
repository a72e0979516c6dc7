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

/**
 * Lines of the fixture that the code has no more, each with its reason. Writing the fixture anew keeps them, so that a
 * lost line always has a reason.
 */
const GONE: Readonly<Record<string, string>> = {};

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
  const lost = linesOf(textOf(FIXTURE)).filter((line) => !lines.has(line) && !Object.hasOwn(GONE, line));
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

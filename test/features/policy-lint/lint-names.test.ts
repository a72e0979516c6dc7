// The findings about names of tools and tables that are not registered.

import { describe, expect, test } from '@jest/globals';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import { isNear } from '../../../src/core/contract/policy/near-names.js';
import { lintNames } from '../../../src/features/policy-lint/lint-lanes.js';
import { bareLane, CATALOGUE, partsWith } from '../../core/policy/bare-policy.js';

const lint = (allowed_actions: Lane['allowed_actions']): readonly string[] =>
  [...lintNames(partsWith({ lanes: [bareLane(), bareLane({ lane_id: 'NEXT', allowed_actions })] }), CATALOGUE)].map(
    ({ name, pointer, rule, severity, message }) => `${name} ${pointer} ${severity} ${rule}: ${message}`,
  );
const toolPlace = (entry: number): string => `lanes /lanes/1/allowed_actions/tools/${entry}`;

/** Tools of the platform, of the shipped lanes, and of the test's registrations. */
const TOOLS = [
  'sandbox.read_file',
  'sandbox.rename_file',
  'session.verify',
  'session.review',
  'export_bundle.create',
  'export_bundle.validate',
  'export_bundle.signoff',
  'export_bundle.download',
  'dictation.start',
  'dictation.stop',
  'transcription.run',
  'transcription.status',
  'interview.prompt.next',
  'inside.run',
  'outside.send',
  'telephone.dial',
];
const TABLES = [
  'sandbox_files',
  'export_bundles',
  'audit_ledger',
  'transcripts',
  'interview_notes',
  'entities',
  'facts',
  'evidence_map',
  'coa_map',
  'shared_playbooks',
  'shared_heuristics',
  'case_notes',
  'lessons',
];

test('known tools and tables have no finding', () => {
  expect(lint({ tools: TOOLS, reads: TABLES, writes: TABLES.map((table) => ({ table, mode: 'append' })) })).toEqual([]);
});

test.each(TOOLS)('a tool that is spelt almost like %s is reported', (tool) => {
  expect(lint({ tools: ['session.verify', `${tool}xy`] })).toEqual([
    `${toolPlace(1)} error tool.misspelt: lane "NEXT" lists the tool "${tool}xy", which is not registered; ` +
      `there is "${tool}"`,
  ]);
});

test.each(TABLES)('a table that is spelt almost like %s is reported', (table) => {
  const message = `lane "NEXT" lists the table "${table}xy", which is not registered; there is "${table}"`;
  expect(lint({ reads: ['facts', `${table}xy`] })).toEqual([
    `lanes /lanes/1/allowed_actions/reads/1 error table.misspelt: ${message}`,
  ]);
  expect(lint({ writes: [{ table: `${table}xy`, mode: 'append' }] })).toEqual([
    `lanes /lanes/1/allowed_actions/writes/0 error table.misspelt: ${message}`,
  ]);
});

test('another tool is a warning, and another table is not reported', () => {
  expect(lint({ tools: ['radio.send'], reads: ['radio'], writes: [{ table: 'radio', mode: 'append' }] })).toEqual([
    `${toolPlace(0)} warning tool.unknown: lane "NEXT" lists the tool "radio.send", which is not registered`,
  ]);
});

describe('two names are similar if', () => {
  test.each([
    ['they are equal', 'facts', 'facts', true],
    ['two characters are missing', 'facts', 'fac', true],
    ['three characters are missing', 'facts', 'fa', false],
    ['two characters differ', 'facts', 'fxxts', true],
    ['three characters differ', 'facts', 'fxxxs', false],
    ['one is replaced and one is missing', 'facts', 'fxct', true],
    ['two are replaced and one is missing', 'facts', 'fxxt', false],
    ['one is empty', '', 'abc', false],
    ['one is empty and the other has two', '', 'ab', true],
  ])('%s', (_, a, b, near) => {
    expect(isNear(a, b)).toBe(near);
    expect(isNear(b, a)).toBe(near);
  });
});

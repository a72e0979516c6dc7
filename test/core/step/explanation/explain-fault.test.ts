// Every rule of VALIDATE_SCHEMA and VALIDATE_ARGS is explained, with the argument that breaks it (C94).

import { describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { createCatalogue, type Registrations } from '../../../../src/core/contract/policy/catalogue.js';
import { ARGUMENT_CAUSES, messageOf } from '../../../../src/core/contract/fault.js';
import type { Policy } from '../../../../src/core/policy/policy.js';
import { newStepDraft, runCheckPhases } from '../../../../src/core/step/check-phases.js';
import { tableOf } from '../../../docs/tables.js';
import { testPolicy } from '../../../fixtures/policy.js';
import { proposal } from '../../../fixtures/tree.js';

const closed = { additionalProperties: false } as const;
const common = { idempotent: false, timeout_ms: 1, result_bytes_max: 1, outside: false, confidentiality: [] };
const REGISTRATIONS = {
  actions: [],
  tools: [
    {
      name: 'billing.refund',
      summary: 's',
      input: Type.Object({ amount: Type.Integer({ maximum: 100 }) }, closed),
      output: Type.Object({}, closed),
      ...common,
    },
  ],
  targets: [
    {
      name: 'facts',
      summary: 's',
      record: Type.Object({ id: Type.String({ maxLength: 3 }), text: Type.String() }, closed),
      key: ['id'],
      modes: ['append'],
      plane: 'case',
      place: 'ledger',
      confidentiality: [],
    },
  ],
} as unknown as Registrations;

const policy: Policy = testPolicy({
  catalogue: createCatalogue(REGISTRATIONS),
  limits: { content_bytes_max: 10, path_bytes_max: 600 },
  sandbox: { portable_names: true },
  knobs: { extensions_stage: 'validate' },
});
const withRecords: Policy = {
  ...policy,
  actions: new Map([
    ...policy.actions,
    ...['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'].map((action) => [action, { action }] as const),
  ]),
};

const CANARY = 'CANARY';
const judge = (payload: object, under: Policy = withRecords) =>
  runCheckPhases(newStepDraft(Buffer.from(JSON.stringify(payload)), '0'.repeat(64), null), under);

const read = (path: unknown): object => proposal('READ_FILE', { path });
const refund = (input: object): object => proposal('CALL_TOOL', { tool: 'billing.refund', input });
const records = (more: object): object => proposal('READ_RECORDS', { target: 'facts', ...more });

/** A proposal for each rule, with its explanation. */
const ARGUMENTS: readonly (readonly [rule: string, payload: object, explanation: string])[] = [
  ['args.schema', read(7), 'args.path: must be a string'],
  ['args.schema', proposal('READ_FILE', {}), 'args.path: is missing'],
  ['args.schema', proposal('THINK', { [CANARY]: CANARY }), 'args: has 1 unknown field'],
  [
    'args.content_bytes_max',
    proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x'.repeat(11) }),
    'args.content: must have at most 10 bytes',
  ],
  ['args.tool_input', refund({ amount: 101 }), 'args.input.amount: must be <= 100'],
  ['args.tool_input', refund({ amount: CANARY }), 'args.input.amount: must be an integer'],
  [
    'args.record',
    proposal('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: CANARY, text: '' } }),
    'args.record.id: must have at most 3 characters',
  ],
  ['args.where', records({ where: { [CANARY]: 1 } }), 'args.where: has 1 unknown column'],
  ['args.where', records({ where: { id: CANARY } }), 'args.where.id: must have at most 3 characters'],
  ['args.after', records({ after: {} }), 'args.after: must have exactly the key: id'],
  ['args.after', records({ after: { [CANARY]: 1, b: 2 } }), 'args.after: has 2 unknown columns'],
  [
    'args.extension_not_allowed',
    proposal('DELETE_FILE', { path: `/sandbox/${CANARY}.exe` }),
    'args.path: must end with .txt or .md',
  ],
  ['path.prefix', read('/sandbox'), 'args.path: must begin with "/sandbox/"'],
  ['path.trailing_slash', read(`/sandbox/${CANARY}/`), 'args.path: must not end with a slash'],
  ['path.empty_segment', read('/sandbox/a//b'), 'args.path: must not have an empty segment'],
  ['path.dot_segment', read('/sandbox/./b'), "args.path: must not have a '.' segment"],
  [
    'path.dotdot_segment',
    proposal('RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/../b.txt' }),
    "args.destination: must not have a '..' segment",
  ],
  ['path.segment_bytes_max', read(`/sandbox/${'s'.repeat(256)}`), 'args.path: must have segments of at most 255 bytes'],
  ['path.not_portable', read('/sandbox/con'), 'args.path: must have names that every platform accepts'],
  ['path.path_bytes_max', read(`/sandbox/${'s/'.repeat(300)}x`), 'args.path: must have at most 600 bytes'],
  ['path.illegal_character', read('/sandbox/a\\b'), 'args.path: must not have a control character or a backslash'],
  ['path.invisible_character', read('/sandbox/a\u200bb'), 'args.path: must not have an invisible character'],
  ['path.not_nfc', read('/sandbox/e\u0301'), 'args.path: must be in Unicode NFC'],
];

describe('VALIDATE_ARGS', () => {
  test.each(ARGUMENTS)('%s: %j is explained', (rule, payload, explanation) => {
    const { fault } = judge(payload);
    // The schema of the action also has the beginning of a path.
    expect(fault).toMatchObject({ rule_id: rule === 'path.prefix' ? 'args.schema' : rule, explanation });
    expect(JSON.stringify(fault)).not.toContain(CANARY);
    const isPath = /^args\.(?:path|source|destination)\b/.test(explanation);
    expect(fault?.cause).toBe(isPath ? 'PATH' : 'ARGUMENT');
    expect(messageOf(fault!)).toBe(ARGUMENT_CAUSES[isPath ? 'PATH' : 'ARGUMENT']);
  });

  test('every rule of this phase is among these proposals', () => {
    const rules = tableOf('docs/errors.md', 'step-rules').map(([rule = '']) => rule);
    const paths = new Map(tableOf('docs/errors.md', 'problems').map(([of = '', list = '']) => [of, list.split(', ')]));
    const all = [
      ...rules.filter((rule) => rule.startsWith('args.') && rule !== 'args.path_type'),
      // AUTHORIZE alone refuses reserved names.
      ...(paths.get('path') ?? []).filter((name) => name !== 'reserved_name').map((problem) => `path.${problem}`),
    ];
    expect(all.length).toBeGreaterThan(15);
    expect([...new Set(ARGUMENTS.map(([rule]) => rule))].toSorted()).toEqual(all.toSorted());
  });
});

describe('VALIDATE_SCHEMA', () => {
  const valid = proposal('THINK', {});

  test.each([
    [[], 'must be an object'],
    [CANARY, 'must be an object'],
    [{ ...valid, [CANARY]: 1 }, 'has 1 unknown field'],
    [{ ...valid, id: CANARY }, 'id: must be a UUID'],
    [{ ...valid, schema_version: CANARY }, 'schema_version: must be 1.x.y'],
    [{ ...valid, reasoning: '' }, 'reasoning: must be a text of 1 to 8192 characters'],
    [{ ...valid, action: 1 }, 'action: must be a text'],
    [{ ...valid, args: [CANARY] }, 'args: must be an object'],
    ...Object.keys(valid).map((key) => [{ ...valid, [key]: undefined }, `${key}: is missing`] as const),
  ] as readonly (readonly [object, string])[])('%j is explained as %s', (payload, explanation) => {
    const { fault } = judge(payload);
    expect(fault).toMatchObject({ code: 'SCHEMA_VIOLATION', cause: null, explanation });
    expect(JSON.stringify(fault)).not.toContain(CANARY);
  });

  test('another major version and a used id keep their message without an explanation', () => {
    const { fault } = judge({ ...valid, schema_version: '2.0.0' });
    expect(fault).toEqual({ code: 'SCHEMA_VERSION_INCOMPATIBLE', cause: null, rule_id: 'schema.other_major' });
  });
});

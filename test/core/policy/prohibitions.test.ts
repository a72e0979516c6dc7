// C56: prohibitions are decided from facts. Each one, with facts that violate it and facts that do not.

import { describe, expect, test } from '@jest/globals';
import { artifactRef, type ArtifactRef } from '../../../src/core/contract/artifact-ref.js';
import type { RunContext } from '../../../src/core/contract/run/run-context.js';
import type { PrivilegedRequest } from '../../../src/core/policy/privileged-request.js';
import {
  artifactFlags,
  isProhibition,
  PROHIBITION_NAMES,
  isViolated,
  type Prohibition,
  EMPTY_LABEL,
} from '../../../src/core/policy/authorize-run.js';
import { RUN as run } from '../../fixtures/privileged.js';
import { shippedPolicy } from '../../fixtures/shipped-policy.js';

const lane = shippedPolicy().lanes.get('EXPORT_CASE_DATA')!;
const unaudited = { ...lane, audit: { required: false, level: 'full' } } as const;
const request: PrivilegedRequest = {
  tool: 'x',
  write: null,
  target_case_id: null,
  destination: 'platform',
  plane: 'case',
  artifact_flags: [],
  read: null,
  unregistered: null,
  promotes: false,
  label: EMPTY_LABEL,
};
const harmless = { run, lane, request };
const asking = (changed: Partial<PrivilegedRequest>, run_kind: RunContext['run_kind'] = 'tool_gateway') => ({
  run: { ...run, run_kind },
  lane,
  request: { ...request, ...changed },
});
const outside = (...artifact_flags: string[]) => asking({ destination: 'outside', artifact_flags }, 'export');
const carrying = (...artifact_flags: string[]) => asking({ artifact_flags }, 'promotion');

const TABLE: Readonly<Record<Prohibition, readonly (readonly [boolean, string, Parameters<typeof isViolated>[1]])[]>> =
  {
    cross_case_lookup: [
      [true, 'a target in another case', asking({ target_case_id: 'case_2' })],
      [true, 'the same letters in other case', asking({ target_case_id: 'CASE_1' })],
      [
        true,
        'a target in a case, from a run without one',
        { ...asking({ target_case_id: 'case_1' }), run: { ...run, case_id: null } },
      ],
      [false, 'a target in the own case', asking({ target_case_id: 'case_1' })],
      [false, 'a target in no case', asking({ target_case_id: null })],
    ],
    external_export: [
      [true, 'a destination outside', asking({ destination: 'outside' })],
      [true, 'a bundle outside, in an export run', outside('export_bundle')],
      [false, 'a destination on the platform', asking({ destination: 'platform' })],
    ],
    shared_knowledge_write: [
      [true, 'the shared plane', asking({ plane: 'shared' })],
      [true, 'the shared plane, by an export run', asking({ plane: 'shared' }, 'export')],
      [false, 'the shared plane, by a promotion run', asking({ plane: 'shared' }, 'promotion')],
      [false, 'the plane of a case', asking({ plane: 'case' })],
    ],
    raw_case_text: [
      ...[
        'raw_case_text',
        'raw_payload',
        'raw_payload_prefix',
        'result',
        'file_content',
        'response',
        'transcript',
        'embedded_text',
      ].map((flag) => [true, flag, carrying('playbook', flag)] as const),
      [false, 'other kinds', carrying('playbook', 'policy', 'machines')],
    ],
    client_identity: [
      ...['client_identity', 'contains_pii', 'contains_phi', 'embedded_text'].map(
        (flag) => [true, flag, carrying('playbook', flag)] as const,
      ),
      [false, 'other markings', carrying('playbook', 'contains_privileged')],
    ],
    privileged_notes: [
      ...['privileged_notes', 'interview_notes', 'contains_privileged', 'embedded_text'].map(
        (flag) => [true, flag, carrying('playbook', flag)] as const,
      ),
      [false, 'other markings', carrying('playbook', 'contains_pii')],
    ],
    raw_external_destination: [
      [true, 'something else than a bundle', outside('report')],
      [true, 'no known fact', outside()],
      [true, 'a bundle and a raw file', outside('export_bundle', 'file_content')],
      [true, 'a bundle with text in the record', outside('export_bundle', 'embedded_text')],
      [false, 'a bundle', outside('export_bundle', 'contains_pii')],
      [false, 'a raw file that stays', asking({ artifact_flags: ['file_content'] })],
    ],
    unaudited_delivery: [
      [true, 'a delivery by another run than an export run', asking({ destination: 'outside' })],
      [true, 'a delivery in a lane without audit', { ...outside('export_bundle'), lane: unaudited }],
      [false, 'a delivery by an export run', outside('export_bundle')],
      [false, 'what stays, in a lane without audit', { ...harmless, lane: unaudited }],
    ],
  };

describe.each(PROHIBITION_NAMES)('S4-35 C56 %s', (name) => {
  test.each(TABLE[name])('violated = %s: %s', (expected, _what, facts) => {
    expect(isViolated(name, facts)).toBe(expected);
  });
});

test('D18 the complete list of prohibitions', () => {
  expect(PROHIBITION_NAMES).toEqual([
    'cross_case_lookup',
    'external_export',
    'shared_knowledge_write',
    'raw_case_text',
    'client_identity',
    'privileged_notes',
    'raw_external_destination',
    'unaudited_delivery',
  ]);
  for (const name of ['silent_changes', 'bypass_audit', 'constructor', '__proto__', 'toString', '']) {
    expect(isProhibition(name)).toBe(false);
  }
});

describe('the flags of an artifact, as prohibitions use them', () => {
  const ref: ArtifactRef = artifactRef({ kind: 'file_content', case_id: 'case_1', bytes: new Uint8Array(1) });

  test('include its kind', () => {
    expect(artifactFlags([ref])).toEqual(['file_content']);
  });

  test('include its true markings; notes are not a marking', () => {
    const confidentiality = { contains_pii: true, contains_phi: false, contains_privileged: true, notes: 'true' };
    expect(artifactFlags([{ ...ref, confidentiality }])).toEqual([
      'file_content',
      'contains_pii',
      'contains_privileged',
    ]);
  });

  test('are collected over all artifacts, each once', () => {
    expect(artifactFlags([ref, { ...ref, artifact_kind: 'policy' }, ref])).toEqual(['file_content', 'policy']);
    expect(artifactFlags([])).toEqual([]);
  });

  test('S4-62 every kind with recorded text counts as raw text', () => {
    for (const kind of ['raw_payload', 'result', 'file_content', 'response'] as const) {
      const flags = artifactFlags([artifactRef({ kind, case_id: null, bytes: new Uint8Array() })]);
      expect(isViolated('raw_case_text', asking({ artifact_flags: flags }, 'promotion'))).toBe(true);
    }
  });
});

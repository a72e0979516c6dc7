// S4 §10: the request that a promotion or export run is judged by, and the effect that it executes.

import { describe, expect, test } from '@jest/globals';
import { prepareHighRiskRun, type StartRunEvent } from '../../machines/high-risk-run.js';
import type { MediatedRequest } from '../../machines/mediated-memory.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { createCatalogue, type TargetDefinition } from '../../src/core/contract/policy/catalogue.js';
import type { RunContext } from '../../src/core/contract/run/run-context.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { REGISTERED } from '../fixtures/governed.js';
import { testPolicy } from '../fixtures/policy.js';
import { EXPORT, PROMOTION, RUN } from '../fixtures/privileged.js';
import { hashText } from '../../src/core/contract/free-text.js';

const [SHARED] = REGISTERED.targets.filter(({ plane }) => plane === 'shared') as [TargetDefinition];
const catalogue = createCatalogue({
  ...REGISTERED,
  targets: [
    ...REGISTERED.targets,
    { ...SHARED, name: 'ledger_playbooks', place: 'ledger' },
    { ...SHARED, name: 'case_notes', plane: 'case', place: 'ledger', modes: ['upsert'] },
  ],
});
const POLICY: Policy = testPolicy({ catalogue });

const SOURCE = artifactRef({ kind: 'result', case_id: 'case_1', bytes: Buffer.from('{"found":1}') });
const OTHER_SOURCE = artifactRef({ kind: 'result', case_id: 'case_1', bytes: Buffer.from('{"found":2}') });

/** The request of a run with these arguments. */
function requestOf(run: RunContext, args: StartRunEvent['act']['args'], policy = POLICY): MediatedRequest {
  const event: StartRunEvent = {
    type: 'START_RUN',
    run_kind: run.run_kind as StartRunEvent['run_kind'],
    actor: run.actor,
    role_id: run.role_id,
    lane_id: run.lane_id ?? '',
    act: { action: run.run_kind === 'promotion' ? 'WRITE_RECORD' : 'EXPORT_BUNDLE', args },
    request: null,
    inputs: [SOURCE, OTHER_SOURCE],
    facts: { artifact_flags: ['contains_pii'], label: EMPTY_LABEL },
    overlay: null,
    time: '2026-01-01T00:00:00.000Z',
  };
  return prepareHighRiskRun(run, event, policy).input.request;
}

const RECORD = { id: 'p-1' };
const promote = (args: StartRunEvent['act']['args']): MediatedRequest =>
  requestOf(PROMOTION, { target: 'shared_playbooks', mode: 'append', record: RECORD, ...args });

describe('the request of a promotion', () => {
  test('is a write of shared knowledge, which belongs to no case', () => {
    expect(promote({}).privileged).toEqual({
      tool: null,
      write: { table: 'shared_playbooks', mode: 'append' },
      read: null,
      target_case_id: null,
      destination: 'platform',
      plane: 'shared',
      artifact_flags: ['contains_pii'],
      unregistered: null,
      promotes: true,
      label: EMPTY_LABEL,
    });
  });

  test('to a table of the case is a write into the case', () => {
    expect(promote({ target: 'case_notes', mode: 'upsert' }).privileged).toMatchObject({
      write: { table: 'case_notes', mode: 'upsert' },
      target_case_id: 'case_1',
      plane: 'case',
      unregistered: null,
    });
  });

  test.each([
    ['upsert', 'upsert', 'target.mode_not_registered'],
    ['append', 'append', null],
    ['replace', 'append', null],
    [undefined, 'append', null],
  ] as const)('in mode %s writes in mode %s', (mode, written, unregistered) => {
    const { target, record } = { target: 'shared_playbooks', record: RECORD };
    const args = mode === undefined ? { target, record } : { target, record, mode };
    expect(requestOf(PROMOTION, args).privileged).toMatchObject({
      write: { table: 'shared_playbooks', mode: written },
      unregistered,
    });
  });

  test.each([
    ['a table that is not registered', 'nowhere', hashText('nowhere')],
    ['a target that is not a text', 7, hashText('')],
  ])('to %s is not registered', (_what, target, table) => {
    expect(promote({ target })).toMatchObject({
      privileged: { write: { table }, plane: 'case', target_case_id: 'case_1', unregistered: 'target.not_registered' },
      in_commit: false,
    });
  });

  test('S4-74: names the record that it writes, and its sources', () => {
    expect(promote({}).written).toEqual({
      artifact_id: `sha256:${sha256('{"id":"p-1"}')}`,
      artifact_kind: 'sanitized_insight',
      hash_sha256: sha256('{"id":"p-1"}'),
      byte_size: 12,
      scope: 'shared',
      lineage: {
        derived_from: [SOURCE.artifact_id, OTHER_SOURCE.artifact_id],
        transformation: 'promotion',
      },
    });
  });

  test.each([
    ['shared_playbooks', false],
    ['ledger_playbooks', true],
    ['case_notes', true],
  ])('to %s is written in the commit of its decision: %p', (target, inCommit) => {
    expect(promote({ target }).in_commit).toBe(inCommit);
  });

  test('has a new key, is not idempotent, and knows no file', () => {
    expect(promote({})).toMatchObject({ idempotency_key: null, idempotent: false, retry: null });
    expect(promote({}).effect).toEqual({
      action: 'WRITE_RECORD',
      args: { target: 'shared_playbooks', mode: 'append', record: RECORD },
      case_id: 'case_1',
      request_hash: promote({}).hash,
      before: [],
      partial_outputs: false,
      limits: { read_bytes_max: 1_048_576, list_entries_max: 10_000 },
    });
  });
});

describe('the request of an export', () => {
  const ARGS = { reason: 'discovery', locator: 'case_1/b-1.zip' };

  test('is a delivery of the case to the outside by the tool of exports', () => {
    expect(requestOf(EXPORT, ARGS).privileged).toEqual({
      tool: 'export_bundle.create',
      write: null,
      read: null,
      target_case_id: 'case_1',
      destination: 'outside',
      plane: 'case',
      artifact_flags: ['contains_pii'],
      unregistered: null,
      promotes: false,
      label: EMPTY_LABEL,
    });
  });

  test('is never written in the commit, and writes no record, whatever its arguments name', () => {
    expect(requestOf(EXPORT, { ...ARGS, target: 'ledger_playbooks' })).toMatchObject({
      in_commit: false,
      written: null,
    });
  });

  test('gives the executor its arguments as they are', () => {
    expect(requestOf(EXPORT, ARGS).effect.args).toEqual(ARGS);
  });
});

test('C68: a check of a session is a call of a platform tool, and of none for an unknown check', () => {
  expect(requestOf(RUN, {})).toMatchObject({
    privileged: { tool: null, write: null, destination: 'platform', target_case_id: 'case_1' },
    in_commit: false,
    written: null,
  });
});

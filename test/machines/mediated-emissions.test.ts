// What a mediated run records of its action: the target, the result, and the bundle of an export.

import { describe, expect, test } from '@jest/globals';
import { type MediatedMemory } from '../../machines/mediated-memory.js';
import { auditTargetOf, effectEmissions, outcomeEmissions } from '../../machines/mediated.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { AuditDraft } from '../../src/core/run/audit-events.js';
import { DELIVERY, EXPORT, REQUEST, RUN, SHARED_WRITE } from '../fixtures/privileged.js';
import { without } from './chart.js';
import { mediatedMemory, PROMOTION_WRITE } from './mediated-runs.js';

const REF = artifactRef({ kind: 'result', case_id: 'case_1', bytes: Buffer.from('{"a":1}') });
const WRITTEN = artifactRef({ kind: 'result', case_id: 'case_1', bytes: Buffer.from('{"b":2}') });
const bodies = (context: MediatedMemory): AuditDraft[] =>
  outcomeEmissions(context).flatMap((emission) => (emission.type === 'audit_event' ? [emission.body] : []));

describe('S4-47: the target of a run in the audit', () => {
  const targetOf = (privileged: object, run = RUN) => {
    const { request } = mediatedMemory();
    const nothing = { ...REQUEST, tool: null, write: null, read: null };
    return auditTargetOf({ run, request: { ...request, privileged: { ...nothing, ...privileged } } });
  };
  test.each([
    ['a tool', { tool: 'slow.tool' }, { target_type: 'tool', name: 'slow.tool', operation: 'WRITE_RECORD' }],
    ['a written table', { write: SHARED_WRITE.write }, PROMOTION_WRITE],
    ['a read table', { read: 'facts' }, { target_type: 'table', name: 'facts', operation: 'read' }],
    ['the system', {}, { target_type: 'system', name: 'WRITE_RECORD' }],
  ])('is %s', (_what, privileged, target) => {
    expect(targetOf(privileged)).toEqual(target);
    expect(targetOf(privileged, EXPORT)).toEqual({ target_type: 'export_bundle', name: 'export_bundle' });
  });
});

describe('S4-48: the output of an action', () => {
  const outputOf = (over: Parameters<typeof mediatedMemory>[0]) => bodies(mediatedMemory(over))[0]?.output_artifacts;
  const done = { result: { a: 1 }, result_ref: REF };

  test('is what it has written, or else its result', () => {
    expect(outputOf({ done, request: { written: WRITTEN } })).toEqual([WRITTEN]);
    expect(outputOf({ done })).toEqual([REF]);
  });

  test('is the output up to the failure if it has no result', () => {
    expect(outputOf({ done: { cause: 'IO_ERROR', result_ref: REF }, request: { written: WRITTEN } })).toEqual([REF]);
    expect(outputOf({ done: { cause: 'IO_ERROR' }, request: { written: WRITTEN } })).toBeUndefined();
  });

  test('is no bundle unless the run is an export, whatever the result contains', () => {
    const result = { bundle_id: 'b-1', package_hash_sha256: 'c'.repeat(64), package_locator: 'case_1/b-1.zip' };
    expect(outputOf({ run: RUN, done: { result, result_ref: REF } })).toEqual([REF]);
  });
});

describe('S4-76 S4-79: an export', () => {
  const RESULT = { bundle_id: 'b-1', package_hash_sha256: 'c'.repeat(64), package_locator: 'case_1/b-1.zip' };
  const LOCATOR = { locator: 'case_1/b-1.zip' };
  const exported = (result: JsonObject, args: JsonObject = LOCATOR, run = EXPORT): MediatedMemory => {
    const { effect } = mediatedMemory().request;
    const request = { privileged: DELIVERY, effect: { ...effect, action: 'EXPORT_BUNDLE', args } };
    return mediatedMemory({ run, request, done: { result, result_ref: REF } });
  };
  const bundlesOf = (context: MediatedMemory) => bodies(context).map(({ output_artifacts }) => output_artifacts);
  const BUNDLE = {
    artifact_id: 'b-1',
    artifact_kind: 'export_bundle',
    hash_sha256: 'c'.repeat(64),
    storage_locator: 'case_1/b-1.zip',
    scope: 'case',
    case_id: 'case_1',
    lineage: { run_id: RUN.run_id, transformation: 'export' },
  };

  test('records its bundle when it is assembled and when it ends', () => {
    expect(bodies(exported(RESULT)).map(({ target }) => target?.operation)).toEqual(['assemble', 'finalize']);
    expect(bundlesOf(exported(RESULT))).toEqual([[BUNDLE], [BUNDLE]]);
  });

  test('records the locator of its request, and its result if that has none', () => {
    const requested = [{ ...BUNDLE, storage_locator: 'other.zip' }];
    expect(bundlesOf(exported(RESULT, { locator: 'other.zip' }))).toEqual([requested, requested]);
    expect(bundlesOf(exported(RESULT, { locator: 7 }))).toEqual([[REF], [REF]]);
  });

  test('without a case records a bundle without a case', () => {
    const bundle = without(without(BUNDLE, 'scope'), 'case_id');
    const [output] = bundlesOf(exported(RESULT, LOCATOR, { ...EXPORT, case_id: null }));
    expect(output).toStrictEqual([bundle]);
  });

  test.each(['bundle_id', 'package_hash_sha256'])('records its result if %s is no text', (name) => {
    expect(bundlesOf(exported({ ...RESULT, [name]: 7 }))).toEqual([[REF], [REF]]);
  });

  test('is authorized before its effect, as a success without an output', () => {
    const [authorized, command] = effectEmissions(mediatedMemory({ run: EXPORT, request: { privileged: DELIVERY } }));
    expect(authorized).toMatchObject({
      type: 'audit_event',
      body: { outcome: 'success', target: { target_type: 'export_bundle', operation: 'authorize' } },
    });
    expect(command).toMatchObject({ type: 'command', command: { kind: 'perform', run_id: EXPORT.run_id } });
    expect(effectEmissions(mediatedMemory())).toHaveLength(1);
  });
});

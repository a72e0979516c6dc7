// The run that carries an action, and its complete request.

import { describe, expect, test } from '@jest/globals';
import { type ArtifactRef } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { createCatalogue } from '../../../src/core/contract/policy/catalogue.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import { InvariantError } from '../../../src/core/errors.js';
import { emptyBook } from '../../../src/core/policy/policy-features.js';
import { EMPTY_LABEL } from '../../../src/core/policy/authorize-run.js';
import { UNDECIDED_AUTHORIZATION, type AuthorizationSubject } from '../../../src/core/step/authorization-subject.js';
import {
  canLeavePartialOutputs,
  firstAttempt,
  mediatedContext,
  mediatedRequest,
  retryAttempt,
} from '../../../src/core/step/mediated-request.js';
import { REGISTERED } from '../../fixtures/governed.js';
import { SANDBOX_FILES, testPolicy } from '../../fixtures/policy.js';
import { RUN } from '../../fixtures/privileged.js';
import { fileFact } from './judge.js';

const lane = (lane_id: string, over: Partial<Lane> = {}): Lane => ({ ...SANDBOX_FILES, lane_id, ...over });
const LANES = [
  SANDBOX_FILES,
  lane('PARTIAL', { partial_outputs: true }),
  lane('COMPLETE', { partial_outputs: false }),
  lane('NO_CASE', { inherits_case_id: false }),
];
const policy = testPolicy({
  lanes: new Map(LANES.map((own) => [own.lane_id, own])),
  actions: new Map([...testPolicy().actions, ['CALL_TOOL', { action: 'CALL_TOOL', lane: 'NO_CASE' }]]),
  catalogue: createCatalogue({
    ...REGISTERED,
    actions: [
      {
        name: 'NOTE_FACT',
        summary: 'Note a fact.',
        risk: 'write',
        args: { type: 'object', properties: { content: { type: 'string' } } },
        needs: { write: { table: 'facts', mode: 'append' } },
        idempotent: false,
        timeout_ms: 1_000,
        result_bytes_max: 1_000,
        outside: false,
        confidentiality: [],
      },
    ],
  }),
});

const AGENT = { ...RUN, run_id: 'run_agent', run_kind: 'agent', parent_run_id: 'run_root' } as const;
const PAYLOAD: ArtifactRef = {
  artifact_id: `sha256:${'0'.repeat(64)}`,
  artifact_kind: 'raw_payload',
  hash_sha256: '0'.repeat(64),
  byte_size: 1,
};

const step = (over: Partial<AuthorizationSubject> = {}): AuthorizationSubject => ({
  agent: { ...AGENT },
  action: 'READ_FILE',
  args: { path: '/sandbox/a.txt' },
  mediated_run_id: 'run_mediated',
  payload: PAYLOAD,
  received_at: '2026-01-01T00:00:00.000Z',
  authorization: UNDECIDED_AUTHORIZATION,
  label: EMPTY_LABEL,
  overlay: null,
  approvals: emptyBook('run_agent'),
  unsettled: [],
  ...over,
});

describe('the context of the mediated run', () => {
  test("is a child of the agent's run, in its lane and case", () => {
    expect(mediatedContext(step(), policy)).toEqual({
      ...RUN,
      run_id: 'run_mediated',
      run_kind: 'tool_gateway',
      parent_run_id: 'run_agent',
    });
  });

  test('is computed once for an action of an agent', () => {
    const read = step();
    expect(mediatedContext(read, policy)).toBe(mediatedContext(read, policy));
  });

  test('is computed anew for another run, another lane and another kind of run', () => {
    const { agent } = step();
    const read = mediatedContext(step({ agent }), policy);
    const next = mediatedContext(step({ agent, mediated_run_id: 'run_next' }), policy);
    expect([read.run_id, next.run_id]).toEqual(['run_mediated', 'run_next']);
    const call = mediatedContext(step({ agent, action: 'CALL_TOOL', mediated_run_id: 'run_next' }), policy);
    expect(call).toMatchObject({ lane_id: 'NO_CASE', run_kind: 'tool_gateway' });
    const again = mediatedContext(step({ agent, mediated_run_id: 'run_next' }), policy);
    expect(again).toMatchObject({ lane_id: 'SANDBOX_FILES', run_kind: 'tool_gateway' });
    const write = mediatedContext(step({ agent, action: 'WRITE_RECORD', mediated_run_id: 'run_next' }), policy);
    expect(write).toMatchObject({ lane_id: 'SANDBOX_FILES', run_kind: 'db_write' });
  });

  test('C46: has no case in a lane that does not inherit it', () => {
    expect(mediatedContext(step({ action: 'CALL_TOOL' }), policy).case_id).toBeNull();
    const agent = { ...AGENT, lane_id: 'NO_CASE' };
    expect(mediatedContext(step({ agent }), policy)).toMatchObject({ lane_id: 'NO_CASE', case_id: null });
  });

  test('keeps the case without a lane, and in a lane that does not exist', () => {
    for (const lane_id of [null, 'UNKNOWN']) {
      const run = mediatedContext(step({ agent: { ...AGENT, lane_id } }), policy);
      expect(run).toMatchObject({ lane_id, case_id: 'case_1' });
    }
  });

  test.each([null, 'LAUNCH'])('is that of a tool_gateway for the action %j', (action) => {
    expect(mediatedContext(step({ action }), policy)).toMatchObject({
      lane_id: 'SANDBOX_FILES',
      run_kind: 'tool_gateway',
    });
  });
});

describe('partial outputs', () => {
  test.each([
    ['PARTIAL', true],
    ['COMPLETE', false],
    ['SANDBOX_FILES', false],
    ['UNKNOWN', false],
    [null, false],
  ])('S4-65: are permitted in the lane %j: %j', (lane_id, permitted) => {
    const run = { ...RUN, lane_id };
    expect(canLeavePartialOutputs(run, policy)).toBe(permitted);
    expect(mediatedRequest(step(), firstAttempt(run), policy).effect.partial_outputs).toBe(permitted);
  });
});

describe('the request', () => {
  const WRITE = { action: 'WRITE_FILE', args: { path: '/sandbox/a.txt', content: 'Grüße' } } as const;
  const writtenBy = (over: Partial<AuthorizationSubject>, run = RUN) =>
    mediatedRequest(step(over), firstAttempt(run), policy).written;

  test('S0-53 S4-60: holds the authorized arguments, their hash, and the facts before the effect', () => {
    const args = { path: '/sandbox/b.txt' };
    const authorization = { ...UNDECIDED_AUTHORIZATION, args, before: [fileFact()] };
    const { effect, hash, ...request } = mediatedRequest(step({ authorization }), firstAttempt(RUN), policy);
    expect(hash).toBe(sha256(canonicalJson({ action: 'READ_FILE', args, case_id: 'case_1' })));
    expect(effect).toEqual({
      action: 'READ_FILE',
      args,
      case_id: 'case_1',
      request_hash: hash,
      before: [fileFact()],
      partial_outputs: false,
      repeatable: true,
      explained: false,
      limits: { read_bytes_max: 1_048_576, list_entries_max: 10_000 },
    });
    expect(request).toMatchObject({
      privileged: { tool: 'sandbox.read_file', target_case_id: 'case_1' },
      idempotency_key: null,
      in_commit: true,
      idempotent: true,
      inputs: [PAYLOAD],
      written: null,
      retry: null,
      overlay: null,
    });
  });

  test('holds the proposed arguments, or none, if nothing has been authorized', () => {
    expect(mediatedRequest(step(), firstAttempt(RUN), policy).effect.args).toEqual({ path: '/sandbox/a.txt' });
    expect(mediatedRequest(step({ args: null }), firstAttempt(RUN), policy).effect.args).toEqual({});
  });

  test('C54: of a retry names the first attempt, and uses its key', () => {
    const attempt = retryAttempt(RUN, 'run_retry', 2, 'run_first_retry', { reason: 'IO_ERROR', key: null });
    expect(attempt.run).toMatchObject({ run_id: 'run_retry', parent_run_id: 'run_mediated' });
    expect(mediatedRequest(step(), attempt, policy)).toMatchObject({
      idempotency_key: 'run_mediated',
      retry: { count: 2, reason: 'IO_ERROR', of: 'run_first_retry', logical_parent_run_id: 'run_agent' },
    });
    const orphan = retryAttempt({ ...RUN, parent_run_id: null }, 'run_retry', 1, 'run_mediated', {
      reason: 'IO_ERROR',
      key: null,
    });
    expect(orphan.retry?.logical_parent_run_id).toBe('run_root');
  });

  test('names the content of a written file as an artifact of the case', () => {
    const hash = sha256('Grüße');
    expect(writtenBy(WRITE)).toStrictEqual({
      artifact_id: `sha256:${hash}`,
      artifact_kind: 'file_content',
      hash_sha256: hash,
      byte_size: 7,
      scope: 'case',
      case_id: 'case_1',
      lineage: { derived_from: [PAYLOAD.artifact_id], transformation: 'args.content' },
    });
  });

  test('names it without a scope if the run has no case', () => {
    const written = writtenBy(WRITE, { ...RUN, case_id: null });
    expect(written).not.toHaveProperty('scope');
    expect(written).not.toHaveProperty('case_id');
  });

  test('names no artifact if nothing is written to a file', () => {
    const content = 'x';
    expect(writtenBy({ args: { path: '/sandbox/a.txt', content } })).toBeNull();
    expect(writtenBy({ action: 'CALL_TOOL', args: { tool: 'billing.charge', input: {}, content } })).toBeNull();
    expect(writtenBy({ action: 'NOTE_FACT', args: { content } })).toBeNull();
    expect(writtenBy({ ...WRITE, args: { path: '/sandbox/a.txt' } })).toBeNull();
  });

  test.each([null, 'LAUNCH'])('is never made for the action %j', (action) => {
    expect(() => mediatedRequest(step({ action }), firstAttempt(RUN), policy)).toThrow(
      new InvariantError('an action is mediated that does not exist'),
    );
  });
});

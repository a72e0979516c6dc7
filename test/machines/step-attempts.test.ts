// What a step has used and read, which failure is tried again, and when.

import { describe, expect, test } from '@jest/globals';
import type { RunOutput } from '../../machines/run.js';
import {
  type StepMemory,
  abandonRetry,
  findUnknownRequest,
  nextAttempt,
  scheduleRetry,
  stepRequestHash,
} from '../../machines/step-memory.js';
import { canRetry, readLabel, spentAmounts } from '../../machines/step.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import { limitsOf, openAccount } from '../../src/core/run/budget-account.js';
import { UNDECIDED_AUTHORIZATION } from '../../src/core/step/authorization.js';
import {
  attempting,
  CALL,
  doneEvent,
  failedOutput,
  NO_OUTCOME,
  PROPOSER,
  READ,
  RECEIVED_AT,
  RETRYING_POLICY as POLICY,
} from './attempts.js';

const APPEND = { action: 'WRITE_RECORD', args: { target: 'facts', mode: 'append', record: { id: 'f-1' } } } as const;
const failed = (reason: string, retryable = true): RunOutput =>
  failedOutput({ end: { reason, error: { error_code: reason, message: 'It failed.', retryable } } });

test('S4-13: a step has used one step, its attempts, and the bytes of its result', () => {
  const result_ref = artifactRef({ kind: 'result', case_id: 'case_1', bytes: Buffer.from('{"a":1}') });
  expect(spentAmounts(attempting({ attempts: 2, result_ref }))).toMatchObject({ steps: 1, tool_calls: 2, bytes: 7 });
  expect(spentAmounts(attempting({ attempts: 0 }))).toMatchObject({ steps: 1, tool_calls: 0, bytes: 0 });
});

describe('the label that an agent gets from a step', () => {
  test('is that of its result once it was attempted', () => {
    expect(readLabel(attempting(READ), POLICY)).toEqual({ cases: ['case_1'], flags: [], many: false });
    expect(readLabel(attempting({ ...READ, attempts: 0 }), POLICY)).toBeNull();
  });

  test.each([null, 'FLY'])('is missing for the action %j, which does not exist', (action) => {
    expect(readLabel(attempting({ ...READ, action }), POLICY)).toBeNull();
    expect(readLabel(attempting({ ...READ, action, attempts: 0 }), POLICY)).toBeNull();
  });
});

describe('C54: a failed attempt', () => {
  const limited = (tool_calls: number) => openAccount(limitsOf({ tool_calls }));
  test.each<readonly [string, Partial<StepMemory>, RunOutput, boolean]>([
    ['is repeated if it is retryable and idempotent', CALL, failed('IO_ERROR'), true],
    ['is repeated if it was interrupted and wrote no record', CALL, failed('INTERRUPTED'), true],
    ['is repeated if it wrote a record and failed otherwise', APPEND, failed('IO_ERROR'), true],
    ['is not repeated if its record was settled as not written', APPEND, failed('INTERRUPTED'), false],
    ['is not repeated if it is not retryable', CALL, failed('IO_ERROR', false), false],
    ['is not repeated without an error', CALL, failedOutput({ end: { reason: 'stop', error: null } }), false],
    ['is not repeated if it was cancelled', CALL, { ...failed('IO_ERROR'), state: 'cancelled' }, false],
    ['is not repeated if its action does not exist', { ...CALL, action: 'FLY' }, failed('IO_ERROR'), false],
    ['is not repeated without an action', { ...CALL, action: null }, failed('IO_ERROR'), false],
    ['is not repeated if the tool is not idempotent', { ...CALL, args: { tool: 'x' } }, failed('IO_ERROR'), false],
    ['is not repeated without arguments', { ...CALL, args: null }, failed('IO_ERROR'), false],
    ['is not repeated if no caller waits for it', { ...CALL, no_retries: true }, failed('IO_ERROR'), false],
    ['is repeated at the last attempt that policy permits', { ...CALL, attempts: 2 }, failed('IO_ERROR'), true],
    ['is not repeated more often', { ...CALL, attempts: 3 }, failed('IO_ERROR'), false],
    ['is repeated with budget for one more call', { ...CALL, account: limited(2) }, failed('IO_ERROR'), true],
    ['is not repeated without budget for it', { ...CALL, account: limited(1) }, failed('IO_ERROR'), false],
  ])('%s', (_what, over, output, expected) => {
    expect(canRetry(attempting(over), output, POLICY)).toBe(expected);
  });

  test.each([
    [1, '2026-01-01T00:00:11.000Z'],
    [2, '2026-01-01T00:00:12.000Z'],
    [3, '2026-01-01T00:00:14.000Z'],
  ])('is repeated after a delay that doubles: attempt %i, at %s', (attempts, at) => {
    expect(scheduleRetry(attempting({ ...CALL, attempts }), doneEvent(failedOutput()), POLICY)).toEqual({
      next_attempt: { reason: 'IO_ERROR', at },
      unknown: null,
    });
  });

  test('without an outcome counts from the proposal, as an internal failure', () => {
    const scheduled = scheduleRetry(attempting(CALL), doneEvent(failedOutput({ done: null })), POLICY);
    expect(scheduled.next_attempt).toEqual({ reason: 'INTERNAL', at: '2026-01-01T00:00:01.000Z' });
    const timeless = failedOutput({ done: NO_OUTCOME });
    expect(scheduleRetry(attempting(CALL), doneEvent(timeless), POLICY).next_attempt).toEqual(scheduled.next_attempt);
  });

  test('is never repeated after the latest timestamp', () => {
    const at = '9999-12-31T23:59:59.999Z';
    const output = failedOutput({ done: { ...NO_OUTCOME, cause: 'IO_ERROR', at } });
    expect(scheduleRetry(attempting(CALL), doneEvent(output), POLICY).next_attempt).toEqual({ reason: 'IO_ERROR', at });
  });

  test('ends the step with its own failure, if no caller waits for another', () => {
    const next_attempt = { reason: 'IO_ERROR', at: RECEIVED_AT };
    const fault = { code: 'EXECUTION_ERROR', rule_id: 'execute.io_error', cause: 'IO_ERROR' };
    expect(abandonRetry(attempting({ next_attempt }))).toEqual({
      next_attempt: null,
      fault,
      phase_failed_at: 'EXECUTE',
    });
    expect(abandonRetry(attempting())).toMatchObject({ fault: { rule_id: 'execute.internal', cause: 'INTERNAL' } });
  });
});

test('S4-66 S4-67: the next attempt has the next ordinal, and names the last attempt and its failure', () => {
  const next_attempt = { reason: 'TIMEOUT', at: RECEIVED_AT };
  const next = nextAttempt(attempting({ ...CALL, attempts: 2, mediated_run_id: 'run_agent.6', next_attempt }), POLICY);
  expect(next).toMatchObject({
    run: { run_id: 'run_agent.7', parent_run_id: 'run_agent.5', run_kind: 'tool_gateway' },
    retry: { count: 2, reason: 'TIMEOUT', of: 'run_agent.6', logical_parent_run_id: 'run_agent' },
    idempotency_key: 'run_agent.5',
  });
  expect(nextAttempt(attempting(CALL), POLICY).retry).toMatchObject({ reason: 'INTERNAL' });
});

describe('D8: the request of a step', () => {
  const hashOf = (args: object): string =>
    sha256(canonicalJson({ action: CALL.action, args, case_id: PROPOSER.case_id }));
  const canonical = { ...UNDECIDED_AUTHORIZATION, args: { tool: 'slow.tool', input: { amount: 1 } } };

  test('is hashed with the arguments that AUTHORIZE has decided, or else with its own', () => {
    expect(stepRequestHash(attempting({ ...CALL, authorization: canonical }), POLICY)).toBe(hashOf(canonical.args));
    expect(stepRequestHash(attempting(CALL), POLICY)).toBe(hashOf(CALL.args));
    expect(stepRequestHash(attempting({ ...CALL, args: null }), POLICY)).toBe(hashOf({}));
  });

  test.each([null, 'FLY'])('has no hash for the action %j, which does not exist', (action) => {
    expect(stepRequestHash(attempting({ ...CALL, action }), POLICY)).toBeNull();
  });

  test('is unknown from the attempt that left it unknown, until one was done', () => {
    const unknown = failedOutput({ done: { ...NO_OUTCOME, cause: 'OUTCOME_UNKNOWN' } });
    expect(findUnknownRequest(attempting(CALL), unknown, POLICY)).toBe(hashOf(CALL.args));
    expect(findUnknownRequest(attempting(CALL), failedOutput(), POLICY)).toBeNull();
    expect(findUnknownRequest(attempting({ ...CALL, unknown: 'x' }), failedOutput(), POLICY)).toBe('x');
    expect(findUnknownRequest(attempting({ ...CALL, unknown: 'x' }), failedOutput({ done: null }), POLICY)).toBe('x');
  });
});

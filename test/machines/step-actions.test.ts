// The actions and guards of a step one by one.

import { describe, expect, test } from '@jest/globals';
import { type StepMemory } from '../../machines/step-memory.js';
import { RUN_ENDING_DENIAL, UNDECIDED_AUTHORIZATION } from '../../src/core/step/authorization.js';
import { createMachines } from '../../machines/index.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import type { SeenProposal } from '../../src/core/contract/run/entry.js';
import { CASE, proposal } from '../fixtures/tree.js';
import {
  attempting,
  CALL,
  doneEvent,
  failedOutput,
  NO_OUTCOME,
  PROPOSER,
  READ,
  RECEIVED_AT,
  RETRYING_POLICY,
} from './attempts.js';
import { recordMachine, runAction, stateText, testGuard } from './chart.js';

const { step } = createMachines(RETRYING_POLICY);
const LATER = '2026-01-01T00:01:00.000Z';
const OVERLAY: OverlayFact = { epoch: 3, rules: [] };
const REF = artifactRef({ kind: 'result', case_id: CASE, bytes: Buffer.from('{"a":1}') });
const DENIAL = { decision: 'deny', rule_id: 'lane.tool_not_allowed', cause: 'LANE' } as const;

/** Runs an action of a step whose first attempt is running. */
const act = (name: string, over: Partial<StepMemory>, event: { readonly type: string }) =>
  runAction(step, name, attempting(over), event);
const withOutcome = (over: object) => doneEvent(failedOutput({ done: { ...NO_OUTCOME, ...over } }));

test('D1: the overlay of the timer counts for the next attempt', () => {
  const next_attempt = { reason: 'IO_ERROR', at: RECEIVED_AT };
  const memory = { ...CALL, next_attempt, mediated_run_id: 'run_agent.5', overlay: OVERLAY };
  const overlay = { epoch: null, problem: 'invalid' } as const;
  const { context, spawned, sent } = act('startRetry', memory, { type: 'WAKE', overlay } as never);
  expect(context['overlay']).toEqual(overlay);
  const request = expect.objectContaining({ request: expect.objectContaining({ overlay }) });
  expect(spawned).toEqual([['tool_gateway', 'run_agent.6', request]]);
  expect(sent).toEqual([['run_agent.6', expect.objectContaining({ type: 'AUTHORIZE', overlay })]]);
});

describe('C54: a step that waits for its next attempt', () => {
  const next_attempt = { reason: 'IO_ERROR', at: LATER };
  test.each([
    ['2026-01-01T00:00:59.999Z', false],
    [LATER, true],
  ])('is woken at %s: %p', (time, due) => {
    expect(testGuard(step, 'isRetryDue', attempting({ next_attempt }), { type: 'WAKE', time } as never)).toBe(due);
  });

  test('sets a timer for it', () => {
    const timer = { type: 'timer', run_id: PROPOSER.run_id, at: LATER };
    expect(act('setRetryTimer', { next_attempt }, { type: 'WAKE' }).emissions).toEqual([timer]);
  });
});

test('D7: an approval is reported as used with its digest, action and time', () => {
  const used = { type: 'APPROVAL_USED', digest: 'd', name: 'READ_FILE', at: RECEIVED_AT };
  const authorization = { ...UNDECIDED_AUTHORIZATION, digest: 'd' };
  expect(act('sendApprovalUsed', { ...READ, authorization }, { type: 'STARTED' }).sent).toEqual([[null, used]]);
});

describe('S0-13 C52: a mediated run that ended before its start', () => {
  const ending = { code: 'POLICY_VIOLATION', rule_id: 'lifecycle.run_ending', cause: 'LIFECYCLE' };
  test.each([
    ['names the rule that denied it', withOutcome({ denied_by: DENIAL }), { rule_id: DENIAL.rule_id, cause: 'LANE' }],
    ['was ended with its agent if no rule denied it', withOutcome({}), ending],
    ['was ended with its agent if it has no outcome', doneEvent(failedOutput({ done: null })), ending],
    ['was ended with its agent while the step waited for votes', { type: 'CANCEL', reason: 'stop' }, ending],
  ])('%s', (_what, event, fault) => {
    const { context } = act('applyMediatedRunDenial', READ, event);
    expect(context).toEqual({ fault: { code: 'POLICY_VIOLATION', ...fault }, phase_failed_at: 'AUTHORIZE' });
  });

  test('C53: a cancelled step has the verdict that its agent run is ending', () => {
    const { context } = act('denyEndingRun', READ, { type: 'CANCEL' });
    expect(context).toEqual({ authorization: { ...UNDECIDED_AUTHORIZATION, verdict: RUN_ENDING_DENIAL } });
  });
});

describe('the end of a mediated run', () => {
  const RESULT = { result: { a: 1 }, result_ref: REF };
  const applied = (over: Partial<StepMemory>, event: { readonly type: string }) =>
    act('applyRunResult', { unknown: 'before', ...over }, event).context;
  const completed = (outputs?: readonly unknown[]) => {
    const output = failedOutput({ state: 'completed', done: { ...NO_OUTCOME, ...RESULT } });
    return doneEvent(outputs === undefined ? output : ({ ...output, outputs } as typeof output));
  };

  test('with a result settles what was unknown, and lists what was produced, except for a read', () => {
    expect(applied(CALL, completed([REF]))).toEqual({ ...RESULT, produced: [REF], unknown: null });
    expect(applied(CALL, completed())).toEqual({ ...RESULT, produced: [], unknown: null });
    expect(applied(READ, completed([REF]))).toEqual({ ...RESULT, produced: [], unknown: null });
  });

  test('by a denial is a denial of the step', () => {
    expect(applied(READ, withOutcome({ denied_by: DENIAL }))).toEqual({
      fault: { code: 'POLICY_VIOLATION', rule_id: DENIAL.rule_id, cause: 'LANE' },
      phase_failed_at: 'AUTHORIZE',
      unknown: 'before',
    });
  });

  test.each([
    ['with a cause', withOutcome({ cause: 'TIMEOUT' }), 'TIMEOUT'],
    ['without a cause', withOutcome({}), 'INTERNAL'],
    ['without an outcome', doneEvent(failedOutput({ done: null })), 'INTERNAL'],
  ])('%s is a failure of EXECUTE', (_what, event, cause) => {
    expect(applied(READ, event)).toEqual({
      fault: { code: 'EXECUTION_ERROR', rule_id: `execute.${cause.toLowerCase()}`, cause },
      phase_failed_at: 'EXECUTE',
      unknown: 'before',
    });
  });
});

describe('S4-14: an action has a mediated run of its own kind', () => {
  test.each([
    ['CALL_TOOL', CALL.args, 'tool_gateway'],
    ['WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1' } }, 'db_write'],
    ['READ_RECORDS', { target: 'facts' }, 'db_read'],
  ])('%s', (action, args, kind) => {
    const { context, spawned } = act('startMediatedRun', { action, args }, { type: 'FACTS' });
    expect(spawned.map(([src, id]) => [src, id])).toEqual([[kind, 'run_agent.5']]);
    expect(context).toEqual({ attempts: 1 });
  });
});

/** Starts a step of this proposal. */
function start(machine: typeof step, payload: object, over: Partial<StepMemory>) {
  const raw = Buffer.from(JSON.stringify(payload));
  const ref = artifactRef({ kind: 'raw_payload', case_id: CASE, bytes: raw });
  const seen = over.seen == null ? null : { ...over.seen, payload_sha256: ref.hash_sha256 };
  const input = { ...attempting(over), payload: ref, raw, seen };
  const { actor, errors } = recordMachine(machine, 'run_agent/step', input);
  expect(errors).toEqual([]);
  return { actor, payload: ref };
}

describe('S0-04: the output of a step', () => {
  const outputOf = (payload: object, over: Partial<StepMemory> = {}, machine = step) => {
    const { actor, payload: ref } = start(machine, payload, over);
    expect(stateText(actor.getSnapshot())).toBe('RESPOND');
    return { output: actor.getSnapshot().output, ref };
  };
  const NOTHING = { step: true, mediated: 0, denied: false, read: null, unknown: null, requested: null };

  test('of a FINISH ends the run, and has produced its response', () => {
    const { output, ref } = outputOf(proposal('FINISH', { response: 'Done.' }));
    expect(output).toMatchObject({ ...NOTHING, invalid: false, finished: true, produced: [ref] });
  });

  test('of a rejected FINISH does neither', () => {
    const { output } = outputOf(proposal('FINISH', { answer: 1 }));
    expect(output).toMatchObject({ ...NOTHING, invalid: true, finished: false, produced: [] });
  });

  test('C19: of a repeated FINISH does neither', () => {
    const replaying = { ...RETRYING_POLICY.knobs, duplicate_proposal_ids: 'replay' } as const;
    const machine = createMachines({ ...RETRYING_POLICY, knobs: replaying }).step;
    const seen: SeenProposal = {
      step_index: 1,
      run_id: PROPOSER.run_id,
      payload_sha256: '',
      outcome: 'SUCCESS',
      error_code: null,
      response: REF,
    };
    const over = { seen, recorded_response: '{}' };
    const { output } = outputOf(proposal('FINISH', { response: 'Done.' }), over, machine);
    expect(output).toMatchObject({ ...NOTHING, invalid: false, finished: false, produced: [] });
  });
});

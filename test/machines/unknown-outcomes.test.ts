// Goal: an effect that may have happened is not executed again before its outcome is determined (D8). Method: real
// trees whose executor cannot determine the outcome of a call.

import { describe, expect, test } from '@jest/globals';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { RunRecords } from '../../src/runtime/ledger/run-records.js';
import { ANNA, GovernedTree, governedPolicy } from '../fixtures/governed.js';
import { AGENT, TREE } from '../fixtures/tree.js';

const FIRST = `${AGENT}.1`;
const SECOND = `${AGENT}.2`;
const DENIED = { outcome: 'DENIED', cause: 'UNSETTLED', rule_id: 'outcome.unsettled' };

/** An agent with a charge of unknown outcome. */
function chargeWithUnknownOutcome(d = new GovernedTree().working()): GovernedTree {
  d.call('billing.charge', { amount: 5 });
  d.result(FIRST, { status: 'unknown' });
  expect(d.responses.at(-1)).toMatchObject({ outcome: 'EXECUTION_ERROR', result: null });
  return d;
}
const performed = (d: GovernedTree) => d.commands.filter(({ kind }) => kind === 'perform').length;

describe('D8: the same request again', () => {
  test.each(['done', 'not_executed'] as const)('is denied until the outcome is determined as %s', (outcome) => {
    const d = chargeWithUnknownOutcome();
    d.call('billing.charge', { amount: 5 });
    expect(d.traces.at(-1)).toMatchObject(DENIED);
    expect(d.audit(SECOND)[0]).toMatchObject({ outcome: 'deny', authz: { rule_id: 'outcome.unsettled' } });
    expect(performed(d)).toBe(1);
    expect(d.resolve(FIRST, outcome).refused).toBe(false);
    expect(d.call('billing.charge', { amount: 5 }).commands).toMatchObject([{ kind: 'perform' }]);
  });

  test('is denied in any order of its arguments', () => {
    const d = new GovernedTree().working();
    d.act('WRITE_RECORD', { target: 'entities', mode: 'upsert', record: { id: 'e-1' } });
    d.result(FIRST, { status: 'unknown' });
    d.act('WRITE_RECORD', { record: { id: 'e-1' }, mode: 'upsert', target: 'entities' });
    expect(d.traces.at(-1)).toMatchObject(DENIED);
  });

  test('is the only one: a different request is allowed', () => {
    const d = chargeWithUnknownOutcome();
    for (const [tool, amount] of [
      ['billing.charge', 6],
      ['slow.tool', 5],
    ] as const) {
      const [command] = d.call(tool, { amount }).commands;
      expect(command).toMatchObject({ kind: 'perform' });
      d.done(command!.run_id);
    }
    expect(d.responses.slice(1)).toMatchObject([{ outcome: 'SUCCESS' }, { outcome: 'SUCCESS' }]);
  });

  test('D16: is also denied after a snapshot', () => {
    const d = chargeWithUnknownOutcome();
    const snapshot = JSON.parse(JSON.stringify(d.tree.snapshot())) as TreeSnapshot;
    const again = restoreTree(snapshot, d.inputs[0]!.materials);
    expect(again.unsettled).toEqual(d.tree.unsettled);
    d.call('billing.charge', { amount: 5 });
    expect(again.decide(d.inputs.at(-1)!).commands).toEqual([]);
  });
});

describe('D8 C54: if the outcome of an attempt is unknown, and other attempts followed', () => {
  const RETRYING = governedPolicy('retries: { max: 1, backoff_ms: 0 }\n');
  const chargeWithLostAttempt = (): GovernedTree => {
    const d = new GovernedTree(RETRYING).working();
    d.call('slow.tool', { amount: 5 });
    d.result(FIRST, { status: 'unknown' });
    expect(d.wake().commands).toMatchObject([{ run_id: SECOND, effect: { idempotency_key: FIRST } }]);
    return d;
  };

  test('one that was done settles the effect: the request may be made again', () => {
    const d = chargeWithLostAttempt();
    d.done(SECOND);
    expect(d.traces.at(-1)).toMatchObject({ outcome: 'SUCCESS' });
    expect(d.call('slow.tool', { amount: 5 }).commands).toMatchObject([{ kind: 'perform' }]);
  });

  test.each(['REFUSED', 'NOT_EXECUTED'] as const)('one that failed as %s does not settle the first', (cause) => {
    const d = chargeWithLostAttempt();
    d.failed(SECOND, cause);
    d.call('slow.tool', { amount: 5 });
    expect(d.traces.at(-1)).toMatchObject(DENIED);
    d.resolve(FIRST, 'done');
    expect(d.call('slow.tool', { amount: 5 }).commands).toMatchObject([{ kind: 'perform' }]);
  });

  test('one that the overlay denied does not settle the first', () => {
    const d = new GovernedTree(RETRYING).working();
    d.call('slow.tool', { amount: 5 });
    d.result(FIRST, { status: 'unknown' });
    d.overlay = { epoch: 1, rules: [{ rule_id: 'deny-1', reason: 'Stop.', tool: 'slow.tool' }] };
    d.wake();
    expect(d.traces.at(-1)).toMatchObject({ outcome: 'DENIED', cause: 'OVERLAY' });
    d.overlay = null;
    d.call('slow.tool', { amount: 5 });
    expect(d.traces.at(-1)).toMatchObject(DENIED);
  });
});

describe('D8: a resolved outcome', () => {
  const resolvedEvent = {
    action_type: 'system',
    outcome: 'success',
    outcome_reason: 'OUTCOME_RESOLVED:done',
    run_id: FIRST,
    actor: ANNA.actor,
    role_id: ANNA.role_id,
    notes: 'Looked.',
  };

  test('is an event of the run, which keeps its end', () => {
    const d = chargeWithUnknownOutcome();
    const { entries } = d.resolve(FIRST, 'done');
    expect(entries.map(({ entry }) => entry.type)).toEqual(['input', 'audit_event']);
    expect(entries[1]!.entry.body).toMatchObject(resolvedEvent);
    const records = new RunRecords();
    for (const { entry } of d.entries) records.fold(entry);
    expect(records.get(FIRST)).toMatchObject({ status: 'failed', outcome: 'failed:OUTCOME_UNKNOWN' });
    expect(d.tree.unsettled).toEqual([]);
  });

  test('is recorded for an ended tree too, and changes no state', () => {
    const d = chargeWithUnknownOutcome();
    d.act('FINISH', { response: '' });
    expect(d.tree.hasEnded).toBe(true);
    const ending = JSON.stringify(d.tree.snapshot().machine);
    const { refused, ended, commands, replies, entries } = d.resolve(FIRST, 'done');
    expect({ refused, ended, commands, replies }).toEqual({ refused: false, ended: [], commands: [], replies: [] });
    expect(entries.slice(1).map(({ entry }) => entry.body)).toMatchObject([resolvedEvent]);
    expect(JSON.stringify(d.tree.snapshot().machine)).toBe(ending);
    expect(d.resolve(FIRST, 'done').refused).toBe(true);
  });

  test.each([
    ['a run that has ended otherwise', `${AGENT}.2`],
    ['an agent run', AGENT],
    ['the root run', TREE],
    ['a run that there never was', 'run_nobody'],
  ])('C50: is rejected for %s', (_what, run_id) => {
    const d = chargeWithUnknownOutcome();
    d.call('billing.charge', { amount: 7 });
    d.done(`${AGENT}.2`);
    expect(d.resolve(run_id, 'done')).toMatchObject({ refused: true });
    d.call('billing.charge', { amount: 5 });
    expect(d.traces.at(-1)).toMatchObject(DENIED);
  });

  test('C50: is rejected the second time', () => {
    const d = chargeWithUnknownOutcome();
    d.resolve(FIRST, 'done');
    expect(d.resolve(FIRST, 'not_executed').refused).toBe(true);
  });

  test('affects only the agent that made the request', () => {
    const d = chargeWithUnknownOutcome(new GovernedTree().working(2));
    const other = `${TREE}.2`;
    d.call('billing.charge', { amount: 5 }, other);
    d.result(`${other}.1`, { status: 'unknown' });
    d.resolve(FIRST, 'done');
    d.call('billing.charge', { amount: 5 }, other);
    expect(d.traces.at(-1)).toMatchObject({ ...DENIED, run_id: other });
    expect(d.call('billing.charge', { amount: 5 }).commands).toMatchObject([{ kind: 'perform' }]);
  });
});

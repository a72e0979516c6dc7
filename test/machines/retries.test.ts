// Goal: a failed action is retried only if it is idempotent, never early, never forever, and every attempt is a run of
// its own. Method: real trees with failures on command.

import { describe, expect, test } from '@jest/globals';
import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import type { RunRecord } from '../../src/core/contract/run/run-record.js';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { RunRecords } from '../../src/runtime/ledger/run-records.js';
import { GovernedTree, governedPolicy } from '../fixtures/governed.js';
import { AGENT, editedPolicy, essence, TREE, TreeDriver } from '../fixtures/tree.js';

const [FIRST, SECOND, THIRD] = [`${AGENT}.1`, `${AGENT}.2`, `${AGENT}.3`] as const;
const RETRIES = 'retries: { max: 2, backoff_ms: 10000 }\n';
const RETRYING = governedPolicy(RETRIES);
const FILES = editedPolicy({ actions: [['knobs:\n', `${RETRIES}knobs:\n`]] });

const records = (d: TreeDriver): readonly RunRecord[] => {
  const fold = new RunRecords();
  for (const { entry } of d.entries) fold.fold(entry);
  return fold.all();
};
const record = (d: TreeDriver, run_id: string): RunRecord => records(d).find((run) => run.run_id === run_id)!;
const performs = (d: TreeDriver) =>
  d.commands.flatMap((command) => (command.kind === 'perform' ? [command.effect] : []));

/** An agent whose call of an idempotent tool has failed. */
function failedOnce(policies = RETRYING): GovernedTree {
  const d = new GovernedTree(policies).working();
  d.call('slow.tool', { amount: 5 });
  d.failed(FIRST, 'NOT_EXECUTED');
  return d;
}

test('S4-66 S4-67 S4-68 S4-69 C54: every attempt is a new run of the agent, below the first one, in the same tree', () => {
  const d = failedOnce();
  d.wait(9_000).wake();
  d.failed(SECOND, 'TIMEOUT');
  d.wait(19_000).wake();
  const first = d.created(FIRST);
  const { request } = first;
  for (const [run_id, retry] of [
    [SECOND, { count: 1, reason: 'NOT_EXECUTED', of: FIRST, logical_parent_run_id: AGENT }],
    [THIRD, { count: 2, reason: 'TIMEOUT', of: SECOND, logical_parent_run_id: AGENT }],
  ] as const) {
    const { created_at_utc } = d.created(run_id);
    expect(d.created(run_id)).toEqual({ ...first, run_id, parent_run_id: FIRST, retry, request, created_at_utc });
    const { count, ...rest } = retry;
    const { reason: retry_reason, of: retry_of, logical_parent_run_id } = rest;
    expect(record(d, run_id)).toMatchObject({
      parent_run_id: FIRST,
      root_run_id: TREE,
      metadata: { retry_count: String(count), retry_reason, retry_of, logical_parent_run_id },
    });
  }
  expect(first).toMatchObject({ parent_run_id: AGENT, retry: null });
  expect(record(d, FIRST).metadata).toBeUndefined();
  d.done(THIRD);
  expect(d.endings).toMatchObject({ [FIRST]: 'failed:NOT_EXECUTED', [SECOND]: 'failed:TIMEOUT' });
  expect(d.endings[THIRD]).toBe('completed:completed');
  expect(d.traces).toMatchObject([{ outcome: 'SUCCESS', mediated_run_id: THIRD }]);
  d.call('billing.charge', { amount: 1 });
  expect(d.created(`${AGENT}.4`)).toMatchObject({ parent_run_id: AGENT, retry: null });
});

describe('C54: the same effect has the same key in every attempt', () => {
  const keys = (d: TreeDriver) => performs(d).map(({ run_id, idempotency_key }) => [run_id, idempotency_key]);
  test('of a tool', () => {
    const d = failedOnce();
    d.wait(9_000).wake();
    expect(keys(d)).toEqual([
      [FIRST, FIRST],
      [SECOND, FIRST],
    ]);
    const [one, other] = performs(d);
    expect({ ...other, run_id: FIRST }).toEqual(one);
  });

  test('of a record, which a db_write run executes', () => {
    const d = new GovernedTree(RETRYING).working();
    d.act('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1' } });
    d.failed(FIRST, 'IO_ERROR');
    d.wait(9_000).wake();
    expect(d.created(SECOND)).toMatchObject({ run_kind: 'db_write', parent_run_id: FIRST });
    expect(keys(d)).toEqual([
      [FIRST, FIRST],
      [SECOND, FIRST],
    ]);
  });

  test('of a file, which a db_write run below the attempt executes', () => {
    const d = new TreeDriver({ policies: FILES }).ready();
    d.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
    d.failed(`${FIRST}.1`, 'NO_SPACE');
    d.wait(9_000).wake();
    d.failed(`${SECOND}.1`, 'NO_SPACE');
    d.wait(19_000).wake();
    expect(keys(d)).toEqual([
      [`${FIRST}.1`, `${FIRST}.1`],
      [`${SECOND}.1`, `${FIRST}.1`],
      [`${THIRD}.1`, `${FIRST}.1`],
    ]);
    expect(d.created(`${SECOND}.1`)).toMatchObject({ parent_run_id: SECOND, retry: null });
  });
});

test('C54: the delay doubles with every attempt, and no attempt starts early', () => {
  const d = failedOnce();
  expect(d.tree.timers).toMatchObject([{ run_id: AGENT, at: '2026-01-01T00:00:14.000Z' }]);
  expect(d.story([d.wait(8_999).wake()])).toEqual(['input:wake']);
  expect(d.story([d.wait(-999).wake()])).toContain(`created:tool_gateway@${SECOND}`);
  d.failed(SECOND, 'NOT_EXECUTED');
  expect(d.decisions.at(-1)!.timers).toEqual([{ run_id: AGENT, at: '2026-01-01T00:00:35.000Z' }]);
  expect(d.story([d.wait(18_999).wake()])).toEqual(['input:wake']);
  expect(d.story([d.wait(-999).wake()])).toContain(`created:tool_gateway@${THIRD}`);
});

test('C54: it is retried as often as policy permits, and answered once, with the last failure', () => {
  const d = failedOnce();
  d.wait(9_000).wake();
  d.failed(SECOND, 'NOT_EXECUTED');
  d.wait(19_000).wake();
  expect(d.responses).toEqual([]);
  d.failed(THIRD, 'TIMEOUT');
  expect(d.responses).toMatchObject([{ outcome: 'EXECUTION_ERROR', result: null }]);
  expect(d.traces).toMatchObject([{ rule_id: 'execute.timeout', mediated_run_id: THIRD }]);
  expect(performs(d)).toHaveLength(3);
  expect(d.wait(100_000).wake().commands).toEqual([]);
});

describe('C54: never tried again is', () => {
  const once = (d: TreeDriver, outcome: string): void => {
    expect(d.traces).toMatchObject([{ outcome }]);
    expect(d.tree.timers).toEqual([]);
    expect(d.wait(1_000_000).wake().commands).toEqual([]);
  };
  test.each(['DELETE_FILE', 'CREATE_DIRECTORY'])('%s, which is not idempotent', (action) => {
    const d = new TreeDriver({ policies: FILES }).ready();
    d.act(action, { path: '/sandbox/a.txt' });
    d.failed(`${FIRST}.1`, 'IO_ERROR');
    once(d, 'EXECUTION_ERROR');
  });

  test('a tool that is not registered as idempotent', () => {
    const d = new GovernedTree(RETRYING).working();
    d.call('billing.charge', { amount: 5 });
    d.failed(FIRST, 'NOT_EXECUTED');
    once(d, 'EXECUTION_ERROR');
  });

  test('a failure that is not retryable', () => {
    const d = new GovernedTree(RETRYING).working();
    d.call('slow.tool');
    d.failed(FIRST, 'REFUSED');
    once(d, 'EXECUTION_ERROR');
  });

  test('a denied action', () => {
    const d = new GovernedTree(RETRYING).working();
    d.overlay = DENY_TOOL;
    d.call('slow.tool');
    once(d, 'DENIED');
  });

  test('any action, if policy does not enable retries', () => {
    const d = failedOnce(governedPolicy());
    once(d, 'EXECUTION_ERROR');
  });
});

const DENY_TOOL: OverlayFact = { epoch: 7, rules: [{ rule_id: 'deny-7', reason: 'It is down.', tool: 'slow.tool' }] };

test('D1 C54: the overlay is checked again for every attempt, and its denial ends the retries', () => {
  const d = failedOnce();
  d.overlay = DENY_TOOL;
  expect(d.story([d.wait(9_000).wake()])).toEqual([
    'input:wake',
    `created:tool_gateway@${SECOND}`,
    `authz_decision:deny(overlay.deny-7)@${SECOND}`,
    `system:deny(denied:overlay.deny-7)@${SECOND}`,
    'trace:DENIED',
  ]);
  expect(d.audit(SECOND)[0]?.authz?.policy_ref).toMatch(/ overlay@7$/);
  expect(performs(d)).toHaveLength(1);
  expect(d.wait(1_000_000).wake().commands).toEqual([]);
});

describe('C53 C54: while it waits for a retry', () => {
  test('a cancel ends it at once, with the existing failure', () => {
    const d = failedOnce();
    d.cancel();
    expect(d.traces).toMatchObject([{ outcome: 'EXECUTION_ERROR', rule_id: 'execute.not_executed' }]);
    expect(d.endings).toMatchObject({ [AGENT]: 'cancelled:by_caller', [TREE]: 'cancelled:by_caller' });
    expect(d.tree.timers).toEqual([]);
    expect(d.wait(9_000).wake().refused).toBe(true);
  });

  test('an interrupt ends it at once, because no caller waits for the result', () => {
    const d = failedOnce();
    d.send({ kind: 'interrupt', run_id: AGENT });
    expect(d.endings).toMatchObject({ [AGENT]: 'failed:INTERRUPTED' });
    expect(d.responses).toHaveLength(1);
    expect(d.tree.timers).toEqual([]);
  });

  test('an interrupt before the failure makes that attempt the last', () => {
    const d = new GovernedTree(RETRYING).working();
    d.call('slow.tool');
    d.send({ kind: 'interrupt', run_id: AGENT });
    d.failed(FIRST, 'NOT_EXECUTED');
    expect(d.endings).toMatchObject({ [AGENT]: 'failed:INTERRUPTED' });
    expect(d.tree.timers).toEqual([]);
  });

  test('the end of the proposals waits for it', () => {
    const d = failedOnce();
    expect(d.send({ kind: 'end', run_id: AGENT }).ended).toEqual([]);
    d.wait(8_000).wake();
    d.done(SECOND);
    expect(d.responses).toMatchObject([{ outcome: 'SUCCESS' }]);
    expect(d.endings[AGENT]).toBe('completed:end_of_input');
  });

  test('D16: the tree can be restored from a snapshot', () => {
    const d = failedOnce();
    const snapshot = JSON.parse(JSON.stringify(d.tree.snapshot())) as TreeSnapshot;
    const again = restoreTree(snapshot, d.inputs[0]!.materials);
    expect(again.timers).toMatchObject([{ run_id: AGENT, at: '2026-01-01T00:00:14.000Z' }]);
    const woken = d.wait(9_000).wake();
    expect(essence(again.decide(d.inputs.at(-1)!))).toBe(essence(woken));
    expect(woken.commands).toMatchObject([{ run_id: SECOND, effect: { idempotency_key: FIRST } }]);
  });
});

test("C54: the tree's budget of calls limits its attempts", () => {
  const d = failedOnce(governedPolicy(`retries: { max: 9, backoff_ms: 0 }\nbudgets: { tool_calls: 2 }\n`));
  d.wake();
  d.failed(SECOND, 'NOT_EXECUTED');
  expect(d.traces).toMatchObject([{ outcome: 'EXECUTION_ERROR', mediated_run_id: SECOND }]);
  d.call('slow.tool');
  expect(d.traces.at(-1)).toMatchObject({ outcome: 'DENIED', cause: 'BUDGET', rule_id: 'budget.tool_calls' });
});

test('S4-70: an ended attempt stays as it was recorded, whatever later attempts do', () => {
  const d = failedOnce();
  const first = record(d, FIRST);
  expect(first).toMatchObject({ status: 'failed', error: { error_code: 'NOT_EXECUTED', retryable: true } });
  d.wait(9_000).wake();
  d.failed(SECOND, 'TIMEOUT');
  const second = record(d, SECOND);
  d.wait(19_000).wake();
  d.done(THIRD);
  d.act('FINISH', { response: '' });
  expect(record(d, FIRST)).toEqual(first);
  expect(record(d, SECOND)).toEqual(second);
  expect(records(d).map(({ run_id, status }) => [run_id, status])).toEqual([
    [TREE, 'completed'],
    [AGENT, 'completed'],
    [FIRST, 'failed'],
    [SECOND, 'failed'],
    [THIRD, 'completed'],
  ]);
});

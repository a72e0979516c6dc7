// Guarantees to an embedding service, end to end: partial outputs, taxonomy pins, budgets, approvals of actions, the
// overlay on a running tree, and the settlement of unknown outcomes.

import { afterEach, expect, test } from '@jest/globals';
import Type from 'typebox';
import { overlayFiles } from '../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../src/home/policy/overlay-writer.js';
import type { StepResponse } from '../../src/core/contract/run/response.js';
import { ActionFailedError } from '../../src/core/errors.js';
import { defineTool } from '../../src/runtime/effects/define-effects.js';
import { findLifecycleFaults } from '../../src/kernel/replay/lifecycle-faults.js';
import { homePaths } from '../../src/home/home.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../fixtures/service.js';
import { proposal } from '../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

type Edit = NonNullable<BenchOptions['edit']>;
const within =
  (file: Parameters<Edit>[0], more: (text: string) => string): Edit =>
  (name, text) =>
    name === file ? more(serviceEdit(name, text)) : serviceEdit(name, text);

const charge = (amount: number): string =>
  JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount } }));

const outcomeOf = (response: StepResponse): string => ('outcome' in response ? response.outcome : '');

const closed = { additionalProperties: false } as const;
const halfway = defineTool({
  name: 'billing.charge',
  input: Type.Object({ amount: Type.Integer() }, closed),
  output: Type.Object({}, closed),
  run: () => {
    throw new ActionFailedError('the second half failed', { partial: { first_half: 'done' } });
  },
});

test.each([
  [true, 1],
  [false, 0],
])('S4-65: partial output of a failed run is stored only if its lane permits it: %s', async (permitted, kept) => {
  const edit = within('lanes', (text) =>
    permitted
      ? text.replace('    purpose: Tools and records of one case.', '    purpose: x\n    partial_outputs: true')
      : text,
  );
  bench = await Bench.open({ edit, tools: [halfway] });
  const agent = await bench.turnpike.startAgent(CASE_AGENT);
  expect(await agent.submit(charge(1))).toMatchObject({ outcome: 'EXECUTION_ERROR', result: null });
  const record = await bench.turnpike.ledger.run(`${agent.run_id}.1`);
  expect(record).toMatchObject({ status: 'failed', error: { error_code: 'FAILED', retryable: false } });
  expect(record?.outputs.artifact_refs).toHaveLength(kept);
  const inputs = (await bench.entries()).flatMap((entry) => (entry.type === 'input' ? [entry.body] : []));
  const result = inputs.find(({ kind }) => kind === 'result');
  expect(result).toMatchObject(permitted ? { result: { artifact_kind: 'result' } } : { result: null });
});

test('S4-30: a caller that names the version of its mapping is pinned to it, and cannot name two', async () => {
  const made = service();
  const edit = within('lanes', (text) =>
    text.replace(
      'scope: { requires: [case_id, run_id], prohibits: [] }',
      'scope: { requires: [case_id, run_id, coa_version], prohibits: [] }',
    ),
  );
  bench = await Bench.open({ edit, tools: made.tools });
  const pinned = await bench.turnpike.startAgent({ ...CASE_AGENT, scope: { coa_version: 'coa-7' } });
  expect(await pinned.submit(charge(1))).toMatchObject({ outcome: 'SUCCESS' });
  const record = await bench.turnpike.ledger.run(`${pinned.run_id}.1`);
  expect(record?.taxonomy_versions).toEqual({ coa: 'coa-7' });
  const torn = await bench.turnpike.startAgent({
    ...CASE_AGENT,
    scope: { coa_version: 'coa-7' },
    taxonomy: { coa: 'coa-8' },
  });
  expect(await torn.submit(charge(1))).toMatchObject({ outcome: 'DENIED' });
  const without = await bench.turnpike.startAgent(CASE_AGENT);
  expect(await without.submit(charge(1))).toMatchObject({ outcome: 'DENIED' });
  expect((await bench.bodies('step_trace')).map(({ rule_id }) => rule_id)).toEqual([
    null,
    'scope.mismatch.coa_version',
    'scope.missing.coa_version',
  ]);
});

test('a budget of the caller is spent by tool calls, tokens and steps, and an exhausted one is a denial', async () => {
  const made = service();
  bench = await Bench.open({ edit: serviceEdit, tools: made.tools });
  const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, budget: { tool_calls: 2, tokens: 1_000 } });
  const outcomes: string[] = [];
  for (const amount of [1, 2, 3]) outcomes.push(outcomeOf(await agent.submit(charge(amount))));
  const think = JSON.stringify(proposal('THINK', {}));
  outcomes.push(outcomeOf(await agent.submit(think, { tokens: 1_000 })));
  outcomes.push(outcomeOf(await agent.submit(JSON.stringify(proposal('FINISH', { response: 'Done.' })))));
  expect(outcomes).toEqual(['SUCCESS', 'SUCCESS', 'DENIED', 'DENIED', 'SUCCESS']);
  expect((await bench.bodies('step_trace')).map(({ cause, rule_id }) => [cause, rule_id])).toEqual([
    [null, null],
    [null, null],
    ['BUDGET', 'budget.tool_calls'],
    ['BUDGET', 'budget.tokens'],
    [null, null],
  ]);
  expect(made.world.effects).toHaveLength(2);
});

test('D7: an action that needs approval is denied until its exact request is approved, and then executed once', async () => {
  const made = service();
  const approvals =
    'approvals:\n  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';
  bench = await Bench.open({ edit: within('actions', (text) => `${text}\n${approvals}`), tools: made.tools });
  const { turnpike } = bench;
  const agent = await turnpike.startAgent(CASE_AGENT);
  expect(await agent.submit(charge(2_000))).toMatchObject({
    outcome: 'DENIED',
    error: { error_code: 'POLICY_VIOLATION', message: 'This needs an approval' },
  });
  const required = (await bench.bodies('audit_event')).find(({ authz }) => authz?.rule_id === 'approval.required');
  const digest = required?.request_hash_sha256 ?? '';
  const vote = { run: agent.run_id, digests: [digest], decision: 'approve', role: 'ATTORNEY_ADMIN' } as const;
  expect(await turnpike.approve({ ...vote, actor: 'anna' })).toEqual([
    { digest, counted: true, rule_id: 'approval.granted' },
  ]);
  expect(await agent.submit(charge(5_000))).toMatchObject({ outcome: 'DENIED' });
  expect(await agent.submit(charge(2_000))).toMatchObject({ outcome: 'SUCCESS' });
  expect(await agent.submit(charge(2_000))).toMatchObject({ outcome: 'DENIED' });
  expect(await turnpike.approve({ ...vote, actor: 'bert' })).toMatchObject([
    { counted: false, rule_id: 'approval.consumed' },
  ]);
  expect(made.world.effects).toMatchObject([{ amount: 2_000 }]);
  expect((await bench.bodies('step_trace')).map(({ rule_id }) => rule_id)).toEqual([
    'approval.required',
    'approval.required',
    null,
    'approval.consumed',
  ]);
});

test('D1: an overlay rule affects a running tree at once, changes no pin, and can be lifted', async () => {
  const made = service();
  bench = await Bench.open({ edit: serviceEdit, tools: made.tools });
  const { keys, overlay } = homePaths(bench.home);
  const files = overlayFiles(overlay, keys);
  const agent = await bench.turnpike.startAgent(CASE_AGENT);
  const issued_at_utc = '2026-01-01T00:00:00.000Z';
  expect(await agent.submit(charge(1))).toMatchObject({ outcome: 'SUCCESS' });
  const rule = { rule_id: 'deny-1', reason: 'The bank has an incident.', tool: 'billing.charge' };
  await writeOverlay(files, { issued_at_utc, rules: () => [rule] });
  expect(await agent.submit(charge(2))).toMatchObject({ outcome: 'DENIED', error: { message: 'This is suspended' } });
  await writeOverlay(files, { issued_at_utc, rules: () => [] });
  expect(await agent.submit(charge(3))).toMatchObject({ outcome: 'SUCCESS' });
  expect(made.world.effects.map(({ amount }) => amount)).toEqual([1, 3]);
  const decisions = (await bench.bodies('audit_event')).filter(
    ({ action_type, run_id }) => action_type === 'authz_decision' && run_id.startsWith(`${agent.run_id}.`),
  );
  expect(
    decisions.map(({ authz }) => [authz?.rule_id, / overlay@\d+$/.exec(authz?.policy_ref ?? '')?.[0] ?? '']),
  ).toEqual([
    ['lane.granted', ''],
    ['overlay.deny-1', ' overlay@1'],
    ['lane.granted', ' overlay@2'],
  ]);
  expect(new Set(decisions.map(({ policy_versions }) => JSON.stringify(policy_versions))).size).toBe(1);
});

test('D8: an effect with an unknown outcome is not repeated until a person settles that it was not executed', async () => {
  const made = service();
  made.world.mode = 'lose_before';
  bench = await Bench.open({ edit: serviceEdit, tools: made.tools });
  const { turnpike } = bench;
  const agent = await turnpike.startAgent(CASE_AGENT);
  expect(await agent.submit(charge(7))).toMatchObject({ outcome: 'EXECUTION_ERROR' });
  made.world.mode = 'answer';
  expect(await agent.submit(charge(7))).toMatchObject({
    outcome: 'DENIED',
    error: { message: 'It is not known whether the same action happened before' },
  });
  expect(await agent.submit(charge(8))).toMatchObject({ outcome: 'SUCCESS' });
  const by = { actor: 'anna', role: 'ATTORNEY_ADMIN' };
  const run = `${agent.run_id}.1`;
  await turnpike.resolve({ run, outcome: 'not_executed', note: 'The bank has no such entry.', ...by });
  await expect(turnpike.resolve({ run, outcome: 'done', ...by })).rejects.toMatchObject({
    code: 'INVALID_STATE_TRANSITION',
  });
  expect(await agent.submit(charge(7))).toMatchObject({ outcome: 'SUCCESS' });
  expect(made.world.effects.map(({ amount }) => amount)).toEqual([8, 7]);
  expect(await turnpike.ledger.run(run)).toMatchObject({ status: 'failed', error: { error_code: 'OUTCOME_UNKNOWN' } });
  const resolved = (await bench.bodies('audit_event')).find(
    ({ outcome_reason }) => outcome_reason === 'OUTCOME_RESOLVED:not_executed',
  );
  expect(resolved).toMatchObject({
    run_id: run,
    actor: { actor_id: 'anna' },
    input_artifacts: [{ artifact_kind: 'note' }],
  });
  expect(resolved).not.toHaveProperty('notes');
});

test('D8: a process without the tool leaves its lost call to the service that has the tool', async () => {
  // Longer than any closing: the number of ticks of a closing depends on the disk.
  const made = service({ reconciles: true, timeout: 86_400_000 });
  made.world.mode = 'hang';
  const first = await Bench.open({ edit: serviceEdit, tools: made.tools });
  const agent = await first.turnpike.startAgent({ ...CASE_AGENT, link: 'remote' });
  agent.submit(charge(7)).catch(() => undefined);
  while (made.world.calls.length === 0) await new Promise(setImmediate);
  // Closing waits ten seconds for the call, and no longer.
  const closing = { over: false };
  const closed = first.turnpike.close().then(() => (closing.over = true));
  while (!closing.over) {
    first.clock.advance(100);
    await new Promise(setImmediate);
  }
  await closed;
  const stranger = await Bench.reopen(first);
  expect(stranger.turnpike.recovery).toMatchObject({ trees: 1, settled: 0 });
  expect(await stranger.turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ status: 'running' });
  await stranger.turnpike.close();
  bench = await Bench.reopen(first, { tools: made.tools });
  expect(bench.turnpike.recovery).toMatchObject({ settled: 1 });
  expect(await bench.turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ status: 'completed' });
  expect(made.world.effects).toHaveLength(1);
});

test('D1 D7: a person whom the overlay has suspended cannot vote', async () => {
  const made = service();
  const approvals =
    'approvals:\n  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';
  bench = await Bench.open({ edit: within('actions', (text) => `${text}\n${approvals}`), tools: made.tools });
  const { keys, overlay } = homePaths(bench.home);
  const agent = await bench.turnpike.startAgent(CASE_AGENT);
  await agent.submit(charge(1));
  const digest = (await bench.bodies('audit_event')).find(
    ({ authz }) => authz?.rule_id === 'approval.required',
  )?.request_hash_sha256;
  const rule = { rule_id: 'deny-1', reason: 'Her key was stolen.', actor_id: 'anna' };
  await writeOverlay(overlayFiles(overlay, keys), { issued_at_utc: '2026-01-01T00:00:00.000Z', rules: () => [rule] });
  const vote = { run: agent.run_id, digests: [digest ?? ''], decision: 'approve', role: 'ATTORNEY_ADMIN' } as const;
  expect(await bench.turnpike.approve({ ...vote, actor: 'anna' })).toMatchObject([
    { counted: false, rule_id: 'approval.role_unknown' },
  ]);
  expect(await bench.turnpike.approve({ ...vote, actor: 'bert' })).toMatchObject([{ counted: true }]);
});

test('S4-80: approvals, retries and settled outcomes follow the lifecycle, according to an independent reader', async () => {
  const made = service();
  made.world.mode = 'lose_before';
  bench = await Bench.open({ edit: serviceEdit, tools: made.tools });
  const agent = await bench.turnpike.startAgent(CASE_AGENT);
  await agent.submit(charge(7));
  await agent.end();
  await bench.turnpike.resolve({ run: `${agent.run_id}.1`, outcome: 'done', actor: 'anna', role: 'ATTORNEY_ADMIN' });
  expect(findLifecycleFaults(await bench.entries())).toEqual([]);
});

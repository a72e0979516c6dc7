// Actions that the caller of an agent executes (U-08 to U-10): the step ends with the decision, and the caller reports.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import type { StepResponse } from '../../../src/core/contract/run/response.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import type { ActionReport } from '../../../src/runtime/agents/action-reports.js';
import { RunCheck } from '../../../src/core/ledger/verification/check-runs.js';
import { defineExternalTool } from '../../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

const REPORT_MS = 60_000;
const shell = defineExternalTool({
  name: 'native.shell',
  input: Type.Object({ command: Type.String({ minLength: 1, maxLength: 1_000 }) }, { additionalProperties: false }),
  timeout: REPORT_MS,
  outside: true,
});

const APPROVALS = `
approvals:
  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const edit: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  return name === 'lanes' ? edited.replace('tools: [billing.charge', 'tools: [native.shell, billing.charge') : edited;
};
const withApprovals: typeof edit = (name, text) =>
  name === 'actions' ? `${edit(name, text)}${APPROVALS}` : edit(name, text);

const tools = [shell, ...service().tools];
const AGENT = { ...CASE_AGENT, case: 'case-0001', link: 'remote', idleMs: 10 * REPORT_MS } as const;

let bench: Bench;
let agent: AgentRun;
const open = async (options: BenchOptions = {}): Promise<void> => {
  bench = await Bench.open({ edit, tools, ...options });
  agent = await bench.turnpike.startAgent(AGENT);
};
beforeEach(() => open());
afterEach(() => bench.close());

/** Another process with the same home; the earlier one has ended without a word. */
async function nextProcess(): Promise<void> {
  await bench.turnpike.close();
  bench = await Bench.reopen(bench, { tools, clock: bench.clock });
}

const call = (command: string): Promise<StepResponse> =>
  agent.submit(JSON.stringify(proposal('CALL_TOOL', { tool: 'native.shell', input: { command } })));

/** An allowed call. @returns the run that waits for its report */
async function allowed(command: string): Promise<string> {
  const response = await call(command);
  expect(response).toMatchObject({ outcome: 'SUCCESS', result: { authorized: true } });
  return (response as { result: { run_id: string } }).result.run_id;
}

/** Lets the clock pass, until the run has ended: a timer of the clock begins a commit. */
async function passTime(ms: number, run_id: string): Promise<void> {
  bench.clock.advance(ms);
  while (['created', 'running'].includes((await recordOf(run_id))?.status ?? ''))
    await new Promise((resolve) => setImmediate(resolve));
}

const recordOf = (run_id: string) => bench.turnpike.ledger.run(run_id);
const report = (run: string, more: Partial<ActionReport> = {}): Promise<void> =>
  bench.turnpike.report({ run, status: 'done', ...more });
const eventsOf = async (run_id: string): Promise<readonly Extract<Entry, { type: 'audit_event' }>['body'][]> =>
  (await bench.entries()).flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.run_id === run_id ? [entry.body] : [],
  );

describe('U-08 U-09: an allowed call of an external tool', () => {
  test('ends its step with the decision; its run goes on until the report', async () => {
    const run = await allowed('npm test');
    expect(run).toBe(`${agent.run_id}.1`);
    expect(await recordOf(run)).toMatchObject({ status: 'running', run_kind: 'tool_gateway' });
    const trace = (await bench.entries()).find(({ type }) => type === 'step_trace');
    expect(trace?.body).toMatchObject({ outcome: 'SUCCESS', mediated_run_id: run });
    await report(run, { result: { stdout: 'ok' } });
    expect(await recordOf(run)).toMatchObject({ status: 'completed' });
  });

  test('is recorded as executed by the caller, and its outcome as reported', async () => {
    const run = await allowed('npm test');
    await report(run, { result: { stdout: 'ok' } });
    const created = (await bench.entries()).find(({ type, body }) => type === 'run_created' && body.run_id === run);
    expect(created?.body).toMatchObject({ executor: 'caller' });
    expect((await eventsOf(run)).map(({ action_type, outcome }) => [action_type, outcome])).toEqual([
      ['authz_decision', 'allow'],
      ['system', 'success'],
      ['tool_call', 'success'],
      ['system', 'success'],
    ]);
    expect((await eventsOf(run))[2]).toMatchObject({ reported: { actor: { actor_id: 'agent' }, match: 'exact' } });
  });

  test('an action that the platform executes is recorded as before', async () => {
    await agent.submit(JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 1 } })));
    const [, , called] = await eventsOf(`${agent.run_id}.1`);
    expect(called).not.toHaveProperty('reported');
    const created = (await bench.entries()).find(
      ({ type, body }) => type === 'run_created' && body.run_id !== agent.run_id,
    );
    expect(created?.body).not.toHaveProperty('executor');
  });

  test('does not wait for the report of another call', async () => {
    const runs = [await allowed('one'), await allowed('two'), await allowed('three')];
    await report(runs[2] ?? '');
    await report(runs[0] ?? '', { status: 'failed', result: { exit_code: 1 } });
    const four = await allowed('four');
    await report(four);
    await report(runs[1] ?? '');
    const states = await Promise.all([...runs, four].map(async (run) => (await recordOf(run))?.status));
    expect(states).toEqual(['failed', 'completed', 'completed', 'completed']);
    expect(await agent.end()).toMatchObject({ state: 'completed' });
  });

  test('a repeated request gets the recorded response, also in the next process', async () => {
    const raw = JSON.stringify(proposal('CALL_TOOL', { tool: 'native.shell', input: { command: 'npm test' } }));
    const first = await agent.respond(raw, { inputId: 'one' });
    expect(await agent.respond(raw, { inputId: 'one' })).toBe(first);
    await nextProcess();
    expect(await bench.turnpike.respond(agent.run_id, raw, { inputId: 'one' })).toBe(first);
  });

  test('a report that failed has the cause FAILED and its result', async () => {
    const run = await allowed('false');
    await report(run, { status: 'failed', result: { exit_code: 1 } });
    const [, , called] = await eventsOf(run);
    expect(called).toMatchObject({ outcome: 'failure', error: { error_code: 'FAILED' }, reported: { match: 'exact' } });
    expect(called?.output_artifacts).toHaveLength(1);
  });
});

describe('U-10: without a report, the outcome is unknown', () => {
  const UNKNOWN = { status: 'failed', outcome: 'failed:OUTCOME_UNKNOWN' };

  test('after the timeout of the tool', async () => {
    const run = await allowed('sleep 100');
    bench.clock.advance(REPORT_MS - 1);
    expect(await recordOf(run)).toMatchObject({ status: 'running' });
    await passTime(1, run);
    expect(await recordOf(run)).toMatchObject(UNKNOWN);
    const [, , called] = await eventsOf(run);
    expect(called).toMatchObject({ outcome: 'failure', severity: 'critical' });
    expect(called).not.toHaveProperty('reported');
    expect(await allowed('sleep 100')).not.toBe(run);
  });

  test('after a restart, the deadline still holds', async () => {
    const [late, early] = [await allowed('sleep 100'), await allowed('ls')];
    await nextProcess();
    await report(early);
    await passTime(REPORT_MS, late);
    expect([(await recordOf(early))?.status, (await recordOf(late))?.status]).toEqual(['completed', 'failed']);
  });

  test.each(['end', 'cancel'] as const)('before the agent run ends by %s', async (ending) => {
    const runs = [await allowed('one'), await allowed('two')];
    await (ending === 'end' ? agent.end() : agent.cancel('operator'));
    for (const run of runs) expect(await recordOf(run)).toMatchObject(UNKNOWN);
    expect((await agent.finished).state).toBe(ending === 'end' ? 'completed' : 'cancelled');
  });

  test('before a FINISH ends the agent run', async () => {
    const run = await allowed('one');
    expect(await agent.submit(JSON.stringify(proposal('FINISH', { response: 'Done.' })))).toMatchObject({
      outcome: 'SUCCESS',
    });
    expect(await recordOf(run)).toMatchObject(UNKNOWN);
    expect((await agent.finished).state).toBe('completed');
  });

  test('an operator can settle it (D8)', async () => {
    const run = await allowed('one');
    await report(run, { status: 'unknown' });
    expect(await recordOf(run)).toMatchObject(UNKNOWN);
    await bench.turnpike.resolve({ run, outcome: 'done', actor: 'olga', role: 'ATTORNEY_ADMIN' });
    await expect(
      bench.turnpike.resolve({ run, outcome: 'done', actor: 'olga', role: 'ATTORNEY_ADMIN' }),
    ).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
  });
});

describe('U-09: an agent run with an open call', () => {
  test('is not idle; its idle time counts from the last report', async () => {
    const run = await allowed('a long build');
    bench.clock.advance(REPORT_MS - 1);
    await report(run);
    bench.clock.advance(10 * REPORT_MS - 1);
    expect(await recordOf(agent.run_id)).toMatchObject({ status: 'running' });
    await passTime(1, agent.run_id);
    expect(await recordOf(agent.run_id)).toMatchObject({ status: 'cancelled' });
  });

  test('is not idle either if the time for the report is longer than its idle time', async () => {
    agent = await bench.turnpike.startAgent({ ...AGENT, idleMs: REPORT_MS / 4 });
    const run = await allowed('a long build');
    bench.clock.advance(REPORT_MS / 2);
    await report(run);
    expect(await recordOf(run)).toMatchObject({ status: 'completed' });
    expect(await recordOf(agent.run_id)).toMatchObject({ status: 'running' });
  });
});

test('U-10: a verification finds an outcome that is recorded as reported and was not, or the reverse', async () => {
  const run = await allowed('one');
  await report(run);
  const findingsOf = (entries: readonly Entry[]): string[] => {
    const check = new RunCheck();
    return entries.flatMap((entry, index) => check.take(entry, index).map(({ finding }) => finding.rule));
  };
  // A later input closes the turn of the report.
  await agent.end();
  const entries = await bench.entries();
  expect(findingsOf(entries)).toEqual([]);
  const changed = structuredClone(entries);
  for (const { type, body } of changed) if (type === 'audit_event') Reflect.deleteProperty(body, 'reported');
  expect(findingsOf(changed)).toEqual(['outcome.untold']);
});

describe('U-10: a report', () => {
  test('is accepted once: the same again changes nothing, another is rejected', async () => {
    const run = await allowed('one');
    await report(run, { result: { n: 1 } });
    const before = (await bench.entries()).length;
    await report(run, { result: { n: 1 } });
    expect(await bench.entries()).toHaveLength(before);
    for (const other of [{ result: { n: 2 } }, { status: 'failed', result: { n: 1 } }] as const)
      await expect(report(run, other)).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
    expect(await bench.entries()).toHaveLength(before);
  });

  test('is rejected after the deadline, and the rejection is recorded', async () => {
    const run = await allowed('one');
    await passTime(REPORT_MS, run);
    await expect(report(run)).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
    expect((await bench.entries()).at(-1)?.body).toMatchObject({ outcome_reason: 'INVALID_STATE_TRANSITION' });
  });

  test('is rejected for a run that the platform executes', async () => {
    await agent.submit(JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 1 } })));
    await expect(report(`${agent.run_id}.1`)).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
  });

  test.each(['run_unknown.1.1', 'run_', '', 'x.y'])('is rejected for an unknown run: %j', async (run) => {
    await expect(report(run)).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
  });

  test('is rejected for the agent run itself', async () => {
    await expect(report(agent.run_id)).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
  });

  test('with a wrong member is rejected before it is recorded', async () => {
    const run = await allowed('one');
    const before = (await bench.entries()).length;
    for (const wrong of [
      { status: 'fine' },
      { match: 'maybe' },
      { result: 7 },
      { result: [] },
      { result: { text: 'x'.repeat(1_048_576) } },
      { result: { n: Number.NaN } },
    ]) {
      await expect(report(run, wrong as never)).rejects.toMatchObject({ name: 'UsageError' });
    }
    expect(await bench.entries()).toHaveLength(before);
  });

  test('D14: has its result erased with the case', async () => {
    const run = await allowed('one');
    await report(run, { result: { secret: 'xyzzy' } });
    await agent.end();
    const log_index = (await bench.entries()).findIndex(({ body }) => 'kind' in body && body.kind === 'report');
    const sha256 = (await eventsOf(run))[2]?.response_hash_sha256 ?? '';
    const read = () => bench.turnpike.readContent({ log_index, sha256, actor: 'olga', role: 'ATTORNEY_ADMIN' });
    expect(Buffer.from((await read()) ?? []).toString()).toBe('{"secret":"xyzzy"}');
    await bench.turnpike.erase({ case: 'case-0001', actor: 'olga' });
    expect(await read()).toBeNull();
  });

  test('says that it is ambiguous', async () => {
    const run = await allowed('one');
    await report(run, { match: 'ambiguous' });
    expect((await eventsOf(run))[2]).toMatchObject({ reported: { match: 'ambiguous' } });
  });
});

describe('U-08: a call that is denied', () => {
  test('by its lane, counts as any denial', async () => {
    const other = await bench.turnpike.startAgent({ case: 'case-0001' });
    const response = await other.submit(
      JSON.stringify(proposal('CALL_TOOL', { tool: 'native.shell', input: { command: 'ls' } })),
    );
    expect(response).toMatchObject({ outcome: 'DENIED' });
    expect(await recordOf(`${other.run_id}.1`)).toMatchObject({ status: 'denied' });
    await other.end();
  });

  test('for lack of an approval, is allowed when it is repeated after the vote (D7)', async () => {
    await bench.close();
    await open({ edit: withApprovals });
    expect(await call('git push')).toMatchObject({ outcome: 'DENIED', error: { message: 'This needs an approval' } });
    const [asked] = await bench.turnpike.requests(agent.run_id);
    const ballot = {
      run: agent.run_id,
      digests: [asked?.digest ?? ''],
      actor: 'anna',
      role: 'ATTORNEY_ADMIN',
    } as const;
    await bench.turnpike.approve({ ...ballot, decision: 'approve' });
    const run = await allowed('git push');
    await report(run);
    // The approval is used.
    expect(await call('git push')).toMatchObject({ outcome: 'DENIED' });
  });
});

// FINISH while a request of the run waits for its approval, under each value of `finish_with_pending_request`. Every
// bench is verified and replayed when it is closed.

import { afterEach, describe, expect, test } from '@jest/globals';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { StepResponse } from '../../src/core/contract/run/response.js';
import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

const APPROVALS =
  'approvals:\n  - { for: WRITE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';
const AGENT = { key: 'task-1' } as const;

let bench: Bench;
afterEach(() => bench.close());

const openBench = async (rule: 'cancel' | 'deny' | 'wait' | null): Promise<void> => {
  const knob = rule === null ? '' : `\n  finish_with_pending_request: ${rule}`;
  bench = await Bench.open({
    edit: (name, text) =>
      name === 'actions' ? `${text.replace('checkpoints: batch', `checkpoints: batch${knob}`)}\n${APPROVALS}` : text,
  });
};

const write = (name = 'a'): string =>
  JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${name}.md`, content: 'Hello.\n' }));
const finish = (): string => JSON.stringify(proposal('FINISH', { response: 'Done.' }));

/** Begins a run with a pending request. */
async function requesting(): Promise<AgentRun> {
  const run = await bench.turnpike.startAgent(AGENT);
  expect(await run.submit(write())).toMatchObject({ outcome: 'DENIED' });
  return run;
}

async function vote(run: AgentRun, decision: 'approve' | 'reject', nth = 0): Promise<void> {
  const { digest } = (await bench.turnpike.requests(run.run_id))[nth]!;
  const ballot = { run: run.run_id, digests: [digest], decision } as const;
  expect(await bench.turnpike.approve({ ...ballot, actor: 'anna', role: 'ATTORNEY_ADMIN' })).toMatchObject([
    { counted: true },
  ]);
}

/** Whether the response is there, after all work that is possible. */
async function isAnswered(response: Promise<StepResponse>): Promise<boolean> {
  let answered = false;
  response.then(
    () => (answered = true),
    () => undefined,
  );
  for (let i = 0; i < 50; i += 1) await nextTick();
  return answered;
}

describe('C96: finish_with_pending_request', () => {
  test.each([null, 'cancel'] as const)('%s: FINISH ends the run, and its requests end with it', async (rule) => {
    await openBench(rule);
    const run = await requesting();
    const [request] = await bench.turnpike.requests(run.run_id);
    expect(await run.submit(finish())).toMatchObject({ outcome: 'SUCCESS' });
    expect(await run.finished).toMatchObject({ state: 'completed' });
    const ballot = { run: run.run_id, digests: [request!.digest], decision: 'approve' } as const;
    await expect(bench.turnpike.approve({ ...ballot, actor: 'anna', role: 'ATTORNEY_ADMIN' })).rejects.toMatchObject({
      code: 'INVALID_STATE_TRANSITION',
    });
  });

  test.each(['approve', 'reject', 'expire'] as const)('deny: FINISH is denied until the vote (%s)', async (how) => {
    await openBench('deny');
    const run = await requesting();
    expect(await run.submit(finish())).toMatchObject({
      outcome: 'DENIED',
      error: { error_code: 'POLICY_VIOLATION', message: 'A request of this run still waits for its approval' },
    });
    expect(await run.submit(JSON.stringify(proposal('THINK', {})))).toMatchObject({ outcome: 'SUCCESS' });
    if (how === 'expire') bench.clock.advance(3_600_001);
    else await vote(run, how);
    expect(await run.submit(finish())).toMatchObject({ outcome: 'SUCCESS' });
    const traces = (await bench.bodies('step_trace')).map(({ rule_id }) => rule_id);
    expect(traces).toEqual(['approval.required', 'finish.request_pending', null, null]);
  });

  test.each(['deny', 'wait'] as const)('%s: FINISH without a pending request is not affected', async (rule) => {
    await openBench(rule);
    const run = await bench.turnpike.startAgent(AGENT);
    expect(await run.submit(finish())).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('wait: FINISH is answered after the rejection', async () => {
    await openBench('wait');
    const run = await requesting();
    const response = run.submit(finish());
    expect(await isAnswered(response)).toBe(false);
    await vote(run, 'reject');
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
    expect(await run.finished).toMatchObject({ state: 'completed', reason: 'finished' });
  });

  test('wait: FINISH is answered when the request expires, and not before', async () => {
    await openBench('wait');
    const run = await requesting();
    const response = run.submit(finish());
    expect(await isAnswered(response)).toBe(false);
    bench.clock.advance(3_000_000);
    expect(await isAnswered(response)).toBe(false);
    bench.clock.advance(600_001);
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('wait: after an approval FINISH is denied, so that the agent can use it; then it may finish', async () => {
    await openBench('wait');
    const run = await requesting();
    const response = run.submit(finish());
    await isAnswered(response);
    await vote(run, 'approve');
    expect(await response).toMatchObject({
      outcome: 'DENIED',
      error: { message: 'A request of this run was approved: propose it again, or finish without it' },
    });
    expect(await run.submit(write())).toMatchObject({ outcome: 'SUCCESS' });
    expect(await run.submit(finish())).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('wait: FINISH waits for all pending requests', async () => {
    await openBench('wait');
    const run = await requesting();
    await run.submit(write('b'));
    const response = run.submit(finish());
    await isAnswered(response);
    await vote(run, 'reject', 0);
    expect(await isAnswered(response)).toBe(false);
    await vote(run, 'reject', 1);
    expect(await response).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('wait: a cancelled run answers its FINISH with a denial', async () => {
    await openBench('wait');
    const run = await requesting();
    const response = run.submit(finish());
    await isAnswered(response);
    const ending = run.cancel('enough');
    expect(await response).toMatchObject({ outcome: 'DENIED' });
    expect(await ending).toMatchObject({ state: 'cancelled' });
  });

  test('wait: FINISH waits on after a restart of the process', async () => {
    await openBench('wait');
    const run = await requesting();
    const response = run.submit(finish());
    response.catch(() => undefined);
    expect(await isAnswered(response)).toBe(false);
    await bench.turnpike.close();
    await expect(response).rejects.toMatchObject({ code: 'CLOSED' });
    bench = await Bench.reopen(bench);
    const again = await bench.turnpike.startAgent(AGENT);
    expect(again.run_id).toBe(run.run_id);
    await vote(again, 'reject');
    expect(await again.finished).toMatchObject({ state: 'completed', reason: 'finished' });
  });
});

// A loop whose agent needs an approval: it calls no model while people decide, and continues with their vote.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MockLanguageModelV3 } from 'ai/test';
import { systemClock } from '../../../src/system/system-clock.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import type { RunAgentOptions } from '../../../src/runtime/agents/agent-loop.js';
import type { RunRequest } from '../../../src/runtime/agents/run-requests.js';
import { createDeferred } from '../../../src/runtime/deferred.js';
import { Bench } from '../../fixtures/bench.js';
import { modelOf, responsesTo, work } from '../../fixtures/mock-model.js';

/** WRITE_FILE needs the approval of a person, within an hour. */
const WRITES_NEED_APPROVAL =
  'approvals:\n  - { for: WRITE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';
const WRITE = ['WRITE_FILE', { path: '/sandbox/a.md', content: 'Hello.\n' }] as const;

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open({ edit: (name, text) => (name === 'actions' ? `${text}\n${WRITES_NEED_APPROVAL}` : text) });
});
afterEach(() => bench.close());

const file = (): string => join(bench.home, 'sandbox/case-local/a.md');
const vote = (run: AgentRun, digest: string, decision: 'approve' | 'reject') =>
  bench.turnpike.approve({ run: run.run_id, digests: [digest], decision, actor: 'anna', role: 'ATTORNEY_ADMIN' });

interface Waiting {
  readonly run: AgentRun;
  readonly request: RunRequest;
  readonly report: ReturnType<typeof work>;
}

/** Starts a loop, and returns when it waits for a vote. */
async function waiting(model: MockLanguageModelV3, options: RunAgentOptions = {}): Promise<Waiting> {
  const run = await bench.turnpike.startAgent();
  const requested = createDeferred<RunRequest>();
  const onRequest = (request: RunRequest): void => requested.resolve(request);
  const report = work(bench, model, { run, clock: systemClock(), onRequest, ...options });
  return { run, request: await requested.promise, report };
}

/** Lets a loop that waits look for the vote several times. */
const lookAgain = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 150));

describe('D7: a loop whose proposal needs an approval', () => {
  test('calls no model until the vote, then executes the request that was approved, once', async () => {
    const model = modelOf(WRITE);
    const { run, request, report } = await waiting(model);
    await lookAgain();
    expect(model.doGenerateCalls).toHaveLength(1);
    expect(await bench.turnpike.requests(run.run_id)).toEqual([request]);
    expect(request).toMatchObject({ name: 'WRITE_FILE', status: 'open' });
    expect(existsSync(file())).toBe(false);
    expect(await vote(run, request.digest, 'approve')).toMatchObject([{ counted: true }]);
    expect(await report).toMatchObject({
      reason: 'finished',
      // The denial that made the request does not count, and the loop's own proposal costs no tokens.
      counts: { steps: 3, denials: 0, tokens: 20, unreported: 0 },
    });
    expect(readFileSync(file(), 'utf8')).toBe('Hello.\n');
    expect(model.doGenerateCalls).toHaveLength(2);
    const [denied, accepted] = responsesTo(model);
    expect(denied).toContain('[A person has approved this request since.');
    expect(accepted).toContain('"outcome":"SUCCESS"');
  });

  test('continues with the model after a rejection, which the model sees', async () => {
    const model = modelOf(WRITE);
    const { run, request, report } = await waiting(model);
    await vote(run, request.digest, 'reject');
    expect(await report).toMatchObject({ reason: 'finished', counts: { steps: 2, denials: 1 } });
    expect(existsSync(file())).toBe(false);
    expect(responsesTo(model)).toEqual([expect.stringContaining('[A person has rejected this request.')]);
  });

  test('continues with the model when the request expires', async () => {
    const model = modelOf(WRITE);
    const { report } = await waiting(model);
    bench.clock.advance(3_600_001);
    expect(await report).toMatchObject({ reason: 'finished', counts: { denials: 1 } });
    expect(responsesTo(model)).toEqual([expect.stringContaining('[This request was not approved in time.]')]);
  });

  test('does the same if the agent sees only decisions', async () => {
    const model = modelOf(WRITE);
    const run = await bench.turnpike.startAgent({ exposure: 'decision' });
    const onRequest = ({ digest }: RunRequest): void => void vote(run, digest, 'approve');
    const report = await work(bench, model, { run, clock: systemClock(), onRequest, maxInvalid: 1 });
    expect(report).toMatchObject({ reason: 'finished', counts: { steps: 3, denials: 0, invalid: 0 } });
    expect(readFileSync(file(), 'utf8')).toBe('Hello.\n');
  });

  test('continues with the model if an approval does not suffice any more', async () => {
    const model = modelOf(WRITE);
    // The loop looks again when this clock has advanced, which is when the approval has expired.
    const { run, request, report } = await waiting(model, { clock: bench.clock });
    await vote(run, request.digest, 'approve');
    bench.clock.advance(3_600_001);
    expect(await report).toMatchObject({ reason: 'finished' });
    expect(existsSync(file())).toBe(false);
  });

  test('stops with approval_pending after waitMs; the run stays active, and calls no model', async () => {
    const model = modelOf(WRITE);
    const { run, report } = await waiting(model, { waitMs: 30 });
    expect(await report).toMatchObject({ reason: 'approval_pending', ending: null, counts: { steps: 1 } });
    expect(model.doGenerateCalls).toHaveLength(1);
    expect(await bench.turnpike.requests(run.run_id)).toMatchObject([{ status: 'open' }]);
  });

  test.each([
    ['its signal', 'aborted'],
    ['the end of the run', 'run_ended'],
  ] as const)('is stopped by %s while it waits', async (_what, reason) => {
    const controller = new AbortController();
    const { run, report } = await waiting(modelOf(WRITE), { signal: controller.signal });
    if (reason === 'aborted') controller.abort();
    else await run.cancel('enough');
    expect(await report).toMatchObject({ reason, ending: { state: 'cancelled' } });
  });

  test('a limit of waiting is a whole number', async () => {
    await expect(work(bench, modelOf(WRITE), { waitMs: -1 })).rejects.toThrow('waitMs: a whole number');
  });
});

test('a denial that is no request for approval does not stop the loop', async () => {
  const model = modelOf(['DELETE_FILE', { path: '/sandbox/run.sh' }]);
  const onRequest = (): void => expect('called').toBe('never');
  expect(await work(bench, model, { onRequest })).toMatchObject({ reason: 'finished', counts: { denials: 1 } });
});

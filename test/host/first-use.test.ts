// Features that are used for the first time while a Turnpike closes, or after that, or by a process that did not start
// the run that they follow.

import { expect, test } from '@jest/globals';
import type { EffectResult } from '../../src/core/contract/run/effect.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { nanoidIds } from '../../src/system/nanoid-ids.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

const starter = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local' };
const EXPORT = { ...starter, reason: 'A test.', destination: 'bag' };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('the first export of a Turnpike that closes gets an answer', async () => {
  const bench = await Bench.open();
  const outcome = bench.turnpike.export(EXPORT).then(
    (run) => run.finished.catch((error: unknown) => error),
    (error: unknown) => error,
  );
  await bench.turnpike.close();
  expect(await outcome).toMatchObject({ code: expect.stringMatching(/^(?:CLOSED|LEDGER_UNAVAILABLE)$/) });
  await bench.check();
});

test('an export that starts while a step is awaited at the close is released too', async () => {
  let finishStep: (result: EffectResult) => void = () => undefined;
  const step = { begun: false };
  const sandbox = {
    gather: ({ paths }) => ({ paths: paths.map(() => ({ status: 'absent' })), usage: { bytes: 0, files: 0 } }),
    perform: () => {
      step.begun = true;
      return new Promise<EffectResult>((resolve) => (finishStep = resolve)) as unknown as EffectResult;
    },
    settle: () => ({ status: 'failed', cause: 'INTERRUPTED' }),
  } satisfies Sandbox as Sandbox;
  const bench = await Bench.open({ sandbox, approvals: true });
  const agent = await bench.turnpike.startAgent();
  const response = agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' })));
  while (!step.begun) await turn();
  const closing = bench.turnpike.close();
  // By now the promotions and exports of this process are closed, and the engine is not.
  for (let turns = 0; turns < 50; turns += 1) await turn();
  const run = await bench.turnpike.export(EXPORT);
  await expect(run.finished).rejects.toMatchObject({ code: 'CLOSED' });
  finishStep({ status: 'done', result: { bytes_written: 1 } });
  await closing;
  await response;
  await bench.check();
});

test('after a close, calls of a feature that was not used reject', async () => {
  const { turnpike } = await Bench.open();
  await turnpike.close();
  const ballot = { ...starter, run: 'run_00000000.1', digests: [], decision: 'approve' } as const;
  const calls = [turnpike.export(EXPORT), turnpike.approve(ballot), turnpike.highRiskRun('run_00000000.1')];
  // All at once: a promise that rejects while nothing awaits it ends the suite.
  const rejected = { status: 'rejected', reason: { code: 'LEDGER_UNAVAILABLE' } };
  expect(await Promise.allSettled(calls)).toMatchObject(calls.map(() => rejected));
});

test('the first call for an export that an earlier process started follows it to its end', async () => {
  const first = await Bench.open({ approvals: true });
  const { run_id, digest } = await first.turnpike.export(EXPORT);
  await first.turnpike.close();
  const bench = await Bench.reopen(first, { clock: first.clock, ids: nanoidIds() });
  const run = await bench.turnpike.highRiskRun(run_id);
  const voter = { actor: 'berta', role: 'ATTORNEY_ADMIN' };
  await bench.turnpike.approve({ ...voter, run: run_id, digests: [digest ?? ''], decision: 'reject' });
  expect(await run?.finished).toMatchObject({ run_id, state: 'denied' });
  expect(await bench.turnpike.highRiskRun(run_id)).toBeNull();
  await bench.close();
});

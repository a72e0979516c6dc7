// Closing a Turnpike: effects in flight, timers, and features that are used for the first time meanwhile or after that.
// Also homes whose creation stopped.

import { afterEach, expect, test } from '@jest/globals';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import type { EffectResult } from '../../src/core/contract/run/effect.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { nanoidIds } from '../../src/system/nanoid-ids.js';
import { createHome, homePaths, isVacant } from '../../src/home/home.js';
import { Bench } from '../fixtures/bench.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const WRITE = (): string => JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An executor outside of this process, whose effect happens when the test says so. */
function slowSandbox() {
  let happen: (() => void) | null = null;
  let happened = false;
  const done: EffectResult = { status: 'done', result: { bytes_written: 1 } };
  const sandbox = {
    gather: ({ paths }) => ({ paths: paths.map(() => ({ status: 'absent' })), usage: { bytes: 0, files: 0 } }),
    perform: () =>
      new Promise((resolve) => {
        happen = () => {
          happened = true;
          resolve(done);
        };
      }) as unknown as EffectResult,
    settle: () => (happened ? done : { status: 'failed', cause: 'INTERRUPTED' }),
  } satisfies Sandbox as Sandbox;
  return { sandbox, begun: () => happen !== null, happen: () => happen?.() };
}

test('D8: closing waits for an effect in flight, also of a remote agent, and records it', async () => {
  const state = new LedgerModel();
  const slow = slowSandbox();
  const bench = await Bench.open({ store: modelStore(state), sandbox: slow.sandbox });
  const agent = await bench.turnpike.startAgent({ link: 'remote', idleMs: 60_000 });
  const ending = agent.finished.catch((error: unknown) => error);
  const answer = agent.submit(WRITE()).catch((error: unknown) => error);
  while (!slow.begun()) await turn();
  let closed = false;
  const closing = bench.turnpike.close().then(() => (closed = true));
  for (let turns = 0; turns < 20; turns += 1) await turn();
  expect(closed).toBe(false);
  slow.happen();
  await closing;
  expect(await answer).toMatchObject({ outcome: 'SUCCESS' });
  // The run of a remote agent survives this process, and callers that wait for its end get this error.
  expect(await ending).toMatchObject({ code: 'CLOSED' });
  // Neither the idle timer, which the answer has restarted, nor the timer of the wait.
  expect(bench.clock.timers).toBe(0);
  const again = await Bench.open({ store: modelStore(state), sandbox: slow.sandbox });
  expect(again.turnpike.recovery).toMatchObject({ settled: 0, interrupted: 0 });
  expect(await again.turnpike.agent(agent.run_id)).not.toBeNull();
  await again.close();
});

test('D3: closing leaves no timer behind, of a waiting agent or of its own', async () => {
  const bench = await Bench.open();
  await bench.turnpike.startAgent({ link: 'remote', idleMs: 60_000 });
  expect(bench.clock.timers).toBe(1);
  await bench.turnpike.close();
  expect(bench.clock.timers).toBe(0);
});

test('D8: closing has a timeout; the next opening settles unanswered effects', async () => {
  const state = new LedgerModel();
  const slow = slowSandbox();
  const bench = await Bench.open({ store: modelStore(state), sandbox: slow.sandbox });
  const agent = await bench.turnpike.startAgent();
  const answer = agent.submit(WRITE()).catch((error: unknown) => error);
  agent.finished.catch(() => undefined);
  while (!slow.begun()) await turn();
  const closing = bench.turnpike.close();
  for (let waits = 0; waits < 2; waits += 1) {
    for (let turns = 0; turns < 20; turns += 1) await turn();
    bench.clock.advance(20_000);
  }
  await closing;
  expect(await answer).toMatchObject({ code: 'CLOSED' });
  const again = await Bench.open({ store: modelStore(state), sandbox: slow.sandbox });
  expect(again.turnpike.recovery).toMatchObject({ settled: 1, interrupted: 0 });
  expect(await again.turnpike.replay()).toMatchObject({ ok: true });
  await again.close();
});

const starter = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local' };
const EXPORT = { ...starter, reason: 'A test.', destination: 'bag' };

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
  const slow = slowSandbox();
  const bench = await Bench.open({ sandbox: slow.sandbox, approvals: true });
  const agent = await bench.turnpike.startAgent();
  const response = agent.submit(WRITE());
  while (!slow.begun()) await turn();
  const closing = bench.turnpike.close();
  // By now the promotions and exports of this process are closed, and the engine is not.
  for (let turns = 0; turns < 50; turns += 1) await turn();
  const run = await bench.turnpike.export(EXPORT);
  await expect(run.finished).rejects.toMatchObject({ code: 'CLOSED' });
  slow.happen();
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

let folder = '';
afterEach(() => {
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
  folder = '';
});
const newFolder = (): string => (folder = tempFolder('home'));

test('D15: a home whose creation stopped before its ledger is created again', async () => {
  const home = newFolder();
  mkdirSync(join(home, 'artifacts'));
  mkdirSync(join(home, 'sandbox'));
  writeFileSync(join(home, 'ledger.db.new-4711'), 'half');
  expect(isVacant(home)).toBe(true);
  await createHome(home);
  expect(readdirSync(home)).toEqual(expect.arrayContaining(['ledger.db', 'ledger.head']));
  expect(isVacant(home)).toBe(false);
});

test.each(['sandbox/case-1', 'ledger.head', 'notes'])('a folder with %s in it is not a new home', (name) => {
  const home = newFolder();
  mkdirSync(join(home, name), { recursive: true });
  expect(isVacant(home)).toBe(false);
});

test('D15: a home whose creation stopped before its head file opens, and then has one', async () => {
  const bench = await Bench.open();
  await bench.turnpike.close();
  const { head } = homePaths(bench.home);
  rmSync(head);
  const again = await Bench.reopen(bench);
  expect(readdirSync(again.home)).toContain('ledger.head');
  await again.close();
});

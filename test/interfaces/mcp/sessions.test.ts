// Agents that work through a spec over MCP, on a complete Turnpike.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NextStep, SessionAnswer, SessionData } from '../../../src/features/sessions/contract/session-answer.js';
import type { SessionOptions } from '../../../src/features/sessions/sessions.js';
import { Bench } from '../../fixtures/bench.js';
import { make, phase, spec, verify } from '../../fixtures/spec.js';
import { call, clientOf, serviceOn } from './mcp-harness.js';

const ANNA = { actor: 'anna', role: 'maintainer' } as const;
const SPEC = spec(phase('p1', [make('t1'), make('t2', ['t1'])]));

let bench: Bench;
let client: Client;

const connected = async (over: SessionOptions = {}): Promise<Client> => {
  const settings = { stopOnPhaseCompletion: false };
  const client = await clientOf(
    serviceOn(bench, { sessions: { specs: join(bench.folder, 'specs'), settings, ...over } }),
  );
  // With the list of tools, the client validates every answer against its output schema.
  await client.listTools();
  return client;
};

beforeEach(async () => {
  bench = await Bench.open({ wall: 'off', reviewer: () => ({ verdict: 'pass', findings: [] }) });
  mkdirSync(join(bench.folder, 'specs'));
  writeFileSync(join(bench.folder, 'specs/spec-1.json'), JSON.stringify(SPEC));
  client = await connected();
});
afterEach(async () => {
  await client.close();
  await bench.close();
});

const step = async (command: string, args: object = {}, by = client): Promise<SessionAnswer> =>
  (await call(by, 'task', { action: 'session-step', command, ...args })).structured as unknown as SessionAnswer;
const dataOf = ({ data }: SessionAnswer): SessionData => {
  if (data === null) throw new Error('the answer has no data');
  return data;
};
const nextOf = (answer: SessionAnswer): NextStep => {
  const { next_step } = dataOf(answer);
  if (next_step === null) throw new Error('there is no step');
  return next_step;
};
const reportOf = (answer: SessionAnswer, over: object = {}): object => {
  const { step_id, type, step_proof, task_id } = nextOf(answer);
  return { step_id, step_type: type, outcome: 'success', step_proof, task_id, ...over };
};
const started = async (): Promise<SessionAnswer> => {
  const { session_id } = dataOf(await step('start', { spec_id: 'spec-1' }));
  return step('next', { session_id });
};

test('S3-06: an agent works through a spec; proposals go into the run of the outstanding step by default', async () => {
  const own = await call(client, 'think');
  let answer = await started();
  const { session_id } = dataOf(answer);
  expect(nextOf(answer)).toMatchObject({ type: 'implement_task', task_id: 't1', run_id: `${session_id}.1.1` });
  // Reading the status changes nothing.
  expect(await step('status', { session_id })).toMatchObject({ success: true });
  const written = await call(client, 'write_file', { path: '/sandbox/t1.md', content: 'x' });
  expect(written).toMatchObject({ isError: false, run_id: `${session_id}.1.1` });
  expect(await call(client, 'think', { run_id: own.run_id })).toMatchObject({ isError: false, run_id: own.run_id });
  answer = await step('next', { session_id, last_step_result: reportOf(answer, { files_touched: ['t1.md'] }) });
  expect(nextOf(answer)).toMatchObject({ task_id: 't2', run_id: `${session_id}.1.2` });
  expect((await call(client, 'write_file', { path: '/sandbox/t2.md', content: 'x' })).run_id).toBe(`${session_id}.1.2`);
  answer = await step('next', { session_id, last_step_result: reportOf(answer) });
  expect(answer).toMatchObject({ success: true, data: { status: 'completed', loop_signal: 'spec_complete' } });
  // No step is outstanding any more.
  expect((await call(client, 'think')).run_id).toBe(own.run_id);
});

test('S3-23 S3-26 S3-29 S3-30 C68: verification and review name their step, and return what its report needs', async () => {
  const checked = spec(phase('p1', [make('t1'), verify('v1')], { reviewer: 'callback' }));
  writeFileSync(join(bench.folder, 'specs/spec-1.json'), JSON.stringify(checked));
  let answer = await started();
  const { session_id } = dataOf(answer);
  answer = await step('next', { session_id, last_step_result: reportOf(answer) });
  const { step_id: verifying } = nextOf(answer);
  expect(nextOf(answer)).toMatchObject({ type: 'execute_verification', task_id: 'v1' });
  const other = { action: 'execute', session_id, step_id: 'another' };
  expect(await call(client, 'verification', other)).toMatchObject({ isError: true });
  const verified = await call(client, 'verification', { ...other, step_id: verifying });
  const receipt = dataOf(verified.structured as unknown as SessionAnswer).verification_receipt;
  expect(receipt).toMatchObject({ exit_code: 0, step_id: verifying });
  const forged = reportOf(answer, { verification_receipt: { ...receipt, exit_code: 1 } });
  expect(await step('next', { session_id, last_step_result: forged })).toMatchObject({
    error: { code: 'ERROR_VERIFICATION_RECEIPT_INVALID' },
  });
  answer = await step('next', { session_id, last_step_result: reportOf(answer, { verification_receipt: receipt }) });
  const { step_id, phase_id } = nextOf(answer);
  expect(nextOf(answer)).toMatchObject({ type: 'run_fidelity_gate', phase_id: 'p1' });
  const gate = { action: 'fidelity-gate', spec_id: 'spec-1', session_id, phase_id, step_id };
  const reviewed = dataOf((await call(client, 'review', gate)).structured as unknown as SessionAnswer);
  expect(reviewed.review).toMatchObject({ verdict: 'pass' });
  const report = reportOf(answer, { task_id: undefined, phase_id, gate_attempt_id: reviewed.review?.gate_attempt_id });
  expect(await step('next', { session_id, last_step_result: report })).toMatchObject({ data: { status: 'completed' } });
});

test('S3-05 C64: the simple report is refused, and does not affect the step', async () => {
  const answer = await started();
  const { session_id } = dataOf(answer);
  const entries = (await bench.entries()).length;
  for (let i = 0; i < 5; i += 1) {
    const refused = await call(client, 'task', {
      action: 'session-step',
      command: 'report',
      session_id,
      outcome: 'success',
    });
    expect(refused).toMatchObject({
      isError: true,
      structured: { success: false, error: { code: 'STEP_PROOF_MISSING' } },
    });
  }
  expect((await bench.entries()).length).toBe(entries);
  expect(await step('next', { session_id, last_step_result: reportOf(answer) })).toMatchObject({ success: true });
});

test('C64: on another connection, replay gives the step and its run again', async () => {
  const answer = await started();
  const { session_id } = dataOf(answer);
  const { run_id } = nextOf(answer);
  await client.close();
  client = await connected();
  expect(dataOf(await step('status', { spec_id: 'spec-1' })).session_id).toBe(session_id);
  expect(nextOf(await step('replay', { session_id }))).toEqual(nextOf(answer));
  expect(await call(client, 'write_file', { path: '/sandbox/t1.md', content: 'x' })).toMatchObject({
    isError: false,
    run_id,
  });
  expect(await step('next', { session_id, last_step_result: reportOf(answer) })).toMatchObject({ success: true });
});

test('S3-19 S3-20: returns the task, repeatedly', async () => {
  const { session_id } = dataOf(await started());
  const told = await call(client, 'task', { action: 'prepare', spec_id: 'spec-1' });
  expect(told).toMatchObject({
    structured: { success: true, data: { task_id: 't1', instruction: 'Write /sandbox/t1.md.' } },
  });
  expect(await call(client, 'task', { action: 'prepare', session_id, task_id: 't9' })).toMatchObject({ isError: true });
  const list = await call(client, 'task', { action: 'session', command: 'list' });
  expect(list).toMatchObject({ structured: { data: { sessions: [{ session_id, spec_id: 'spec-1' }] } } });
});

describe('roles', () => {
  const resume = (session_id: string) => call(client, 'task', { action: 'session', command: 'resume', session_id });

  test('an agent is an autonomy_runner: it resumes after a phase, but not after a pause by a person', async () => {
    const { session_id } = dataOf(await started());
    await bench.turnpike.sessions.pause(session_id, {}, ANNA);
    expect(await resume(session_id)).toMatchObject({ isError: true, structured: { error: { code: 'AUTHORIZATION' } } });
    expect(dataOf(await bench.turnpike.sessions.status(session_id)).status).toBe('paused');
  });

  test('C74: after a phase an agent resumes the session itself', async () => {
    const two = { ...spec(phase('p1', [make('t1')]), phase('p2', [make('t2')])), id: 'spec-2' };
    writeFileSync(join(bench.folder, 'specs/spec-2.json'), JSON.stringify(two));
    client = await connected({ settings: { stopOnPhaseCompletion: true } });
    const { session_id } = dataOf(await step('start', { spec_id: 'spec-2' }));
    const last_step_result = reportOf(await step('next', { session_id }));
    expect(await step('next', { session_id, last_step_result })).toMatchObject({
      data: { loop_signal: 'phase_complete' },
    });
    expect(await resume(session_id)).toMatchObject({ isError: false });
    expect(nextOf(await step('next', { session_id }))).toMatchObject({ task_id: 't2' });
  });

  test('an observer reads, and gets no run by that', async () => {
    const answer = await started();
    const { session_id } = dataOf(answer);
    const observer = await connected({ role: 'observer' });
    expect(await step('status', { session_id }, observer)).toMatchObject({ success: true });
    expect(await step('next', { session_id }, observer)).toMatchObject({ error: { code: 'AUTHORIZATION' } });
    writeFileSync(join(bench.folder, 'specs/spec-3.json'), JSON.stringify({ ...SPEC, id: 'spec-3' }));
    expect(await step('start', { spec_id: 'spec-3' }, observer)).toMatchObject({ error: { code: 'AUTHORIZATION' } });
    const { run_id } = await call(observer, 'think');
    expect(run_id).not.toBe(nextOf(answer).run_id);
    await observer.close();
  });
});

test('refuses an unusable spec without details of the machine', async () => {
  writeFileSync(join(bench.folder, 'specs/broken.json'), '{');
  const broken = await call(client, 'task', { action: 'session-step', command: 'start', spec_id: 'broken' });
  expect(broken).toMatchObject({ isError: true, structured: { error: { code: 'VALIDATION_ERROR', details: [] } } });
  expect(broken.text).not.toContain(bench.folder);
});

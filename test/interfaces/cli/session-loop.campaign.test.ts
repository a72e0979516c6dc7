// `session start`, `next`, `report` and the other commands of an agent's loop: each alone, and each through a service
// that owns the home directory.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { initialised, linesOf, put, turnpike } from './fake-io.js';
import { CHECKED, done, PLAIN, putSpec, refused, reportOf, session, stepOf } from './session-fixture.js';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
let folder: string;
let held: Turnpike | null = null;

beforeEach(async () => {
  folder = await initialised();
  putSpec(folder, PLAIN);
});
afterEach(async () => {
  await held?.close();
  held = null;
});

async function serve(): Promise<void> {
  held = await openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract'), log });
}

const SWITCH = '--no-stop-on-phase';

describe.each([
  ['alone', () => Promise.resolve()],
  ['D13 through the process that owns the home directory', serve],
])('%s', (_where, prepare) => {
  beforeEach(prepare);

  test('S3-06 S3-07 S3-22 S3-40 start, next and report suffice to work through a spec', async () => {
    const started = await done(folder, ['start', 'plain.json', SWITCH]);
    expect(started).toMatchObject({ spec_id: 'plain', status: 'running', next_step: null, loop_signal: null });
    const one = stepOf(await done(folder, ['next']));
    expect(one).toMatchObject({ type: 'implement_task', task_id: 'one', instruction: 'Write /sandbox/one.md.' });
    put(folder, 'report.json', reportOf(one));
    const two = stepOf(await done(folder, ['report', started.session_id, 'report.json']));
    expect(two).toMatchObject({ task_id: 'two', phase_id: 'second' });
    const last = await done(folder, ['report', '-'], { stdin: reportOf(two, { note: 'Done.' }) });
    expect(last).toMatchObject({ status: 'completed', loop_signal: 'spec_complete' });
    expect(last.exit_packet).toMatchObject({ session_id: started.session_id, steps_executed: 2 });
    expect(await turnpike(folder, ['replay'])).toMatchObject({ code: 0 });
  });

  test('S3-16 S3-17 refuses a report without its proof or with another, with exit code 1; accepts the right one', async () => {
    await done(folder, ['start', 'plain.json']);
    const step = stepOf(await done(folder, ['next']));
    const without = reportOf(step, { step_proof: undefined });
    expect(await refused(folder, ['report', '-'], { stdin: without })).toBe('STEP_PROOF_MISSING');
    const other = await session(folder, ['report', '-'], { stdin: reportOf(step, { step_proof: 'guessed' }) });
    expect(other).toMatchObject({ code: 1, answer: { error: { code: 'STEP_PROOF_MISMATCH' } } });
    expect(other.answer.data?.loop_signal).toBe('blocked_runtime');
    expect(await refused(folder, ['next'])).toBe('STEP_RESULT_REQUIRED');
    expect(stepOf(await done(folder, ['replay']))).toEqual(step);
    expect(await done(folder, ['next', '--report', '-'], { stdin: reportOf(step) })).toMatchObject({
      loop_signal: 'phase_complete',
    });
  });

  test('S3-20 accepts heartbeat and context, and prints a complete task', async () => {
    await done(folder, ['start', 'plain.json', '--limit', 'context_threshold_pct=50']);
    await done(folder, ['next', '--heartbeat', '--context', '20']);
    expect(await done(folder, ['heartbeat', '--context', '40.5', '--tokens', '1000'])).toMatchObject({
      status: 'running',
    });
    const { stdout } = await turnpike(folder, ['session', 'prepare', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ task_id: 'one', status: 'pending' });
    const step = stepOf(await done(folder, ['replay']));
    const report = { stdin: reportOf(step) };
    expect(await done(folder, ['report', '-', '--context', '60'], report)).toMatchObject({
      pause_reason: 'context_limit',
    });
  });

  test('S3-23 S3-24 S3-29 S3-30 verify and review run the verification and review of a spec', async () => {
    putSpec(folder, CHECKED);
    await done(folder, ['start', 'checked.json']);
    expect(await refused(folder, ['verify'])).toBe('STEP_MISMATCH');
    expect(await refused(folder, ['review'])).toBe('GATE_BLOCKED');
    const one = stepOf(await done(folder, ['next']));
    const verification = stepOf(await done(folder, ['report', '-'], { stdin: reportOf(one) }));
    expect(verification).toMatchObject({ type: 'execute_verification', task_id: 'there' });
    const none = { stdin: reportOf(verification) };
    expect(await refused(folder, ['report', '-'], none)).toBe('ERROR_VERIFICATION_RECEIPT_MISSING');
    const failing = (await done(folder, ['verify'])).verification_receipt;
    expect(failing).toMatchObject({ exit_code: 3, step_id: verification.step_id });
    mkdirSync(join(folder, '.turnpike/sandbox/case-local'), { recursive: true });
    put(folder, '.turnpike/sandbox/case-local/one.md', '1');
    const { verification_receipt, output } = await done(folder, ['verify', '--step', verification.step_id]);
    expect({ verification_receipt, output }).toMatchObject({
      verification_receipt: { exit_code: 0 },
      output: expect.stringContaining('seen'),
    });
    const old = { stdin: reportOf(verification, { verification_receipt: failing, outcome: 'failure' }) };
    expect(await refused(folder, ['report', '-'], old)).toBe('ERROR_VERIFICATION_RECEIPT_INVALID');
    const gate = stepOf(
      await done(folder, ['report', '-'], { stdin: reportOf(verification, { verification_receipt }) }),
    );
    expect(gate).toMatchObject({ type: 'run_fidelity_gate', phase_id: 'only' });
    const { review } = await done(folder, ['review']);
    expect(review).toMatchObject({ verdict: 'pass', gate_policy: 'strict', gate_passed_preview: true });
    const { gate_attempt_id } = review ?? {};
    const last = await done(folder, ['report', '-'], { stdin: reportOf(gate, { gate_attempt_id }) });
    expect(last).toMatchObject({ satisfied_gates: ['only'], missing_required_gates: [] });
  });

  test('S3-05 input that is not a report does not affect the step', async () => {
    await done(folder, ['start', 'plain.json']);
    const step = stepOf(await done(folder, ['next']));
    for (const text of ['', 'null', '[]', '{"a":1,"a":2}', '"success"', `{"a":"${'x'.repeat(300_000)}"}`]) {
      const said = await turnpike(folder, ['session', 'report', '-'], { stdin: text });
      expect({ text: text.slice(0, 20), said }).toMatchObject({ said: { code: 2, stdout: '' } });
    }
    const said = async (stdin: string | Uint8Array) =>
      (await turnpike(folder, ['session', 'report', '-'], { stdin })).stderr;
    expect(await said(Uint8Array.of(0xff))).toContain('UTF-8');
    expect(await said(`{"a":"${'x'.repeat(300_000)}"}`)).toContain('more than 262144 bytes');
    expect(stepOf(await done(folder, ['replay']))).toEqual(step);
  });

  test('a session of another spec, file or stdin, has its own options', async () => {
    const options = ['--case', 'case-7', '--agent', 'robot', '--correlation', 'cor_7', '--posture', 'unattended'];
    const spec = JSON.stringify({ ...PLAIN, id: 'inline' });
    const { session_id } = await done(folder, ['start', '-', ...options], { stdin: spec });
    const { run_id } = stepOf(await done(folder, ['next', session_id]));
    const { stdout } = await turnpike(folder, ['runs', run_id ?? '', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      record: { case_id: 'case-7', correlation_id: 'cor_7', actor: { actor_id: 'robot' } },
    });
    expect((await turnpike(folder, ['session', 'status'])).stdout).toContain('unattended, gates strict');
  });

  test('the same key returns the same session; without it a second one is refused, and replaces the first with --force', async () => {
    const key = ['start', 'plain.json', '--idempotency-key', 'once'];
    const { session_id } = await done(folder, key);
    expect(await done(folder, key)).toMatchObject({ session_id });
    expect(await refused(folder, ['start', 'plain.json'])).toBe('SPEC_SESSION_EXISTS');
    const other = await done(folder, ['start', 'plain.json', '--force']);
    expect(other.session_id).not.toBe(session_id);
    expect(await done(folder, ['next', session_id])).toMatchObject({ status: 'ended', next_step: null });
    expect(await done(folder, ['next'])).toMatchObject({ session_id: other.session_id });
  });

  test('an invalid spec, option or role is a usage error, and starts nothing', async () => {
    put(folder, 'bad.yaml', 'spec_version: 1\nid: x\n');
    for (const argv of [
      ['bad.yaml'],
      ['missing.yaml'],
      ['plain.json', '--limit', 'max_skips=999999999'],
      ['plain.json', '--posture', 'unattended', '--waivers'],
      ['plain.json', '--case', '../..'],
      ['plain.json', '--idempotency-key', 'ein Wort'],
      ['plain.json', '--actor', 'x'],
    ]) {
      const said = await turnpike(folder, ['session', 'start', ...argv]);
      expect({ argv, said }).toEqual({
        argv,
        said: { code: 2, stdout: '', stderr: expect.stringMatching(/^USAGE: [^\n]+\n$/), log: [] },
      });
    }
    expect((await turnpike(folder, ['session', 'list', '--json'])).stdout).toBe('');
  });
});

test('D13 a session that was started alone continues through a service, and alone again', async () => {
  await done(folder, ['start', 'plain.json', SWITCH]);
  const one = stepOf(await done(folder, ['next']));
  await serve();
  const two = stepOf(await done(folder, ['report', '-'], { stdin: reportOf(one) }));
  await held?.close();
  held = null;
  expect(await done(folder, ['report', '-'], { stdin: reportOf(two) })).toMatchObject({ status: 'completed' });
});

test('D8: a check ends with its stopped command, and its outcome is recorded as unknown', async () => {
  const sleeps = {
    id: 'sleeps',
    title: 'It sleeps',
    type: 'verify' as const,
    command: ['sh', '-c', 'test -e begun && exit; >begun; sleep 90'],
  };
  putSpec(folder, { ...PLAIN, id: 'long', phases: [{ id: 'only', title: 'Only', tasks: [sleeps] }] });
  await done(folder, ['start', 'long.json']);
  await done(folder, ['next']);
  const stop = new AbortController();
  const verified = turnpike(folder, ['session', 'verify'], { stop: stop.signal });
  while (!existsSync(join(folder, '.turnpike/sandbox/case-local/begun'))) await sleep(10);
  stop.abort();
  expect((await verified).code).toBe(1);
  // No process owns the home directory, and nothing is left of the command.
  expect(readdirSync(join(folder, '.turnpike/scratch'))).toEqual([]);
  const { stdout } = await turnpike(folder, ['runs', '--json']);
  expect(stdout).toContain('OUTCOME_UNKNOWN');
  // The check is not repeated automatically; a new verify gets a run and a receipt of its own.
  expect(await done(folder, ['verify'])).toMatchObject({ verification_receipt: { exit_code: 0 } });
});

test('a spec is checked against the requested contract, or refused', async () => {
  await serve();
  const said = await turnpike(folder, ['session', 'start', 'plain.json', '--contract', folder]);
  expect(said).toMatchObject({ code: 2, stderr: expect.stringContaining('judges by') });
  await done(folder, ['start', 'plain.json']);
  // The other commands use a session that has pinned its policy already.
  await done(folder, ['next', '--contract', folder]);
});

describe('S3-19 text', () => {
  test('of a step: type, proof and instruction', async () => {
    const started = await turnpike(folder, ['session', 'start', 'plain.json']);
    expect(linesOf(started.stdout)).toEqual([expect.stringMatching(/^ses_\w+ {2}running$/), '  phase  first']);
    const { code, stdout, stderr } = await turnpike(folder, ['session', 'next']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(linesOf(stdout)).toEqual([
      expect.stringMatching(/^ses_\w+ {2}running$/),
      '  phase  first',
      expect.stringMatching(/^ {2}step {3}ses_\w+-s1 \(implement_task\)$/),
      '  task   one: Write one',
      expect.stringMatching(/^ {2}run {4}ses_\w+\.1\.1 in lane SANDBOX_FILES$/),
      expect.stringMatching(/^ {2}proof {2}[\w-]{43}$/),
      '',
      '  Write /sandbox/one.md.',
    ]);
  });

  test('of a pause: reason and next action; of a refusal: one line with advice on stderr', async () => {
    await done(folder, ['start', 'plain.json']);
    const step = stepOf(await done(folder, ['next']));
    const refusal = await turnpike(folder, ['session', 'next']);
    expect({ ...refusal, stderr: linesOf(refusal.stderr) }).toMatchObject({
      code: 1,
      stdout: '',
      stderr: [expect.stringMatching(/^STEP_RESULT_REQUIRED: A step/), expect.stringMatching(/^ {2}replay_out/)],
    });
    const { stdout } = await turnpike(folder, ['session', 'report', '-'], { stdin: reportOf(step) });
    expect(stdout).toMatch(/^ses_\w+ {2}paused \(phase_complete\)\n/);
    expect(stdout).toContain('  signal  phase_complete\n');
    expect(stdout).toContain('(turnpike session resume)\n');
  });

  test('of a verification: receipt and escaped output; of a review: findings', async () => {
    putSpec(folder, CHECKED);
    await done(folder, ['start', 'checked.json', '--skips']);
    await done(folder, ['report', '-'], { stdin: reportOf(stepOf(await done(folder, ['next']))) });
    const { stdout } = await turnpike(folder, ['session', 'verify']);
    expect(stdout).toMatch(/^ {2}receipt {2}\{"command_hash":"[0-9a-f]{64}","exit_code":3,/m);
    expect(linesOf(stdout).slice(-2)).toEqual(['  | seen\\u001b[2J', '  | ses_forged  completed']);
    const verification = stepOf(await done(folder, ['replay']));
    await done(folder, ['report', '-'], { stdin: reportOf(verification, { outcome: 'skipped' }) });
    const review = await turnpike(folder, ['session', 'review']);
    expect(review.stdout).toMatch(/^ {2}review {2}ses_\w+-g1 pass \(policy strict\)$/m);
    expect(linesOf(review.stdout).at(-1)).toBe('  info  /sandbox/one.md:3  fine\\u001b[2J');
  });

  test('hostile texts of a spec are escaped and cannot imitate other lines', async () => {
    const [first] = PLAIN.phases;
    const hostile = 'x\u001b[2J\u202e\r\nses_forged  completed\n';
    const task = { id: 'one', title: 'a\u001b[31m\nstep  forged', instruction: hostile, acceptance: [hostile] };
    putSpec(folder, { ...PLAIN, title: 'a\nb\u0007', phases: [{ ...first!, tasks: [task] }] });
    await done(folder, ['start', 'plain.json']);
    for (const argv of [['next'], ['status'], ['prepare'], ['packets'], ['replay', '--json']]) {
      const { stdout } = await turnpike(folder, ['session', ...argv], { colours: false });
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/u);
      expect(linesOf(stdout).filter((line) => /^(?:ses_forged|step)/.test(line))).toEqual([]);
    }
  });
});

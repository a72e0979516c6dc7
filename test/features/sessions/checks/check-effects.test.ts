// Verifications and reviews as effects: real programs in a real sandbox, real callbacks of a service, hostile answers.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { ephemeralKey } from '../../../../src/stores/keys/session-key.js';
import type { Effect, EffectResult } from '../../../../src/core/contract/run/effect.js';
import { isJsonObject, type JsonObject } from '../../../../src/core/contract/json.js';
import { GateEvidence, GateFinding, VerificationReceipt } from '../../../../src/features/sessions/contract/session.js';
import { isConforming } from '../../../../src/core/contract/validators.js';
import type { Log } from '../../../../src/engine/ports/log.js';
import type { ReviewOrder, ReviewCallback } from '../../../../src/features/sessions/checks/run-review.js';
import { CallLog } from '../../../../src/runtime/effects/call-log.js';
import { BoundedCalls } from '../../../../src/runtime/effects/bounded-calls.js';
import { CheckEffects } from '../../../../src/features/sessions/checks/check-effects.js';
import { isEvidenceIntact } from '../../../../src/features/sessions/rules/step-proof.js';
import { CASE, commandsUnderTest, LONG_MS, until } from '../../../sandbox/commands/command-harness.js';
import { text } from '../../../sandbox/files/sandbox-harness.js';
import { granted } from '../../../fixtures/granted.js';
import { ManualClock } from '../../../fixtures/manual-clock.js';

const commands = commandsUnderTest();
afterAll(() => commands.remove());

const LOG: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const clock = new ManualClock();
const secrets = ephemeralKey();
const checksWith = (review: ReviewCallback | null = null, wall: 'off' | 'required' = 'off', more = {}) =>
  new CheckEffects({
    commands: commands.runner({ wall, ...more }),
    review,
    calls: new BoundedCalls(clock, new CallLog(LOG, () => Promise.resolve(null))),
    secrets,
    log: LOG,
  });
const checks = checksWith();

const effectOf = (action: string, args: JsonObject, more: Partial<Effect> = {}): Effect => {
  const ids = { case_id: CASE, run_id: 'ses_000001.1.2', idempotency_key: 'key', request_hash: 'a'.repeat(64) };
  return {
    action,
    args,
    ...ids,
    before: [],
    partial_outputs: false,
    limits: { read_bytes_max: 1, list_entries_max: 1 },
    ...more,
  };
};

const VERIFICATION = { step_id: 'ses_000001-s3', task_id: 'tests-pass', cwd: '/sandbox/', timeout_ms: LONG_MS };
const verification = (command: readonly string[], more: JsonObject = {}) =>
  granted(effectOf('RUN_VERIFICATION', { ...VERIFICATION, command, ...more }));

const REVIEW = {
  spec_id: 'field-guide',
  session_id: 'ses_000001',
  phase_id: 'birds',
  step_id: 'ses_000001-s4',
  gate_attempt_id: 'ses_000001-g1',
  command: null,
  cwd: '/sandbox/',
  timeout_ms: LONG_MS,
  instruction: 'Would you find a heron with it?',
  title: 'Birds',
  tasks: [{ id: 'list', title: 'List the birds', status: 'completed' }],
  files_touched: ['/sandbox/birds.md'],
};
const review = (reviewer: string, more: JsonObject = {}) =>
  granted(effectOf('REVIEW_PHASE', { ...REVIEW, reviewer, ...more }));
const reviewBy = (command: readonly string[], more: JsonObject = {}) =>
  checks.run(review('command', { command, ...more }));
const shell = (line: string) => ['sh', '-c', line];
/** Prints a character many times. */
const times = (count: number, character: string): string => `head -c ${count} /dev/zero | tr '\\0' '${character}'`;
/** A program that prints these lines and ends with this code. */
const saying = (code: number, ...lines: readonly string[]) => [
  'sh',
  '-c',
  `printf '%s\\n' "$@"; exit ${code}`,
  'sh',
  ...lines,
];

const resultOf = (answer: EffectResult): JsonObject => {
  if (answer.status !== 'done') throw new Error(`not done: ${JSON.stringify(answer)}`);
  return answer.result;
};
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const messagesOf = ({ findings }: JsonObject): readonly string[] =>
  (Array.isArray(findings) ? findings : []).map((finding) => (isJsonObject(finding) ? text(finding['message']) : ''));

describe('RUN_VERIFICATION', () => {
  test('S3-28, C68: the result of the program is a complete receipt, except for its time', async () => {
    const command = ['echo', '2 passed'];
    const result = resultOf(await checks.run(verification(command)));
    expect(result).toEqual({
      command_hash: sha256(JSON.stringify(command)),
      exit_code: 0,
      output_digest: sha256('2 passed\n'),
      output_bytes: 9,
      output: '2 passed\n',
      truncated: false,
      timed_out: false,
      walled: false,
    });
    const { command_hash, exit_code, output_digest } = result;
    const receipt = {
      command_hash,
      exit_code,
      output_digest,
      issued_at: '2026-01-01T00:00:00.000Z',
      step_id: 'ses_000001-s3',
    };
    expect(isConforming(VerificationReceipt, receipt)).toBe(true);
  });

  test('C67: a failing program is done, with its exit code; one that exceeds its timeout has 124', async () => {
    expect(await checks.run(verification(shell('exit 3')))).toMatchObject({
      status: 'done',
      result: { exit_code: 3 },
    });
    const late = await checks.run(verification(['sleep', '600'], { timeout_ms: 50 }));
    expect(late).toMatchObject({ status: 'done', result: { exit_code: 124, timed_out: true } });
    expect(await checks.run(verification(['no-such-program']))).toMatchObject({ result: { exit_code: 127 } });
  });

  test('an unusable working directory is a failure of the work, with a receipt', async () => {
    writeFileSync(join(commands.home, 'file'), '');
    symlinkSync('/', join(commands.home, 'out'));
    for (const cwd of ['/sandbox/none', '/sandbox/file', '/sandbox/out']) {
      const result = resultOf(await checks.run(verification(['true'], { cwd })));
      expect(result).toMatchObject({ exit_code: 126, output: expect.stringMatching(`^cannot run in ${cwd}: `) });
      expect(result['output_digest']).toBe(sha256(text(result['output'])));
    }
  });

  test('a command that this machine cannot run is not a failure of the work: it was certainly not executed', async () => {
    mkdirSync(join(commands.base, 'none'));
    writeFileSync(join(commands.base, 'none/bwrap'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const unwalled = checksWith(null, 'required', { programs: [join(commands.base, 'none')] });
    expect(await unwalled.run(verification(['true']))).toMatchObject({ status: 'failed', cause: 'NOT_EXECUTED' });
    expect(await unwalled.run(review('command', { command: ['true'] }))).toMatchObject({ status: 'failed' });
    expect(await checks.run(verification(['-c']))).toMatchObject({ status: 'failed', cause: 'REFUSED' });
  });

  test('a long output is shown by its beginning and end, and hashed completely', async () => {
    const whole = Array.from({ length: 20_000 }, (_, line) => `line ${line}\n`).join('');
    const { output, ...result } = resultOf(await checks.run(verification(shell("seq 0 19999 | sed 's/^/line /'"))));
    expect(result).toMatchObject({ output_digest: sha256(whole), output_bytes: whole.length, truncated: true });
    const left_out = whole.length - 65_536;
    expect(output).toBe(`${whole.slice(0, 16_384)}\n[${left_out} bytes are left out]\n${whole.slice(-49_152)}`);
    const endless = resultOf(await checks.run(verification(shell(times(5e6, 'y')))));
    expect(endless).toMatchObject({ output_digest: sha256('y'.repeat(5e6)), output_bytes: 5e6, truncated: true });
    expect(endless['output']).toBe(`${'y'.repeat(65_536)}\n[${5e6 - 65_536} bytes are left out]\n`);
    expect(await checks.run(verification(shell(times(65_536, 'x'))))).toMatchObject({
      result: { output: 'x'.repeat(65_536), truncated: false },
    });
  });

  test('output that is not UTF-8 can be recorded', async () => {
    const { output } = resultOf(await checks.run(verification(['printf', 'a\\377\\303\\000\\n'])));
    expect(output).toBe('a\ufffd\ufffd\0\n');
  });
});

describe('REVIEW_PHASE by a program', () => {
  const FINDING = { severity: 'error', message: 'No heron.', file: '/sandbox/birds.md', line: 3 };

  test.each([
    [0, 'pass'],
    [1, 'fail'],
    [2, 'warn'],
  ])(
    'C69: exit code %i and a last line of findings are the verdict %s, and evidence that this home signs',
    async (code, verdict) => {
      const line = JSON.stringify({ findings: [FINDING], summary: 'Read twice.' });
      const result = resultOf(await reviewBy(saying(code, 'reading ...', line, '')));
      const { gate_attempt_id, step_id, phase_id } = REVIEW;
      expect(result).toEqual({
        gate_attempt_id,
        step_id,
        phase_id,
        verdict,
        findings: [FINDING],
        summary: 'Read twice.',
        checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      const { findings, checksum } = result;
      const bound = { gate_attempt_id, step_id, phase_id, verdict, findings, checksum };
      const evidence = { ...bound, issued_at: '2026-01-01T00:00:00.000Z' } as unknown as GateEvidence;
      expect(isConforming(GateEvidence, evidence)).toBe(true);
      expect(isEvidenceIntact(secrets, 'ses_000001', evidence)).toBe(true);
      expect(isEvidenceIntact(secrets, 'ses_000002', evidence)).toBe(false);
      expect(
        isEvidenceIntact(secrets, 'ses_000001', { ...evidence, verdict: verdict === 'pass' ? 'warn' : 'pass' }),
      ).toBe(false);
    },
  );

  test('gets the order as JSON, and runs in the folder of the gate', async () => {
    mkdirSync(join(commands.home, 'tools'));
    expect(await reviewBy(shell(`cat > order; echo '{"findings":[]}'`), { cwd: '/sandbox/tools' })).toMatchObject({
      result: { verdict: 'pass', findings: [], summary: null },
    });
    const { title, tasks, spec_id, session_id, phase_id, step_id, gate_attempt_id, instruction, files_touched } =
      REVIEW;
    const ids = { spec_id, session_id, phase_id, step_id, gate_attempt_id, instruction, files_touched };
    const order = JSON.parse(readFileSync(join(commands.home, 'tools/order'), 'utf8')) as unknown;
    expect(order).toEqual({ ...ids, case_id: CASE, phase: { title, tasks } });
  });

  const OK = '{"findings":[]}';
  /** Prints much text, and then a number of findings. */
  const many = (count: number) =>
    shell(
      `${times(100_000, 'x')}; echo; printf '{"findings":['; ` +
        `yes '{"severity":"info","message":"m"}' | head -n ${count} | paste -s -d , | tr -d '\\n'; echo ']}'`,
    );

  test.each<readonly [string, readonly string[], string, JsonObject?]>([
    ['another exit code', saying(3, OK), 'exit code 3'],
    ['a signal', shell(`echo '${OK}'; kill -KILL $$`), 'exit code 137'],
    ['a missing program', ['no-such-reviewer'], 'exit code 127'],
    ['a missing folder', ['true'], 'exit code 126', { cwd: '/sandbox/nowhere' }],
    ['no output', ['true'], 'last line'],
    ['plain text', saying(0, 'LGTM'), 'last line'],
    ['findings followed by text', saying(0, OK, 'done'), 'last line'],
    ['a verdict in the findings', saying(1, '{"findings":[],"verdict":"pass"}'), 'last line'],
    ['an unknown severity', saying(0, '{"findings":[{"severity":"none","message":"m"}]}'), 'last line'],
    ['a repeated member', saying(1, '{"findings":[{"severity":"error","message":"m"}],"findings":[]}'), 'last line'],
    ['a prototype', saying(0, '{"findings":[],"__proto__":{}}'), 'last line'],
    ['a lone surrogate', saying(0, '{"findings":[{"severity":"info","message":"\\ud800"}]}'), 'last line'],
    ['bytes that are not UTF-8', ['printf', '{"findings":[{"severity":"info","message":"\\377"}]}'], 'last line'],
    ['101 findings', many(101), 'last line'],
    ['deep nesting', shell(`printf '{"findings":'; ${times(50_000, '[')}; echo`), 'last line'],
    ['a line that is too long', shell(`printf '{'; ${times(262_144, ' ')}; echo '"findings":[]}'`), 'last line'],
    ['output over the limit', shell(`${times(5e6, 'x')}; echo; echo '${OK}'`), 'more than can be read'],
  ])('fails, with the reason, for %s', async (_title, command, words, more = {}) => {
    const result = resultOf(await reviewBy(command, more));
    expect(result).toMatchObject({ verdict: 'fail', findings: [{ severity: 'error' }] });
    expect(messagesOf(result)).toEqual([expect.stringContaining(words)]);
    expect((result['findings'] as unknown[]).every((finding) => isConforming(GateFinding, finding))).toBe(true);
  });

  test('100 findings are accepted, and output before the last line does not matter', async () => {
    const result = resultOf(await reviewBy(many(100)));
    expect(result).toMatchObject({ verdict: 'pass' });
    expect(result['findings']).toHaveLength(100);
  });

  test('a program that exceeds its timeout fails', async () => {
    const result = resultOf(await reviewBy(shell(`echo '${OK}'; exec sleep 600`), { timeout_ms: 50 }));
    expect(result).toMatchObject({ verdict: 'fail' });
    expect(messagesOf(result)).toEqual([expect.stringContaining('time')]);
  });
});

describe('REVIEW_PHASE by a callback of the service', () => {
  const by = (callback: ReviewCallback, more: JsonObject = {}) => checksWith(callback).run(review('callback', more));

  test('its review is the verdict, and its order is a copy', async () => {
    const orders: ReviewOrder[] = [];
    const effect = review('callback');
    const before = JSON.stringify(effect.args);
    const result = await checksWith((order) => {
      orders.push(structuredClone(order));
      (order.phase.tasks as unknown[]).length = 0;
      return { verdict: 'warn', findings: [{ severity: 'info', message: 'Fine.' }], summary: 'Read.' };
    }).run(effect);
    expect(result).toMatchObject({
      status: 'done',
      result: { verdict: 'warn', findings: [{ severity: 'info', message: 'Fine.' }], summary: 'Read.' },
    });
    expect(JSON.stringify(effect.args)).toBe(before);
    expect(orders).toMatchObject([
      { case_id: CASE, phase: { title: 'Birds', tasks: REVIEW.tasks }, files_touched: REVIEW.files_touched },
    ]);
    const brief: ReviewCallback = () => Promise.resolve({ verdict: 'pass', findings: [] });
    expect(await checksWith(brief).run(review('callback'))).toMatchObject({
      result: { verdict: 'pass', summary: null },
    });
  });

  const answers: readonly (readonly [string, () => unknown])[] = [
    [
      'an error',
      () => {
        throw new Error('no');
      },
    ],
    ['a rejection', () => Promise.reject(new Error('no'))],
    ['no answer', () => undefined],
    ['a string', () => 'pass'],
    ['no findings', () => ({ verdict: 'pass' })],
    ['another verdict', () => ({ verdict: 'PASS', findings: [] })],
    ['another member', () => ({ verdict: 'pass', findings: [], certain: true })],
    [
      'a cycle',
      () => {
        const answer: Record<string, unknown> = { verdict: 'pass', findings: [] };
        answer['summary'] = answer;
        return answer;
      },
    ],
    [
      'a getter that throws',
      () => ({
        verdict: 'pass',
        get findings() {
          throw new Error('no');
        },
      }),
    ],
    ['an answer over the limit', () => ({ verdict: 'pass', findings: [], summary: 'x'.repeat(300_000) })],
  ];
  test.each(answers)('fails for %s', async (_title, answer) => {
    const result = resultOf(await by(answer as ReviewCallback));
    expect(result).toMatchObject({
      verdict: 'fail',
      findings: [{ severity: 'error', message: expect.stringContaining('no review') }],
    });
  });

  test('an answer after the timeout is a failure, and the signal of the callback is aborted', async () => {
    let isAborted = false;
    const reviewing = by(
      (_order, { signal }) =>
        new Promise((settle) => {
          signal.addEventListener('abort', () => {
            isAborted = true;
            settle({ verdict: 'pass', findings: [] });
          });
        }),
      { timeout_ms: 1_000 },
    );
    await until(() => clock.timers > 0);
    clock.advance(2_000);
    const result = resultOf(await reviewing);
    expect(result).toMatchObject({ verdict: 'fail' });
    expect(messagesOf(result)).toEqual([expect.stringContaining('time')]);
    expect(isAborted).toBe(true);
    expect(clock.timers).toBe(0);
  });

  test('without a callback, the effect was certainly not executed', async () => {
    expect(await checks.run(review('callback'))).toMatchObject({ status: 'failed', cause: 'REFUSED' });
  });
});

describe('the executor of both', () => {
  test('S4-19: without the capability nothing is run', async () => {
    for (const action of ['RUN_VERIFICATION', 'REVIEW_PHASE']) {
      const command = shell('echo > touched');
      const effect = effectOf(
        action,
        action === 'REVIEW_PHASE' ? { ...REVIEW, reviewer: 'command', command } : { ...VERIFICATION, command },
      );
      await expect(checks.run(effect)).rejects.toMatchObject({ code: 'NO_CAPABILITY' });
      expect(() => checks.settle(effect)).toThrow(expect.objectContaining({ code: 'NO_CAPABILITY' }));
    }
    expect(existsSync(join(commands.home, 'touched'))).toBe(false);
  });

  test.each([
    ['a command as one string', verification([]), { command: 'ls -l' }],
    ['no command', verification([]), {}],
    ['an extra member', verification(['true']), { shell: true }],
    ['a missing timeout', verification(['true']), { timeout_ms: 0 }],
    ['a person as the reviewer', review('manual'), {}],
  ])('%s is not executed', async (_title, { action, args }, more) => {
    const answer = await checks.run(granted(effectOf(action, { ...args, ...more })));
    expect(answer).toEqual({ status: 'failed', cause: 'INTERNAL' });
  });

  test('without a case there is no folder to run in', async () => {
    const { args } = verification(['true']);
    expect(await checks.run(granted(effectOf('RUN_VERIFICATION', args, { case_id: null })))).toMatchObject({
      status: 'failed',
    });
    const reviewArgs = review('command', { command: ['true'] }).args;
    expect(await checks.run(granted(effectOf('REVIEW_PHASE', reviewArgs, { case_id: null })))).toMatchObject({
      status: 'failed',
    });
  });

  test('D8: after a crash, and after an abort, the outcome is unknown', async () => {
    expect(checks.settle(verification(['true']))).toEqual({ status: 'unknown' });
    const ending = checksWith(() => new Promise(() => undefined));
    const mark = join(commands.home, 'mark');
    const running = [
      ending.run(verification(shell("trap '' TERM; : > mark; sleep 600"))),
      ending.run(review('command', { command: ['sleep', '600'] })),
      ending.run(review('callback')),
    ];
    await until(() => existsSync(mark));
    ending.abort();
    expect(await Promise.all(running)).toEqual(running.map(() => ({ status: 'unknown' })));
  });
});

import { afterEach, describe, expect, test } from '@jest/globals';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { SessionAnswer, SessionData } from '../../../src/features/sessions/contract/session-answer.js';
import type { SessionSpec, SpecTask } from '../../../src/features/sessions/contract/session-spec.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { contentBy } from '../../fixtures/content.js';
import { proposal } from '../../fixtures/tree.js';

const RUNNER = { actor: 'agent', role: 'autonomy_runner' } as const;
const ANNA = { actor: 'anna', role: 'maintainer' } as const;

const spec = (over: Partial<SessionSpec> = {}): SessionSpec => ({
  spec_version: 1,
  id: 'spec-a',
  title: 'Two files',
  phases: [
    {
      id: 'p1',
      title: 'One',
      tasks: [
        { id: 't1', title: 'First', instruction: 'Write a.md.' },
        { id: 't2', title: 'Second', instruction: 'Write b.md.', depends_on: ['t1'] },
      ],
    },
  ],
  ...over,
});

let bench: Bench;
afterEach(() => bench.close());

const sessions = () => bench.turnpike.sessions;
const dataOf = ({ data }: SessionAnswer): SessionData => {
  if (data === null) throw new Error('the answer has no data');
  return data;
};
const stepOf = (answer: SessionAnswer) => {
  const { next_step } = dataOf(answer);
  if (next_step === null) throw new Error('there is no step');
  return next_step;
};
const reportOf = (answer: SessionAnswer, over: object = {}) => {
  const { step_id, type, step_proof, task_id } = stepOf(answer);
  return { step_id, step_type: type, outcome: 'success', step_proof, task_id, ...over };
};

async function write(answer: SessionAnswer, path: string) {
  const { run_id } = stepOf(answer);
  return bench.turnpike.submit(run_id ?? '', JSON.stringify(proposal('WRITE_FILE', { path, content: 'x' })));
}

const start = async (over: object = {}, open: BenchOptions = {}) => {
  bench = await Bench.open(open);
  const started = await sessions().start({
    spec: spec(),
    case: 'case-local',
    by: ANNA,
    stopOnPhaseCompletion: false,
    ...over,
  });
  return dataOf(started).session_id;
};

test('S3-06: a session progresses by reports, and its work by proposals to the runs of its steps', async () => {
  const id = await start();
  let answer = await sessions().next(id, {}, RUNNER);
  expect(stepOf(answer)).toMatchObject({ type: 'implement_task', task_id: 't1', run_id: `${id}.1.1` });
  expect(await write(answer, '/sandbox/a.md')).toMatchObject({ outcome: 'SUCCESS' });
  answer = await sessions().next(id, { last_step_result: reportOf(answer, { files_touched: ['a.md'] }) }, RUNNER);
  expect(stepOf(answer)).toMatchObject({ type: 'implement_task', task_id: 't2', run_id: `${id}.1.2` });
  // The report claims a file that no run of the step has changed.
  answer = await sessions().next(id, { last_step_result: reportOf(answer, { files_touched: ['b.md'] }) }, RUNNER);
  expect(dataOf(answer)).toMatchObject({ status: 'completed', loop_signal: 'spec_complete' });
  const consumed = (await bench.entries()).flatMap((entry) =>
    entry.type === 'session_event' && entry.body.event === 'step_consumed' ? [entry.body.detail['mediation']] : [],
  );
  expect(consumed).toEqual(['mediated', 'unmediated']);
});

test('C65: the last report of a completed session gets its answer again, byte for byte, for a limited time', async () => {
  const id = await start();
  let answer = await sessions().next(id, {}, RUNNER);
  answer = await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER);
  const report = { last_step_result: reportOf(answer) };
  const last = await sessions().next(id, report, RUNNER);
  expect(stepOf(last)).toMatchObject({ type: 'complete_spec' });
  expect(await sessions().next(id, report, RUNNER)).toEqual(last);
  const another = { last_step_result: { ...report.last_step_result, files_touched: ['other.md'] } };
  expect(dataOf(await sessions().next(id, another, RUNNER)).next_step).toBeNull();
  expect(dataOf(await sessions().next(id, {}, RUNNER)).next_step).toBeNull();
});

test('D10: a step proof is nowhere in the ledger, and only the owner can read its key', async () => {
  const id = await start();
  const answer = await sessions().next(id, {}, RUNNER);
  const { step_proof = '' } = stepOf(answer);
  expect(step_proof).toMatch(/^[\w-]{43}$/);
  await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER);
  expect(JSON.stringify(await bench.entries())).not.toContain(step_proof);
  const key = join(bench.home, 'keys/session.key');
  expect(statSync(key).mode & 0o777).toBe(0o600);
  expect(readFileSync(key, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
});

test('D10: a lost key invalidates the outstanding proof: after a pause for rejected reports there is a new one', async () => {
  const id = await start();
  await sessions().next(id, {}, RUNNER);
  const first = bench;
  await first.turnpike.close();
  rmSync(join(first.home, 'keys/session.key'));
  bench = await Bench.reopen(first);
  let answer = await sessions().replay(id, RUNNER);
  for (let tries = 0; tries < 3; tries += 1) {
    const refused = await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER);
    expect(refused.error?.code).toBe('STEP_PROOF_MISMATCH');
  }
  answer = await sessions().resume(id, {}, ANNA);
  expect(stepOf(await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER))).toMatchObject({
    task_id: 't2',
  });
});

test('C64: after a crash the step is still outstanding with the same proof, and its report is accepted once', async () => {
  const id = await start();
  const answer = await sessions().next(id, {}, RUNNER);
  const first = bench;
  await first.turnpike.close();
  bench = await Bench.reopen(first);
  const again = await sessions().replay(id, RUNNER);
  expect(stepOf(again)).toEqual(stepOf(answer));
  const report = { last_step_result: reportOf(again) };
  const [one, two] = await Promise.all([sessions().next(id, report, RUNNER), sessions().next(id, report, RUNNER)]);
  expect(stepOf(one)).toMatchObject({ task_id: 't2' });
  expect(two).toEqual(one);
  const other = { last_step_result: { ...report.last_step_result, note: 'something else' } };
  expect((await sessions().next(id, other, RUNNER)).error?.code).toBe('STEP_PROOF_CONFLICT');
});

test('a spec has one session: an equal start returns it, another start is refused, and force replaces it', async () => {
  const id = await start({ idempotencyKey: 'k1' });
  const options = { spec: spec(), case: 'case-local', by: ANNA, stopOnPhaseCompletion: false } as const;
  const again = await sessions().start({ ...options, idempotencyKey: 'k1' });
  expect(dataOf(again).session_id).toBe(id);
  const differences = [
    { actor: 'another-agent' },
    { person: 'another person' },
    { scope: { client_session_id: 'two' } },
    { taxonomy: { coa: 'coa-1', tags: 'tags-1', entities: 'entities-1' } },
    { correlation: 'cor_other' },
    { exposure: 'decision' as const },
    { allowSkipped: true },
  ];
  for (const different of differences) {
    const other = sessions().start({ ...options, idempotencyKey: 'k1', ...different });
    await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
  }
  expect((await bench.entries()).at(-1)?.body).toMatchObject({ error: { error_code: 'INVALID_STATE_TRANSITION' } });
  expect((await sessions().start(options)).error?.code).toBe('SPEC_SESSION_EXISTS');
  const both = await Promise.all([1, 2].map(() => sessions().start({ ...options, force: true })));
  const ids = both.map((answer) => dataOf(answer).session_id);
  expect(new Set([id, ...ids]).size).toBe(3);
  expect((await sessions().list('spec-a')).map(({ status }) => status).sort()).toEqual(['ended', 'ended', 'running']);
});

test('a structural change of the spec file fails the session until it is rebased', async () => {
  bench = await Bench.open();
  const file = join(bench.folder, 'spec.json');
  writeFileSync(file, JSON.stringify(spec()));
  const id = dataOf(await sessions().start({ spec: file, by: ANNA })).session_id;
  const answer = await sessions().next(id, {}, RUNNER);
  const [phase] = spec().phases;
  if (phase === undefined) throw new Error('no phase');
  const tasks = [...phase.tasks, { id: 't3', title: 'Third', instruction: 'Write c.md.' }];
  writeFileSync(file, JSON.stringify(spec({ phases: [{ ...phase, tasks }] })));
  const failed = await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER);
  expect(failed).toMatchObject({ error: { code: 'SPEC_REBASE_REQUIRED' }, data: { loop_signal: 'failed' } });
  expect((await sessions().resume(id, { force: true }, ANNA)).error?.code).toBe('SPEC_REBASE_REQUIRED');
  expect((await sessions().rebase(id, { spec: file }, RUNNER)).error?.code).toBe('AUTHORIZATION');
  expect(dataOf(await sessions().rebase(id, { spec: file }, ANNA)).status).toBe('running');
  // The reported step stays done.
  expect(stepOf(await sessions().next(id, {}, RUNNER))).toMatchObject({ task_id: 't2' });
});

test('a moved spec file is found again at the path of the rebase', async () => {
  bench = await Bench.open();
  const [file, moved] = ['spec.json', 'moved.json'].map((name) => join(bench.folder, name)) as [string, string];
  writeFileSync(file, JSON.stringify(spec()));
  const id = dataOf(await sessions().start({ spec: file, by: ANNA })).session_id;
  renameSync(file, moved);
  const failed = await sessions().next(id, {}, RUNNER);
  expect(failed.data).toMatchObject({ status: 'failed', failure_reason: 'spec_not_found' });
  await sessions().rebase(id, { spec: moved }, ANNA);
  expect(stepOf(await sessions().next(id, {}, RUNNER))).toMatchObject({ task_id: 't1' });
});

const REVIEW = 'console.log(`{"findings":[]}`); process.exit(require("fs").existsSync("a.md") ? 0 : 1)';

const CHECKED: SessionSpec = spec({
  id: 'spec-b',
  phases: [
    {
      id: 'p1',
      title: 'One',
      tasks: [
        { id: 't1', title: 'First', instruction: 'Write a.md.' },
        {
          id: 'v1',
          type: 'verify',
          title: 'It is there',
          command: ['node', '-e', 'process.stdout.write(require("fs").readFileSync("a.md", "utf8"))'],
        },
      ],
      gate: { reviewer: 'command', command: ['node', '-e', REVIEW] },
    },
  ],
});

test('C68 C70: verifications and reviews are runs of the platform, and their results decide', async () => {
  const id = await start({ spec: CHECKED });
  let answer = await sessions().next(id, {}, RUNNER);
  // Reported as done, but not done.
  answer = await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER);
  expect(stepOf(answer).type).toBe('execute_verification');
  const { step_id } = stepOf(answer);
  const failed = dataOf(await sessions().verify(id, { step_id }, RUNNER));
  expect(failed.verification_receipt).toMatchObject({ exit_code: 1, step_id });
  const falseReport = reportOf(answer, { verification_receipt: { ...failed.verification_receipt, exit_code: 0 } });
  expect((await sessions().next(id, { last_step_result: falseReport }, RUNNER)).error?.code).toBe(
    'ERROR_VERIFICATION_RECEIPT_INVALID',
  );
  // Corrected within the step, and run again.
  expect(await write(answer, '/sandbox/a.md')).toMatchObject({ outcome: 'SUCCESS' });
  const passed = dataOf(await sessions().verify(id, { step_id }, RUNNER));
  expect(passed).toMatchObject({ verification_receipt: { exit_code: 0 }, output: 'x' });
  const stale = reportOf(answer, { verification_receipt: failed.verification_receipt });
  expect((await sessions().next(id, { last_step_result: stale }, RUNNER)).error?.code).toBe(
    'ERROR_VERIFICATION_RECEIPT_INVALID',
  );
  const honest = reportOf(answer, { verification_receipt: passed.verification_receipt });
  answer = await sessions().next(id, { last_step_result: honest }, RUNNER);
  const gate = stepOf(answer);
  expect(gate).toMatchObject({ type: 'run_fidelity_gate', phase_id: 'p1' });
  const { review } = dataOf(await sessions().review(id, { phase_id: 'p1', step_id: gate.step_id }, RUNNER));
  expect(review).toMatchObject({ verdict: 'pass', gate_passed_preview: true });
  const { step_type, outcome, step_proof } = reportOf(answer);
  const last = { step_id: gate.step_id, step_type, outcome, step_proof, phase_id: 'p1' };
  const forged = { ...last, gate_attempt_id: `${id}-g9` };
  expect((await sessions().next(id, { last_step_result: forged }, RUNNER)).error?.code).toBe('INVALID_GATE_EVIDENCE');
  const reported = { ...last, gate_attempt_id: review?.gate_attempt_id };
  answer = await sessions().next(id, { last_step_result: reported }, RUNNER);
  expect(dataOf(answer)).toMatchObject({ status: 'completed', satisfied_gates: ['p1'] });
});

test('C68: files that a command leaves in the sandbox count: recorded with the check, and against the quota of agents', async () => {
  const [phase] = CHECKED.phases;
  if (phase === undefined) throw new Error('no phase');
  const [made] = phase.tasks;
  if (made === undefined) throw new Error('no task');
  const fill: SpecTask = { id: 'v1', type: 'verify', title: 'It fills', command: ['truncate', '-s', '1T', 'large'] };
  const id = await start({ spec: spec({ id: 'spec-q', phases: [{ id: 'p1', title: 'One', tasks: [made, fill] }] }) });
  let answer = await sessions().next(id, {}, RUNNER);
  // From here on the account of the sandbox is in memory.
  expect(await write(answer, '/sandbox/a.md')).toMatchObject({ outcome: 'SUCCESS' });
  answer = await sessions().next(id, { last_step_result: reportOf(answer) }, RUNNER);
  const { step_id } = stepOf(answer);
  expect(dataOf(await sessions().verify(id, { step_id }, RUNNER)).verification_receipt).toMatchObject({ exit_code: 0 });
  expect(await write(answer, '/sandbox/b.md')).toMatchObject({
    outcome: 'DENIED',
    error: { message: 'Sandbox quota exceeded' },
  });
  const refs = [
    ...JSON.stringify(await bench.entries()).matchAll(/"artifact_kind":"result",[^}]*"hash_sha256":"(\w+)"/g),
  ];
  const results = await Promise.all(
    refs.map(async ([, hash = '']) => Buffer.from((await contentBy(bench.turnpike.ledger, hash)) ?? [])),
  );
  expect(results.join()).toContain('"sandbox_usage":{"bytes":1099511627777,"files":2}');
});

test("opening a home removes the remains of a killed process's commands, and nothing else", async () => {
  await start();
  const first = bench;
  await first.turnpike.close();
  const scratch = join(first.home, 'scratch');
  const closed = join(scratch, 'turnpike-command-abcdef/home/closed');
  mkdirSync(closed, { recursive: true });
  writeFileSync(join(closed, 'file'), 'x');
  chmodSync(closed, 0o000);
  mkdirSync(join(scratch, 'of-somebody-else'));
  bench = await Bench.reopen(first);
  expect(readdirSync(scratch)).toEqual(['of-somebody-else']);
  expect(statSync(scratch).mode & 0o777).toBe(0o700);
});

test('running commands have their folders in the home', async () => {
  const where: SpecTask = { id: 'v1', type: 'verify', title: 'Where', command: ['sh', '-c', 'echo $TMPDIR'] };
  const commandSpec = spec({ id: 'spec-w', phases: [{ id: 'p1', title: 'One', tasks: [where] }] });
  const id = await start({ spec: commandSpec }, { wall: 'off' });
  const { step_id } = stepOf(await sessions().next(id, {}, RUNNER));
  const { output } = dataOf(await sessions().verify(id, { step_id }, RUNNER));
  expect(output).toContain(join(bench.home, 'scratch/turnpike-command-'));
  expect(readdirSync(join(bench.home, 'scratch'))).toEqual([]);
});

test("C68: the command is that of the spec at the session's start, whatever the file contains by then", async () => {
  bench = await Bench.open();
  const file = join(bench.folder, 'spec.json');
  const saying = (word: string): SessionSpec => {
    const says: SpecTask = { id: 'v1', type: 'verify', title: 'It says', command: ['echo', word] };
    return spec({ phases: [{ id: 'p1', title: 'One', tasks: [says] }] });
  };
  writeFileSync(file, JSON.stringify(saying('first')));
  const id = dataOf(await sessions().start({ spec: file, case: 'case-local', by: ANNA })).session_id;
  writeFileSync(file, JSON.stringify(saying('second')));
  const { step_id } = stepOf(await sessions().next(id, {}, RUNNER));
  writeFileSync(file, JSON.stringify(saying('third')));
  expect(dataOf(await sessions().verify(id, { step_id }, RUNNER)).output).toBe('first\n');
  expect(dataOf(await sessions().pause(id, {}, ANNA)).status).toBe('paused');
  await sessions().rebase(id, { spec: file }, ANNA);
  const again = stepOf(await sessions().next(id, {}, RUNNER));
  expect(dataOf(await sessions().verify(id, { step_id: again.step_id }, RUNNER)).output).toBe('third\n');
});

describe('any argument leads to an answer or a usage error', () => {
  test.each([
    ['wide', { note: Array.from({ length: 300_000 }, () => 1) }],
    ['deep', { note: [[[[[[[[[[1]]]]]]]]]] }],
    ['large', { note: 'x'.repeat(200_000) }],
  ])('a report that is too %s', async (_what, report) => {
    const id = await start();
    await sessions().next(id, {}, RUNNER);
    const refused = await sessions().next(id, { last_step_result: report }, RUNNER);
    expect(refused).toMatchObject({ error: { code: 'VALIDATION_ERROR' } });
  });

  test('a spec that JSON cannot represent', async () => {
    bench = await Bench.open();
    const circle: Record<string, unknown> = { ...spec() };
    circle['phases'] = [circle];
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    for (const given of [circle, { ...spec(), phases: deep }, { ...spec(), title: 1n }, undefined, () => 1]) {
      const started = sessions().start({ spec: given as SessionSpec, by: ANNA });
      await expect(started).rejects.toMatchObject({ code: 'USAGE' });
    }
    expect(await sessions().list()).toEqual([]);
  });

  test('a spec file that can no longer be read', async () => {
    bench = await Bench.open();
    const file = join(bench.folder, 'spec.json');
    writeFileSync(file, JSON.stringify(spec()));
    const id = dataOf(await sessions().start({ spec: file, by: ANNA })).session_id;
    rmSync(file);
    symlinkSync(file, file);
    expect(await sessions().next(id, {}, RUNNER)).toMatchObject({
      error: { code: 'SESSION_UNRECOVERABLE' },
      data: { failure_reason: 'spec_not_found' },
    });
  });
});

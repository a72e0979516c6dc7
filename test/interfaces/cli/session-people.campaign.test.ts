// The session commands for people: status, pause, resume, gate decisions, rebase, end; and the required roles.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { sha256 } from '../../../src/core/contract/hash.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { initialised, jsonLines, linesOf, put, turnpike } from './fake-io.js';
import { done, GATED, PLAIN, putSpec, refused, reportOf, session, stepOf } from './session-fixture.js';

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
let folder: string;
let held: Turnpike | null = null;

beforeEach(async () => {
  folder = await initialised();
  putSpec(folder, PLAIN);
  putSpec(folder, GATED);
});
afterEach(async () => {
  await held?.close();
  held = null;
});

async function serve(): Promise<Turnpike> {
  held = await openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract'), log });
  return held;
}

const start = async (name: string, ...options: string[]): Promise<string> =>
  (await done(folder, ['start', name, '--no-stop-on-phase', ...options])).session_id;

/** Gets the next step, and reports its success. */
const work = async (...of: string[]) => {
  const step = stepOf(await done(folder, ['next', ...of]));
  return done(folder, ['report', ...of, '-'], { stdin: reportOf(step) });
};
const events = async (session_id: string) => {
  const found: unknown[] = [];
  const opened = await openTurnpike({ home: join(folder, '.turnpike'), log });
  for await (const { type, body } of opened.ledger.entries(session_id)) if (type === 'session_event') found.push(body);
  await opened.close();
  return found as { event: string; role: string; actor: { actor_id: string; actor_type: string }; detail: object }[];
};

describe.each([
  ['alone', () => Promise.resolve()],
  ['D13 through the process that owns the home directory', () => serve().then(() => undefined)],
])('%s', (_where, prepare) => {
  beforeEach(prepare);

  test('pause, resume and end: the outstanding step survives the pause, but not the end', async () => {
    await start('plain.json');
    const step = stepOf(await done(folder, ['next']));
    expect(await done(folder, ['pause', '--reason', 'lunch'])).toMatchObject({ pause_reason: 'user' });
    expect(await done(folder, ['next'])).toMatchObject({ loop_signal: 'paused_needs_attention' });
    expect(stepOf(await done(folder, ['resume']))).toMatchObject({ step_id: step.step_id, type: step.type });
    const fresh = stepOf(await done(folder, ['replay']));
    expect(stepOf(await done(folder, ['report', '-'], { stdin: reportOf(fresh) }))).toMatchObject({ task_id: 'two' });
    const ended = await done(folder, ['end', '--reason', 'testing', '--detail', 'enough']);
    expect(ended).toMatchObject({ status: 'ended' });
    expect(await refused(folder, ['resume', ended.session_id])).toBe('INVALID_STATE_TRANSITION');
  });

  test('C72 a gate waits for a person: accepts only that attempt, a maintainer, and pass or fail', async () => {
    await start('gated.json');
    const paused = await work();
    expect(paused).toMatchObject({ pause_reason: 'gate_review_required', loop_signal: 'paused_needs_attention' });
    expect(await refused(folder, ['resume'])).toBe('MANUAL_GATE_ACK_REQUIRED');
    const status = await turnpike(folder, ['session', 'status']);
    const [, attempt = ''] = /asks +pass or fail (\S+),/.exec(status.stdout) ?? [];
    expect(await refused(folder, ['ack', `${attempt}0`, 'pass'])).toBe('INVALID_GATE_ACK');
    expect(await refused(folder, ['ack', attempt, 'pass', '--role', 'autonomy_runner'])).toBe('AUTHORIZATION');
    expect(await done(folder, ['ack', attempt, 'pass'])).toMatchObject({
      status: 'running',
      satisfied_gates: ['first'],
    });
    expect(stepOf(await done(folder, ['next']))).toMatchObject({ task_id: 'two' });
  });

  test('a gate can be waived if allowed, with a recorded reason', async () => {
    const session_id = await start('gated.json');
    await work();
    const detail = 'seen \u001b[1m by hand';
    const waived = await done(folder, [
      'waive',
      session_id,
      'first',
      '--reason',
      'operator_override',
      '--detail',
      detail,
    ]);
    expect(waived).toMatchObject({ satisfied_gates: ['first'], missing_required_gates: [] });
    expect(await refused(folder, ['waive', 'first', '--reason', 'testing'])).toBe('INVALID_STATE_TRANSITION');
    expect(await refused(folder, ['waive', 'other', '--reason', 'testing'])).toBe('NOT_FOUND');
    await held?.close();
    held = null;
    expect((await events(session_id)).find(({ event }) => event === 'gate_waived')).toMatchObject({
      detail: { reason_code: 'operator_override', reason_detail: null, note_sha256: sha256(detail) },
      actor: { actor_id: 'operator', actor_type: 'human' },
      role: 'maintainer',
    });
  });

  test('a changed spec fails its session; a rebase continues it', async () => {
    await start('plain.json');
    const step = stepOf(await done(folder, ['next']));
    const three = { id: 'three', title: 'Write three', instruction: 'Write /sandbox/three.md.' };
    const phases = PLAIN.phases.map((phase, index) =>
      index === 1 ? { ...phase, tasks: [...phase.tasks, three] } : phase,
    );
    putSpec(folder, { ...PLAIN, phases });
    expect(await refused(folder, ['report', '-'], { stdin: reportOf(step) })).toBe('SPEC_REBASE_REQUIRED');
    expect(await refused(folder, ['resume', '--force'])).toBe('SPEC_REBASE_REQUIRED');
    expect(await refused(folder, ['rebase', 'plain.json', '--role', 'autonomy_runner'])).toBe('AUTHORIZATION');
    expect(await done(folder, ['rebase', 'plain.json'])).toMatchObject({ status: 'running' });
    const without = { ...PLAIN, phases: PLAIN.phases.slice(1).map((phase) => ({ ...phase, tasks: [three] })) };
    await done(folder, ['pause']);
    const rebased = { stdin: JSON.stringify(without) };
    expect(await refused(folder, ['rebase', '-'], rebased)).toBe('REBASE_COMPLETED_TASKS_REMOVED');
    expect(await done(folder, ['rebase', '-', '--force'], rebased)).toMatchObject({ status: 'running' });
    expect((await turnpike(folder, ['session', 'rebase', 'missing.json'])).code).toBe(2);
  });

  test('an observer may only read', async () => {
    await start('plain.json');
    const observer = ['--role', 'observer'];
    for (const argv of [['next'], ['replay'], ['pause'], ['heartbeat'], ['end', '--reason', 'testing']]) {
      expect({ argv, code: await refused(folder, [...argv, ...observer]) }).toEqual({ argv, code: 'AUTHORIZATION' });
    }
    expect(await refused(folder, ['start', 'plain.json', ...observer])).toBe('AUTHORIZATION');
    expect(await refused(folder, ['pause', '--role', 'autonomy_runner'])).toBe('AUTHORIZATION');
    expect(await done(folder, ['pause', '--actor', 'anna'])).toMatchObject({ status: 'paused' });
  });
});

describe('the choice of the session', () => {
  test('uses the only active session; none is a refusal, several are a usage error with a list', async () => {
    expect(await refused(folder, ['next'])).toBe('NO_ACTIVE_SESSION');
    const one = await start('plain.json');
    expect(await done(folder, ['next'])).toMatchObject({ session_id: one });
    const other = await start('gated.json');
    for (const argv of [['next'], ['status'], ['packets', '--json'], ['pause']]) {
      const { code, stdout, stderr } = await turnpike(folder, ['session', ...argv]);
      expect({ argv, code, stdout, lines: linesOf(stderr) }).toEqual({
        argv,
        code: 2,
        stdout: '',
        lines: [
          'AMBIGUOUS_ACTIVE_SESSION: 2 sessions are active: name one of them',
          expect.stringMatching(new RegExp(`^${one} +running +plain `)),
          expect.stringMatching(new RegExp(`^${other} +running +gated `)),
        ],
      });
    }
    await done(folder, ['end', one, '--reason', 'testing']);
    expect(await done(folder, ['next'])).toMatchObject({ session_id: other });
  });

  test.each([
    ['another word', ['next', 'plain']],
    ['a path', ['next', '../../x']],
    ['a run of one', ['next', 'ses_abc.1.1']],
    ['too many', ['next', 'ses_abc', 'ses_abd']],
    ['a phase that is none', ['waive', 'a b', '--reason', 'testing']],
    ['an unknown phase', ['waive', '_x', '--reason', 'testing']],
    ['a task that is none', ['prepare', '--task', '../x']],
    ['an attempt that is none', ['ack', 'x\u001b[2J', 'pass']],
    ['another decision', ['ack', 'ses_abc-g1', 'maybe']],
    ['no reason', ['end']],
    ['a detail without end', ['end', '--reason', 'testing', '--detail', 'x'.repeat(401)]],
    ['a pause with a note that is too long', ['pause', '--reason', 'x'.repeat(401)]],
    ['an invalid percentage', ['next', '--context', '101']],
    ['yes and no', ['start', 'plain.json', '--waivers', '--no-waivers']],
    ['an unknown limit', ['start', 'plain.json', '--limit', 'toString=1']],
    ['a limit given twice', ['start', 'plain.json', '--limit', 'max_skips=1', '--limit', 'max_skips=2']],
  ])('%s is wrong usage, and nothing is asked', async (_what, argv) => {
    const { code, stdout, stderr } = await turnpike(folder, ['session', ...argv]);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^USAGE: [^\n]+\n$/),
    });
    expect(stderr).not.toContain('\u001b');
  });

  test('reports an unknown session', async () => {
    for (const argv of [['next'], ['status'], ['packets'], ['prepare'], ['pause']]) {
      expect(await refused(folder, [...argv, 'ses_000000000000000000000'])).toBe('NO_ACTIVE_SESSION');
    }
  });
});

describe('reading', () => {
  test('S3-38 S3-40 packets prints the packet of the last answer of the loop, and before that a preview', async () => {
    const session_id = await start('plain.json');
    const running = JSON.parse((await turnpike(folder, ['session', 'packets'])).stdout) as object;
    const paused = (await done(folder, ['pause'])).exit_packet;
    expect(paused).toMatchObject({ loop_signal: 'paused_needs_attention', pause_reason: 'user', steps_executed: 0 });
    expect(Object.keys(running).sort()).toEqual(Object.keys(paused ?? {}).sort());
    expect(running).toMatchObject({ session_id, final_status: 'running', loop_signal: null });
    expect(jsonLines((await turnpike(folder, ['session', 'packets', '--json'])).stdout)).toEqual([paused]);
    await done(folder, ['resume']);
    const two = stepOf(await work());
    const { exit_packet } = await done(folder, ['report', '-'], { stdin: reportOf(two) });
    expect(exit_packet).toMatchObject({ final_status: 'completed', loop_signal: 'spec_complete', steps_executed: 2 });
    expect(jsonLines((await turnpike(folder, ['session', 'packets', session_id, '--json'])).stdout)).toEqual([
      exit_packet,
    ]);
  });

  test('needs no lock, whichever process owns the home directory, and prints the same', async () => {
    const session_id = await start('gated.json');
    await work();
    const home = join(folder, '.turnpike');
    held = await openTurnpike({ home, contract: join(folder, 'contract'), log, control: false });
    const { answer } = await session(folder, ['status']);
    expect(answer).toEqual(await held.sessions.status(session_id));
    const [listed] = jsonLines((await turnpike(folder, ['session', 'list', '--json'])).stdout);
    expect([listed]).toEqual(await held.sessions.list());
    const prepared = JSON.parse(
      (await turnpike(folder, ['session', 'prepare', '--task', 'two', '--json'])).stdout,
    ) as object;
    expect(prepared).toEqual(await held.sessions.prepare(session_id, 'two'));
  });

  test('status as text: tasks, gates, the outstanding step without its proof, and the next action', async () => {
    await start('gated.json');
    const { step_id, step_proof } = stepOf(await done(folder, ['next']));
    const { stdout } = await turnpike(folder, ['session', 'status']);
    expect(linesOf(stdout)).toEqual([
      expect.stringMatching(/^ses_\w+ {2}running$/),
      '  spec    gated: A plain spec',
      expect.stringMatching(/^ {2}file {4}\/.*gated\.json$/),
      '  tasks   0 of 2 completed',
      '  steps   0 reported, activation 1',
      '  phase   first',
      '  gates   0 of 1 satisfied; missing: first',
      `  step    ${step_id} (implement_task)`,
      '  task    one: Write one',
      expect.stringMatching(/^ {2}run {5}ses_\w+\.1\.1 in lane SANDBOX_FILES$/),
      expect.stringMatching(/^ {2}since {3}\d{4}-/),
      '  policy  supervised, gates strict',
    ]);
    expect(stdout).not.toContain(step_proof);
    await done(folder, ['report', '-'], { stdin: reportOf(stepOf(await done(folder, ['replay']))) });
    const then = linesOf((await turnpike(folder, ['session', 'status'])).stdout);
    expect(then[0]).toMatch(/ {2}paused \(gate_review_required\)$/);
    expect(then.slice(-2)).toEqual([
      '  signal  paused_needs_attention',
      '  then    acknowledge_manual_gate_review: A person has to decide (turnpike session ack)',
    ]);
  });

  test('list: the newest last, all or only the active, of one spec or all', async () => {
    const one = await start('plain.json');
    await done(folder, ['end', '--reason', 'testing']);
    const two = await start('plain.json');
    const three = await start('gated.json');
    const ids = async (...argv: string[]) =>
      jsonLines((await turnpike(folder, ['session', 'list', '--json', ...argv])).stdout).map(
        ({ session_id }) => session_id,
      );
    expect(await ids()).toEqual([one, two, three]);
    expect(await ids('--active')).toEqual([two, three]);
    expect(await ids('--spec', 'plain')).toEqual([one, two]);
    const { stdout } = await turnpike(folder, ['session', 'list']);
    expect(linesOf(stdout)[0]).toMatch(new RegExp(`^${one} {2}ended {4}plain {2}\\d{4}-`));
  });

  test('an active session does not count as recovered from an earlier process', async () => {
    await start('plain.json');
    expect(await turnpike(folder, ['session', 'next'])).toMatchObject({ code: 0, stderr: '' });
    put(folder, 'one.json', '{}');
    expect((await turnpike(folder, ['step', 'one.json'])).stderr).not.toContain('recovered');
  });
});

// A session with commands only, each a process: alone, and while another process owns the home directory. The shipped
// command is tested in cli.nightly.test.ts; here it is started thirty times, from few files.

import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionAnswer, SessionData } from '../../src/features/sessions/contract/session-answer.js';
import { jsonLines, linesOf, put, think, write } from '../interfaces/cli/fake-io.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import type { SessionSpec } from '../../src/features/sessions/contract/session-spec.js';
import { PLAIN, putSpec, reportOf, stepOf } from '../interfaces/cli/session-fixture.js';
import { builtCommand } from '../fixtures/build.js';

const MS_MAX = 120_000;
let command: string;
let folder: string;
const children = new Set<ChildProcessWithoutNullStreams>();

beforeAll(async () => {
  command = await builtCommand(diskFolder());
}, 400_000);
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

function begin(argv: readonly string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [command, ...argv], { cwd: folder, env: { PATH: process.env['PATH'] } });
  children.add(child);
  child.stdin.on('error', () => undefined);
  return child;
}

async function turnpike(argv: readonly string[], stdin = '') {
  const child = begin(argv);
  const [stdout, stderr]: string[][] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => stdout?.push(chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => stderr?.push(chunk.toString('utf8')));
  child.stdin.end(stdin);
  const [status] = (await once(child, 'close')) as [number | null];
  children.delete(child);
  return { status, stdout: stdout?.join('') ?? '', stderr: stderr?.join('') ?? '' };
}

async function session(argv: readonly string[], stdin = ''): Promise<SessionData> {
  const said = await turnpike(['session', ...argv, '--json'], stdin);
  const [answer] = jsonLines<SessionAnswer>(said.stdout);
  if (said.status !== 0 || said.stderr !== '' || !answer?.success) throw new Error(JSON.stringify(said));
  return answer.data;
}

/** Another process that owns the home directory until it is stopped. */
async function holder(): Promise<() => Promise<unknown>> {
  const child = begin(['run', '-']);
  child.stdin.write(`${think()}\n`);
  await once(child.stdout, 'data');
  return () => {
    child.stdin.end();
    return once(child, 'close');
  };
}

/** One task, then one that programs verify and review. */
const SPEC: SessionSpec = {
  ...PLAIN,
  id: 'both',
  phases: PLAIN.phases.map((phase, index) =>
    index === 0
      ? phase
      : {
          ...phase,
          tasks: [
            ...phase.tasks,
            {
              id: 'there',
              title: 'It is there',
              type: 'verify',
              command: ['node', '-e', `console.log(require('node:fs').readFileSync('two.md', 'utf8'))`],
            },
          ],
          gate: { reviewer: 'command', command: ['node', '-e', `console.log('{"findings":[]}')`] },
        },
  ),
};

test(
  'D13 S3-06 S3-24 S3-30 S3-40 commands work through a spec, half of it while another process owns the home directory',
  async () => {
    folder = diskFolder();
    expect(await turnpike(['init'])).toMatchObject({ status: 0 });
    putSpec(folder, SPEC);
    const { session_id } = await session(['start', 'both.json']);
    const one = stepOf(await session(['next']));
    put(folder, 'report.json', reportOf(one));

    const release = await holder();
    expect(existsSync(join(folder, '.turnpike/control.sock'))).toBe(true);
    expect(await turnpike(['session', 'report', '-'], reportOf(one, { step_proof: 'x' }))).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^STEP_PROOF_MISMATCH: /),
    });
    expect(await session(['report', 'report.json'])).toMatchObject({ loop_signal: 'phase_complete' });
    expect(await session(['resume'])).toMatchObject({ status: 'running' });
    const two = stepOf(await session(['next', session_id]));
    expect(two).toMatchObject({ task_id: 'two', phase_id: 'second' });
    const wrote = await turnpike(['step', put(folder, 'two.json', write('/sandbox/two.md', 'It is.'))]);
    expect(wrote).toMatchObject({ status: 0 });
    const verification = stepOf(await session(['report', '-'], reportOf(two)));
    const { verification_receipt, output } = await session(['verify']);
    expect({ verification_receipt, output }).toMatchObject({
      verification_receipt: { exit_code: 0 },
      output: 'It is.\n',
    });
    await release();

    // No process owns the home directory now: the session, step, proof and receipt are the same.
    expect(existsSync(join(folder, '.turnpike/control.sock'))).toBe(false);
    expect(stepOf(await session(['replay']))).toEqual(verification);
    const gate = stepOf(await session(['report', '-'], reportOf(verification, { verification_receipt })));
    const { review } = await session(['review']);
    const { gate_attempt_id } = review ?? {};
    expect(await session(['report', '-'], reportOf(gate, { gate_attempt_id }))).toMatchObject({
      loop_signal: 'phase_complete',
      satisfied_gates: ['second'],
    });
    await session(['resume']);
    const last = await session(['next']);
    expect(last).toMatchObject({ status: 'completed', loop_signal: 'spec_complete' });
    const packet = await turnpike(['session', 'packets', session_id, '--json']);
    expect(jsonLines(packet.stdout)).toEqual([last.exit_packet]);
    expect(linesOf((await turnpike(['session', 'list'])).stdout)).toEqual([
      expect.stringMatching(new RegExp(`^${session_id} {2}completed {2}both `)),
    ]);
    expect(await turnpike(['replay'])).toMatchObject({ status: 0 });
    expect(await turnpike(['ledger', 'verify'])).toMatchObject({ status: 0 });
  },
  2 * MS_MAX,
);

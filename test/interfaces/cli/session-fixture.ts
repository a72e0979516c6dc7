// Sessions with the command only: specs as files, printed answers, and reports as a shell script writes them.

import type { NextStep, SessionAnswer, SessionData } from '../../../src/features/sessions/contract/session-answer.js';
import type { SessionSpec } from '../../../src/features/sessions/contract/session-spec.js';
import { jsonLines, put, turnpike, type Said, type World } from './fake-io.js';

const PRINTING = `console.log('seen\\u001b[2J\\nses_forged  completed'); process.exit(existsSync('one.md') ? 0 : 3)`;

const FINDINGS = '{"findings":[{"severity":"info","message":"fine\\u001b[2J","file":"/sandbox/one.md","line":3}]}';

/** Two phases with one task each, without verification or review. */
export const PLAIN: SessionSpec = {
  spec_version: 1,
  id: 'plain',
  title: 'A plain spec',
  phases: [
    { id: 'first', title: 'First', tasks: [{ id: 'one', title: 'Write one', instruction: 'Write /sandbox/one.md.' }] },
    {
      id: 'second',
      title: 'Second',
      tasks: [{ id: 'two', title: 'Write two', instruction: 'Write /sandbox/two.md.', depends_on: ['one'] }],
    },
  ],
};

/** The same with a gate after the first phase that a person decides. */
export const GATED: SessionSpec = {
  ...PLAIN,
  id: 'gated',
  phases: PLAIN.phases.map((phase, index) => (index === 0 ? { ...phase, gate: { reviewer: 'manual' } } : phase)),
};

/** One task whose file programs verify and review. */
export const CHECKED: SessionSpec = {
  spec_version: 1,
  id: 'checked',
  title: 'A spec that is checked',
  phases: [
    {
      id: 'only',
      title: 'Only',
      tasks: [
        { id: 'one', title: 'Write one', instruction: 'Write /sandbox/one.md.' },
        {
          id: 'there',
          title: 'It is there',
          type: 'verify',
          command: ['node', '-e', `const { existsSync } = require('node:fs'); ${PRINTING}`],
        },
      ],
      gate: { reviewer: 'command', command: ['node', '-e', `console.log(${JSON.stringify(FINDINGS)})`] },
    },
  ],
};

export const putSpec = (folder: string, spec: SessionSpec, name = `${spec.id}.json`): string =>
  put(folder, name, JSON.stringify(spec));

export interface Asked extends Said {
  readonly answer: SessionAnswer;
}

/** Runs `turnpike session ... --json`. @returns the one answer that it must print */
export async function session(folder: string, argv: readonly string[], world: World = {}): Promise<Asked> {
  const said = await turnpike(folder, ['session', ...argv, '--json'], world);
  const [answer, ...more] = jsonLines<SessionAnswer>(said.stdout);
  if (answer === undefined || more.length > 0) throw new Error(JSON.stringify(said));
  return { ...said, answer };
}

/** The data of a successful answer. */
export async function done(folder: string, argv: readonly string[], world: World = {}): Promise<SessionData> {
  const { answer, code, stderr } = await session(folder, argv, world);
  if (!answer.success || code !== 0 || stderr !== '') throw new Error(JSON.stringify({ answer, code, stderr }));
  return answer.data;
}

/** The code of a refusal. */
export async function refused(folder: string, argv: readonly string[], world: World = {}): Promise<string> {
  const { answer, code } = await session(folder, argv, world);
  if (answer.success || code !== 1) throw new Error(JSON.stringify({ answer, code }));
  return answer.error.code;
}

export const stepOf = ({ next_step }: SessionData): NextStep => {
  if (next_step === null) throw new Error('no step was told');
  return next_step;
};

/** The report of a step, made from the output of the command. */
export const reportOf = (step: NextStep, over: object = {}): string =>
  JSON.stringify({
    step_id: step.step_id,
    step_type: step.type,
    outcome: 'success',
    step_proof: step.step_proof,
    ...(step.task_id === null ? { phase_id: step.phase_id } : { task_id: step.task_id }),
    ...over,
  });

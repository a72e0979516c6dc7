// What the agent is told of a step, in words: always there, and all that it needs (S3-07, S3-19, C63).

import type { GateFinding } from '../contract/session.js';
import type { NextStep } from '../contract/session-answer.js';
import { isVerifyTask, type SpecPhase, type SpecTask } from '../contract/session-spec.js';

type Told = Pick<NextStep, 'instruction' | 'instructions'>;

export function taskInstruction(task: SpecTask, session_id: string, step_id: string): Told {
  if (isVerifyTask(task))
    return verifyInstruction(task.instruction ?? null, task.title, task.command, session_id, step_id);
  const accepted = (task.acceptance ?? []).map((line) => `- ${line}`);
  const lines = accepted.length === 0 ? [] : ['', 'It is accepted when:', ...accepted];
  return {
    instruction: [task.instruction, ...lines].join('\n'),
    instructions: [
      { tool: 'task', action: 'prepare', description: 'more about the task, where that is wanted' },
      { tool: 'propose', action: 'any allowed action', description: 'read and change files of the sandbox' },
      REPORT,
    ],
  };
}

const verifyInstruction = (
  own: string | null,
  title: string,
  command: readonly string[],
  session_id: string,
  step_id: string,
): Told => ({
  instruction:
    own ??
    `Verify: ${title}. Have the platform run ${JSON.stringify(command)} by verification(action="execute", ` +
      `session_id="${session_id}", step_id="${step_id}"), and report its receipt: success with exit code 0, failure ` +
      'with any other. It may be mended and run again before it is reported.',
  instructions: [
    { tool: 'verification', action: 'execute', description: 'runs the command and returns the receipt' },
    REPORT,
  ],
});

export const gateInstruction = (phase: SpecPhase, spec_id: string, session_id: string, step_id: string): Told => ({
  instruction:
    `The tasks of phase "${phase.title}" are done. Have them reviewed by review(action="fidelity-gate", ` +
    `spec_id="${spec_id}", session_id="${session_id}", phase_id="${phase.id}", step_id="${step_id}"), and report ` +
    'the gate_attempt_id that it returns.',
  instructions: [{ tool: 'review', action: 'fidelity-gate', description: 'reviews the phase' }, REPORT],
});

export const feedbackInstruction = (phase: SpecPhase, findings: readonly GateFinding[]): Told => ({
  instruction: [
    `The gate of phase "${phase.title}" has not passed. Address what the review found:`,
    ...(findings.length === 0 ? ['- (it named no findings)'] : findings.map(findingLine)),
  ].join('\n'),
  instructions: [
    { tool: 'propose', action: 'any allowed action', description: 'read and change files of the sandbox' },
    REPORT,
  ],
});

const findingLine = ({ severity, message, file, line }: GateFinding): string =>
  `- ${severity}${file === undefined ? '' : ` ${file}${line === undefined ? '' : `:${line}`}`}: ${message}`;

const REPORT = {
  tool: 'task',
  action: 'session-step',
  description: 'command="next" with last_step_result: the report, with step_proof as it was given',
} as const;

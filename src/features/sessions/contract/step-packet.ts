// The packet of a step for the agent. It always has an instruction, with all that the agent needs (S3-07, S3-19, C63).
// Sessions and the page that shows them build the same packets from the same spec, so this file has no schema.

import type { GateFinding } from './session.js';
import type { NextStep } from './session-answer.js';
import type { SessionSpec, SpecPhase, SpecTask, VerifyTask } from './session-spec.js';

export type { GateFinding, NextStep, SessionSpec };

export interface PacketInput extends Pick<NextStep, 'step_id' | 'type' | 'run_id' | 'lane_id' | 'findings'> {
  readonly session_id: string;
  readonly spec_id: string;
  readonly phase: SpecPhase;
  /** Null if the step is about the gate of the phase. */
  readonly task: SpecTask | null;
  readonly issue: number;
}

/** The packet of a step. It holds the issue number, from which the shell makes the step proof that replaces it. */
export const stepPacket = (input: PacketInput): NextStep => ({
  step_id: input.step_id,
  type: input.type,
  phase_id: input.phase.id,
  task_id: input.task?.id ?? null,
  task_title: input.task?.title ?? null,
  ...createInstructions(input),
  reason: null,
  run_id: input.run_id,
  lane_id: input.lane_id,
  findings: input.findings,
  issue: input.issue,
});

type PacketInstructions = Pick<NextStep, 'instruction' | 'instructions'>;

function createInstructions(input: PacketInput): PacketInstructions {
  const { type, task, phase, findings, spec_id, session_id, step_id } = input;
  if (task !== null) return taskInstruction(task, input);
  if (type === 'run_fidelity_gate') return gateInstruction(phase, spec_id, session_id, step_id);
  return feedbackInstruction(phase, findings);
}

const isVerifyTask = (task: SpecTask): task is VerifyTask => task.type === 'verify';

function taskInstruction(task: SpecTask, input: PacketInput): PacketInstructions {
  if (isVerifyTask(task)) return verifyInstruction(task, input);
  const accepted = (task.acceptance ?? []).map((line) => `- ${line}`);
  const lines = accepted.length === 0 ? [] : ['', 'It is accepted when:', ...accepted];
  return {
    instruction: [task.instruction, ...lines].join('\n'),
    instructions: [
      { tool: 'task', action: 'prepare', description: 'more about the task, where that is wanted' },
      { tool: 'propose', action: 'any allowed action', description: 'read and change files of the sandbox' },
      REPORT_INSTRUCTION,
    ],
  };
}

/** The spec's own instruction comes first, and then the command (S3-23, C91). */
const verifyInstruction = ({ instruction, title, command }: VerifyTask, input: PacketInput): PacketInstructions => ({
  instruction:
    instruction === undefined
      ? commandText(title, command, input)
      : `${instruction}\n\n${commandText(title, command, input)}`,
  instructions: [
    { tool: 'verification', action: 'execute', description: 'runs the command and returns the receipt' },
    REPORT_INSTRUCTION,
  ],
});

const commandText = (
  title: string,
  command: readonly string[],
  { session_id, step_id }: Pick<PacketInput, 'session_id' | 'step_id'>,
): string =>
  `Verify: ${title}. Have the platform run ${JSON.stringify(command)} by verification(action="execute", ` +
  `session_id="${session_id}", step_id="${step_id}"), and report its receipt: success with exit code 0, failure ` +
  'with any other. It may be mended and run again before it is reported.';

const gateInstruction = (
  phase: SpecPhase,
  spec_id: string,
  session_id: string,
  step_id: string,
): PacketInstructions => ({
  instruction:
    `The tasks of phase "${phase.title}" are done. Have them reviewed by review(action="fidelity-gate", ` +
    `spec_id="${spec_id}", session_id="${session_id}", phase_id="${phase.id}", step_id="${step_id}"), and report ` +
    'the gate_attempt_id that it returns.',
  instructions: [{ tool: 'review', action: 'fidelity-gate', description: 'reviews the phase' }, REPORT_INSTRUCTION],
});

const feedbackInstruction = (phase: SpecPhase, findings: readonly GateFinding[]): PacketInstructions => ({
  instruction: [
    `The gate of phase "${phase.title}" has not passed. Address what the review found:`,
    ...(findings.length === 0 ? ['- (it named no findings)'] : findings.map(findingLine)),
  ].join('\n'),
  instructions: [
    { tool: 'propose', action: 'any allowed action', description: 'read and change files of the sandbox' },
    REPORT_INSTRUCTION,
  ],
});

const findingLine = ({ severity, message, file, line }: GateFinding): string =>
  `- ${severity}${file === undefined ? '' : ` ${file}${line === undefined ? '' : `:${line}`}`}: ${message}`;

const REPORT_INSTRUCTION = {
  tool: 'task',
  action: 'session-step',
  description: 'command="next" with last_step_result: the report, with step_proof as it was given',
} as const;

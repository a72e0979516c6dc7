// The commands with which people decide about a session.

import { resolve } from 'node:path';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import {
  NOTE_TYPE,
  operationCommand,
  OVERRIDE_OPTIONS,
  overrideOf,
  parseId,
  readSpecFromStdin,
} from './session-options.js';

/** `turnpike session pause`: makes the agent's loop stop at its next request. */
const sessionPause = operationCommand({
  operation: 'pause',
  summary: 'Pause a session',
  options: [
    { name: 'reason', value: 'TEXT', type: NOTE_TYPE, help: 'the reason, for the audit; up to 400 characters' },
  ],
  notes: ['An outstanding step stays outstanding: after `turnpike session resume` its agent continues with it.'],
  readRequest: ({ args: { values } }) => omitUndefined({ reason: values.reason }),
});

/** `turnpike session resume`: resumes a paused session; with --force, a failed one (C74). */
const sessionResume = operationCommand({
  operation: 'resume',
  summary: 'Resume a paused session, or with --force a failed one',
  options: [{ name: 'force', help: 'also resume a failed session' }],
  notes: [
    'The limit that stopped the session counts from zero again. If the spec has changed, use `turnpike session',
    'rebase`; if a gate waits for a person, use `turnpike session ack`. The role autonomy_runner may resume only after',
    'pauses that need no decision of a person.',
  ],
  readRequest: ({ args: { values } }) => (values.force ? { force: true } : {}),
});

/** `turnpike session ack`: records a person's decision on the pending gate; the session continues from it (C72). */
const sessionAck = operationCommand({
  name: 'ack',
  operation: 'resume',
  summary: 'Pass or fail a gate that waits for a person, and resume its session',
  operands: ['ATTEMPT', 'pass|fail'],
  notes: ['`turnpike session status` prints the ATTEMPT that waits for a decision.'],
  readRequest({ args, operands: [attempt = '', decisionText = ''] }) {
    const gate_attempt_id = parseId(args, 'gate attempt', attempt);
    const decision = (['pass', 'fail'] as const).find((known) => known === decisionText);
    if (decision === undefined)
      throw args.usageError(`the decision must be pass or fail, not ${quoteArgument(decisionText)}`);
    return { acknowledge: { gate_attempt_id, decision } };
  },
});

/** `turnpike session waive`: marks a gate as satisfied although nothing has passed it. */
const sessionWaive = operationCommand({
  operation: 'waive',
  summary: 'Waive the gate of a phase',
  operands: ['PHASE'],
  options: OVERRIDE_OPTIONS,
  notes: [
    'Works only if the session allows waivers (by its posture, or `turnpike session start --waivers`). The waiver',
    'stays in the ledger permanently.',
  ],
  readRequest: ({ args, operands: [phase = ''] }) => ({
    ...overrideOf(args.values),
    phase_id: parseId(args, 'phase', phase),
  }),
});

/** `turnpike session rebase`: continues a paused or failed session with a changed spec. */
const sessionRebase = operationCommand({
  operation: 'rebase',
  summary: 'Continue a paused or failed session with another version of its spec',
  operands: ['SPEC'],
  options: [{ name: 'force', help: 'continue even if the new version lacks completed tasks' }],
  notes: [
    'SPEC is as in `turnpike session start`. Completed tasks stay completed. Gates keep their result if their phase',
    'has not changed. Skipped tasks are issued again.',
  ],
  async readRequest({ args, io, operands: [name = ''] }) {
    const spec = name === '-' ? await readSpecFromStdin(io) : resolve(io.cwd, name);
    return { spec, ...(args.values.force ? { force: true } : {}) };
  },
});

/** `turnpike session end`: ends a session permanently. */
const sessionEnd = operationCommand({
  operation: 'end',
  summary: 'End a session permanently, even if tasks are left',
  options: OVERRIDE_OPTIONS,
  readRequest: ({ args }) => overrideOf(args.values),
});

export const PERSON_COMMANDS: readonly CliCommand[] = [
  sessionPause,
  sessionResume,
  sessionAck,
  sessionWaive,
  sessionRebase,
  sessionEnd,
];

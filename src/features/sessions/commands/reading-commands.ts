// The commands that read sessions. They need no lock, and record nothing.

import { exitPacket, rejectionWithoutSession, sessionAnswer } from '../rules/command-answer.js';
import { loopSignal } from '../rules/loop-signal.js';
import type { SessionState } from '../rules/session-state.js';
import { findTaskDetails } from '../session-reader.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type CommandArguments,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { createPainter, escapeText, jsonLine, table } from '../../../interfaces/cli/text/terminal.js';
import {
  listSessions,
  parseId,
  SESSION_OPERAND,
  splitOperands,
  toSessionSummary,
  withSession,
} from './session-options.js';
import { printAnswer, sessionRows, statusText, taskText } from './session-text.js';

/** Prints something of one session. @returns 1 if it does not exist */
function printSession(
  args: CommandArguments,
  io: Io,
  print: (state: SessionState) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { session } = splitOperands(args, SESSION_OPERAND.max);
  return withSession(session, args, io, ({ state }) =>
    state === null ? printAnswer(rejectionWithoutSession('NO_ACTIVE_SESSION'), args, io) : print(state),
  );
}

/** `turnpike session prepare`: prints all that the spec says about a task (S3-20). */
const sessionPrepare: CliCommand = defineCommand({
  name: 'session prepare',
  access: 'write',
  summary: 'Print everything that the spec says about a task',
  operands: SESSION_OPERAND,
  options: [{ name: 'task', value: 'ID', help: 'the task (default: the task of the outstanding step)' }],
  notes: ['Needs no lock.'],
  async run(args, io) {
    const { task: named, json } = args.values;
    const task_id = named === undefined ? undefined : parseId(args, 'task', named);
    return printSession(args, io, async (state) => {
      const task = findTaskDetails(state, task_id);
      if (task === null) return printAnswer(rejectionWithoutSession('NOT_FOUND', ['task']), args, io);
      await io.stdout.write(json ? jsonLine(task) : taskText(task, createPainter(io.colours)));
      return 0;
    });
  },
});

/** `turnpike session status`: prints the status of a session. */
const sessionStatus: CliCommand = {
  name: 'session status',
  access: 'read',
  summary: 'Print the status of a session',
  operands: SESSION_OPERAND,
  options: [],
  notes: [
    'Needs no lock, changes nothing and is not recorded. `turnpike session replay` prints the outstanding step with',
    'its proof; `turnpike runs` prints the runs of the session.',
  ],
  run: async (args, io) =>
    printSession(args, io, async (state) => {
      if (args.values.json) return printAnswer(sessionAnswer(state), args, io);
      await io.stdout.write(statusText(state, toSessionSummary(state).effective_status, createPainter(io.colours)));
      return 0;
    }),
};

/** `turnpike session list`: lists sessions. */
const sessionList: CliCommand = defineCommand({
  name: 'session list',
  access: 'read',
  summary: 'List the sessions with their specs and status',
  operands: NO_OPERANDS,
  options: [
    { name: 'active', help: 'only sessions that are neither completed nor ended' },
    { name: 'spec', value: 'ID', help: 'only sessions of this spec' },
  ],
  notes: ['The newest session comes last. Needs no lock. With --json: one session per line.'],
  async run(args, io) {
    const { active, spec, json } = args.values;
    const found = await listSessions({ active }, args, io);
    const sessions = found.map(toSessionSummary).filter(({ spec_id }) => spec === undefined || spec_id === spec);
    if (json) for (const session of sessions) await io.stdout.write(jsonLine(session));
    else await io.stdout.write(table(sessionRows(sessions), createPainter(io.colours)));
    if (sessions.length === 0) await io.stderr.writeLine('no sessions: `turnpike session start SPEC` starts one');
    return 0;
  },
});

/** `turnpike session packets`: prints the summary for the end of the loop, an escalation or success (S3-38, S3-40). */
const sessionPackets: CliCommand = {
  name: 'session packets',
  access: 'read',
  summary: 'Print the exit packet of a session, which the agent passes on when its loop stops, as JSON',
  operands: SESSION_OPERAND,
  options: [],
  notes: [
    'The packet always has the same members. For a paused or failed session it is the escalation packet, for a',
    'completed session the success packet, and for a running session the packet as it would be now. Needs no lock.',
  ],
  run: async (args, io) =>
    printSession(args, io, async (state) => {
      const packet = exitPacket(state, loopSignal(state, null), null);
      const lines = JSON.stringify(packet, null, 2).split('\n').map(escapeText);
      await io.stdout.write(args.values.json ? jsonLine(packet) : `${lines.join('\n')}\n`);
      return 0;
    }),
};

export const READING_COMMANDS: readonly CliCommand[] = [sessionPrepare, sessionStatus, sessionList, sessionPackets];

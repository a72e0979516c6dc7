import type { NextRequest } from '../sessions.js';
import type { CommandArguments, CliCommand } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { readReport, runSessionCommand, parseNumber, callerOptions } from './session-options.js';

/** `turnpike session next`: reports the previous step and prints the next one (S3-06). */
export const sessionNext: CliCommand = {
  name: 'session next',
  access: 'write',
  summary: 'Print the next step of a session, and report the previous one',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'report', value: 'FILE', help: 'last_step_result as JSON (-: stdin), as in `session report`' },
    { name: 'heartbeat', help: 'also record a heartbeat of the agent' },
    { name: 'context', value: 'PCT', help: 'how full the context of the agent is, in percent' },
    ...callerOptions('autonomy_runner'),
  ],
  notes: [
    'SESSION may be omitted if exactly one session is active. While a step is outstanding, its report is required;',
    '`turnpike session replay` prints the step again. The exit code is 0 for every answer that is not a refusal,',
    'including a pause: a loop with --json reads data.loop_signal, and continues while it is null.',
  ],
  async run(args, io) {
    const request = await readNextRequest(args, io);
    return runSessionCommand(
      { command: sessionNext, defaultRole: 'autonomy_runner', args, io },
      (sessions, { session_id }, caller) => sessions.next(session_id, request, caller),
    );
  },
};

async function readNextRequest(args: CommandArguments, io: Io): Promise<NextRequest> {
  const context_usage_pct = parseNumber(sessionNext, args, 'context', 100);
  const file = args.text('report');
  return {
    ...(args.flag('heartbeat') ? { heartbeat: true } : {}),
    ...(context_usage_pct === undefined ? {} : { context_usage_pct }),
    ...(file === undefined ? {} : { last_step_result: await readReport(file, io) }),
  };
}

import type { NextRequest } from '../../../runtime/sessions/sessions.js';
import type { CommandArguments, CliCommand } from '../../command.js';
import type { Io } from '../../io.js';
import { readReport, runSessionCommand, parseNumber, callerOptions } from '../../session-command.js';

/** `turnpike session next`: reports the previous step and prints the next one (S3-06). */
export const sessionNext: CliCommand = {
  name: 'session next',
  summary: 'Tell the next step of a session, after what became of the one before',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'report', value: 'FILE', help: 'last_step_result as JSON (-: stdin), as `session report` takes it' },
    { name: 'heartbeat', help: 'the agent is alive' },
    { name: 'context', value: 'PCT', help: 'how full its context is, in per cent' },
    ...callerOptions('autonomy_runner'),
  ],
  notes: [
    'SESSION may be left out where one session is active. While a step is outstanding its report is required;',
    '`turnpike session replay` tells the step once more. The exit code is 0 for every answer that is no refusal, also',
    'for a pause: with --json the loop looks at data.loop_signal, and goes on while that is null.',
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

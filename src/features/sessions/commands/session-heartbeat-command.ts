import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, parseNumber, callerOptions } from './session-options.js';

/** `turnpike session heartbeat`: records that the agent is still working on a long step. */
export const sessionHeartbeat: CliCommand = {
  name: 'session heartbeat',
  access: 'write',
  summary: 'Record that the agent of a session is alive',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'context', value: 'PCT', help: 'how full the context of the agent is, in percent' },
    { name: 'tokens', value: 'N', help: 'how many tokens the agent has used, for the audit' },
    ...callerOptions('autonomy_runner'),
  ],
  async run(args, io) {
    const context_usage_pct = parseNumber(sessionHeartbeat, args, 'context', 100);
    const tokens = parseNumber(sessionHeartbeat, args, 'tokens', Number.MAX_SAFE_INTEGER);
    const request = {
      ...(context_usage_pct === undefined ? {} : { context_usage_pct }),
      ...(tokens === undefined ? {} : { estimated_tokens_used: Math.floor(tokens) }),
    };
    return runSessionCommand(
      { command: sessionHeartbeat, defaultRole: 'autonomy_runner', args, io },
      (sessions, { session_id }, caller) => sessions.heartbeat(session_id, request, caller),
    );
  },
};

import type { Command } from '../command.js';
import { askSession, numberOf, speakerOptions } from '../session-speaker.js';

/** `turnpike session heartbeat`: the agent is alive, though its step takes long. */
export const sessionHeartbeat: Command = {
  name: 'session heartbeat',
  summary: 'Say that the agent of a session is alive',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'context', value: 'PCT', help: 'how full its context is, in per cent' },
    { name: 'tokens', value: 'N', help: 'how many tokens it has used, for the audit' },
    ...speakerOptions('autonomy_runner'),
  ],
  async run(args, io) {
    const context_usage_pct = numberOf(sessionHeartbeat, args, 'context', 100);
    const tokens = numberOf(sessionHeartbeat, args, 'tokens', Number.MAX_SAFE_INTEGER);
    const request = {
      ...(context_usage_pct === undefined ? {} : { context_usage_pct }),
      ...(tokens === undefined ? {} : { estimated_tokens_used: Math.floor(tokens) }),
    };
    return askSession(
      { command: sessionHeartbeat, voice: 'autonomy_runner', args, io },
      (sessions, { session_id }, by) => sessions.heartbeat(session_id, request, by),
    );
  },
};

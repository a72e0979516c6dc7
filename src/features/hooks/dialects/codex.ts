// Codex: hooks.json as a command. No hook sees `write_stdin`, so a shell that a call opens takes more than the call.

import type { JsonObject } from '../../../core/contract/json.js';
import type { NativeCall, ReportedOutcome } from '../hook-event.js';
import { member, readCall, shellCall } from '../native-calls.js';
import { CLAUDE_CODE_EVENTS, denyAsClaudeCode } from './claude-code.js';
import { Dialect, outcomeOf, fromMembers, mcpNameIn, patchTextCall } from './dialect.js';

const PATCH_EXIT = /^Exit code: (\d{1,5})\n/;

/**
 * The result of a command is its output without an exit code. That of a patch begins with one, which Codex itself
 * writes. That of an MCP tool may have `isError`.
 */
const reportOf = (event: JsonObject, call: NativeCall): ReportedOutcome => {
  const response = member(event, 'tool_response');
  const exit =
    call.tool === 'native.patch' && typeof response === 'string' ? PATCH_EXIT.exec(response)?.[1] : undefined;
  if (exit !== undefined) return outcomeOf(exit === '0' ? 'done' : 'failed', response);
  if (call.tool !== 'native.mcp') return outcomeOf('unknown', response);
  return outcomeOf(member(response, 'isError') === true ? 'failed' : 'done', response);
};

export const CODEX = new Dialect(
  {
    ...CLAUDE_CODE_EVENTS,
    tools: {
      // The directory of a command is the `cwd` of its event.
      Bash: fromMembers(shellCall, 'command'),
      apply_patch: fromMembers(patchTextCall, 'command'),
      view_image: fromMembers(readCall, 'path'),
    },
    mcpNameOf: (_, name) => mcpNameIn(name),
    outcomeOf: reportOf,
  },
  {
    // A plain allow counts as a failed hook.
    allow: () => null,
    deny: denyAsClaudeCode,
    refuseSession: (reason) => ({ continue: false, stopReason: reason }),
    failureExit: 2,
  },
);

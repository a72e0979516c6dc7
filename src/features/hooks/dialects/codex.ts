// Codex: hooks.json as a command. No hook sees `write_stdin`, so a shell that a call opens takes more than the call.

import type { JsonObject } from '../../../core/contract/json.js';
import type { Dialect } from '../dialect.js';
import type { NativeCall, ReportedOutcome } from '../hook-event.js';
import { mcpCall, member, otherCall, readCall, shellCall, type NativeInput } from '../native-calls.js';
import { denyAsClaudeCode } from './claude-code.js';
import { outcomeOf } from './event-fields.js';
import { CLAUDE_CODE_RULES, type EventRules } from './event-reader.js';
import { patchTextCall } from './patch-paths.js';
import { dialectOf } from './reply-writer.js';
import { mcpNameOf, nativeCall, type NativeTools } from './tool-inputs.js';

const TOOLS: NativeTools = new Map([
  // The directory of a command is the `cwd` of its event.
  ['Bash', (input) => shellCall(member(input, 'command'))],
  ['apply_patch', (input) => patchTextCall(member(input, 'command'))],
  ['view_image', (input) => readCall(member(input, 'path'))],
]);

const PATCH_EXIT = /^Exit code: (\d{1,5})\n/;

const inputOf = (event: JsonObject): NativeInput | null => {
  const name = member(event, 'tool_name');
  const input = member(event, 'tool_input');
  if (typeof name !== 'string') return null;
  const parts = name.startsWith('mcp__') ? mcpNameOf(name) : undefined;
  if (parts === undefined) return nativeCall(TOOLS, name, input);
  return parts === null ? otherCall(name, input) : mcpCall(parts.server, parts.tool, input);
};

/**
 * The result of a command is its output without an exit code. That of a patch begins with one, which Codex itself
 * writes. That of an MCP tool may have `isError`.
 */
const reportOf = (event: JsonObject, call: NativeCall): ReportedOutcome => {
  const response = member(event, 'tool_response');
  const isError = member(response, 'isError');
  const exit =
    call.tool === 'native.patch' && typeof response === 'string' ? PATCH_EXIT.exec(response)?.[1] : undefined;
  if (exit !== undefined) return outcomeOf(exit === '0' ? 'done' : 'failed', response);
  if (call.tool !== 'native.mcp') return outcomeOf('unknown', response);
  return outcomeOf(isError === true ? 'failed' : 'done', response);
};

const RULES: EventRules = { ...CLAUDE_CODE_RULES, inputOf, outcomeOf: reportOf };

export const CODEX: Dialect = dialectOf({
  client: 'codex',
  events: RULES,
  // A plain allow counts as a failed hook.
  allow: () => null,
  deny: denyAsClaudeCode,
  pending: denyAsClaudeCode,
  refuseSession: (reason) => ({ continue: false, stopReason: reason }),
  failureExit: 2,
});

// Claude Code, from 2.1.295 (`onFailure`): hooks of settings.json as a command or by HTTP.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { Dialect } from '../dialect.js';
import type { ReportedOutcome } from '../hook-event.js';
import {
  editCall,
  fetchCall,
  mcpCall,
  member,
  otherCall,
  readCall,
  shellCall,
  webSearchCall,
  writeCall,
  type NativeInput,
} from '../native-calls.js';
import { outcomeOf } from './event-fields.js';
import { CLAUDE_CODE_RULES, type EventKind, type EventRules } from './event-reader.js';
import { dialectOf } from './reply-writer.js';
import { globCall, grepCall, mcpNameOf, nativeCall, type NativeTools } from './tool-inputs.js';

/**
 * A member that the hook command adds to an event of `claude -p`, if its configuration says that a pending call may end
 * the process. An event does not say from which kind of session it is, and only `claude -p` supports `defer`.
 */
export const MAY_DEFER = 'turnpike_may_defer';

const TOOLS: NativeTools = new Map([
  ['Bash', (input) => shellCall(member(input, 'command'))],
  ['Read', (input) => readCall(member(input, 'file_path'))],
  ['NotebookRead', (input) => readCall(member(input, 'notebook_path'))],
  ['LS', (input) => readCall(member(input, 'path'))],
  ['Glob', (input) => globCall('Glob', input, member(input, 'path'))],
  ['Grep', (input) => grepCall(input, member(input, 'path'))],
  ['Write', (input) => writeCall(member(input, 'file_path'), member(input, 'content'))],
  ['Edit', (input) => editCall(member(input, 'file_path'), [editIn(input)])],
  ['MultiEdit', (input) => editCall(member(input, 'file_path'), editsIn(member(input, 'edits')))],
  ['NotebookEdit', (input) => editCall(member(input, 'notebook_path'), [['', member(input, 'new_source') ?? '']])],
  ['WebFetch', (input) => fetchCall(member(input, 'url'))],
  ['WebSearch', (input) => webSearchCall(member(input, 'query'))],
]);

type Edit = readonly [Json | undefined, Json | undefined];
const editIn = (value: Json | undefined): Edit => [member(value, 'old_string'), member(value, 'new_string')];
const editsIn = (value: Json | undefined): Edit[] =>
  Array.isArray(value) ? (value as readonly Json[]).map(editIn) : [];

const inputOf = (event: JsonObject): NativeInput | null => {
  const name = member(event, 'tool_name');
  const input = member(event, 'tool_input');
  if (typeof name !== 'string') return null;
  const server = member(event, 'mcp_server');
  if (server !== undefined) return callOfServer(member(server, 'name'), name, input);
  const parts = name.startsWith('mcp__') ? mcpNameOf(name) : undefined;
  if (parts === undefined) return nativeCall(TOOLS, name, input);
  return parts === null ? otherCall(name, input) : mcpCall(parts.server, parts.tool, input);
};

/** The server has its own name in the event, and in the name of the tool one without special characters. */
const callOfServer = (server: Json | undefined, name: string, input: Json | undefined): NativeInput | null => {
  if (typeof server !== 'string') return null;
  const prefix = `mcp__${server.replace(/[^A-Za-z0-9_-]/g, '_')}__`;
  return mcpCall(server, name.startsWith(prefix) ? name.slice(prefix.length) : name, input);
};

const reportOf = (event: JsonObject): ReportedOutcome => {
  if (member(event, 'hook_event_name') === 'PostToolUseFailure') {
    const error = member(event, 'error');
    const status = member(event, 'is_interrupt') === true ? 'unknown' : 'failed';
    return outcomeOf(status, error === undefined ? null : { error });
  }
  const response = member(event, 'tool_response');
  // The tool has returned, and its process or its subagent runs on.
  const runsOn =
    member(response, 'interrupted') === true ||
    member(response, 'backgroundTaskId') !== undefined ||
    member(response, 'isAsync') === true;
  return outcomeOf(runsOn ? 'unknown' : 'done', response);
};

const RULES: EventRules = {
  ...CLAUDE_CODE_RULES,
  kinds: new Map<string, EventKind>([...CLAUDE_CODE_RULES.kinds, ['PostToolUseFailure', 'outcome']]),
  inputOf,
  outcomeOf: reportOf,
};

const decide = (permissionDecision: 'allow' | 'deny' | 'defer', reason: string): JsonObject => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason: reason },
});

/** The body that stops a call. The question for a permission has another form. */
export const denyAsClaudeCode = (reason: string, event: JsonObject | null): JsonObject =>
  event !== null && member(event, 'hook_event_name') === 'PermissionRequest'
    ? { hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'deny', message: reason } } }
    : decide('deny', reason);

export const CLAUDE_CODE: Dialect = dialectOf({
  client: 'claude-code',
  events: RULES,
  // Not silence: an operator can make Claude Code deny what no hook allows (`--permission-mode dontAsk`).
  allow: (runId) => decide('allow', `Allowed by Turnpike as ${runId}`),
  deny: denyAsClaudeCode,
  pending: (reason, event) => decide(member(event, MAY_DEFER) === true ? 'defer' : 'deny', reason),
  refuseSession: (reason) => ({ continue: false, stopReason: reason }),
  failureExit: 2,
});

// Claude Code, from 2.1.295 (`onFailure`): hooks of settings.json as a command or by HTTP.

import type { JsonObject } from '../../../core/contract/json.js';
import type { ReportedOutcome } from '../hook-event.js';
import { editCall, fetchCall, member, readCall, shellCall, webSearchCall, writeCall } from '../native-calls.js';
import {
  Dialect,
  type EventFormat,
  originOf,
  outcomeOf,
  editFromMembers,
  editsFromMembers,
  fromMembers,
  globFromMembers,
  grepFromMembers,
  mcpNameIn,
  type McpName,
} from './dialect.js';

/**
 * A member that the hook command adds to an event of `claude -p`, if its configuration says that a pending call may end
 * the process. An event does not say from which kind of session it is, and only `claude -p` supports `defer`.
 */
export const MAY_DEFER = 'turnpike_may_defer';

/** The events of the clients that name them as Claude Code does. */
export const CLAUDE_CODE_EVENTS: Omit<EventFormat, 'tools' | 'outcomeOf'> = {
  nameMember: 'hook_event_name',
  kinds: {
    PreToolUse: 'call',
    PostToolUse: 'outcome',
    SessionStart: 'session_start',
    SessionEnd: 'session_end',
    SubagentStop: 'agent_end',
  },
  callMembers: ['tool_name', 'tool_input', 'tool_use_id'],
  members: { tool: 'tool_name', input: 'tool_input', id: 'tool_use_id' },
  hasCallIds: true,
  originOf: (event) => originOf(member(event, 'session_id'), member(event, 'agent_id'), member(event, 'cwd')),
};

/** The server has its own name in the event, and in the name of the tool one without special characters. */
const mcpNameOf = (event: JsonObject, name: string): McpName | null | undefined => {
  const given = member(event, 'mcp_server');
  if (given === undefined) return mcpNameIn(name);
  const server = member(given, 'name');
  if (typeof server !== 'string') return null;
  const prefix = `mcp__${server.replace(/[^A-Za-z0-9_-]/g, '_')}__`;
  return { server, tool: name.startsWith(prefix) ? name.slice(prefix.length) : name };
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

const EVENTS: EventFormat = {
  ...CLAUDE_CODE_EVENTS,
  kinds: { ...CLAUDE_CODE_EVENTS.kinds, PostToolUseFailure: 'outcome' },
  tools: {
    Bash: fromMembers(shellCall, 'command'),
    Read: fromMembers(readCall, 'file_path'),
    NotebookRead: fromMembers(readCall, 'notebook_path'),
    LS: fromMembers(readCall, 'path'),
    Glob: globFromMembers('path'),
    Grep: grepFromMembers('path'),
    Write: fromMembers(writeCall, 'file_path', 'content'),
    Edit: editFromMembers('file_path', 'old_string', 'new_string'),
    MultiEdit: editsFromMembers('file_path', 'old_string', 'new_string'),
    NotebookEdit: (input) => editCall(member(input, 'notebook_path'), [['', member(input, 'new_source') ?? '']]),
    WebFetch: fromMembers(fetchCall, 'url'),
    WebSearch: fromMembers(webSearchCall, 'query'),
  },
  mcpNameOf,
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

export const CLAUDE_CODE = new Dialect(EVENTS, {
  // Not silence: an operator can make Claude Code deny what no hook allows (`--permission-mode dontAsk`).
  allow: (runId) => decide('allow', `Allowed by Turnpike as ${runId}`),
  deny: denyAsClaudeCode,
  pending: (reason, event) => decide(member(event, MAY_DEFER) === true ? 'defer' : 'deny', reason),
  refuseSession: (reason) => ({ continue: false, stopReason: reason }),
  failureExit: 2,
});

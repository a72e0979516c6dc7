// Cursor, as its documentation describes it: no call of a real one has been seen. hooks.json needs `failClosed: true`.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { ReportedOutcome } from '../hook-event.js';
import { editCall, member, otherCall, readCall, shellCall, writeCall, type NativeInput } from '../native-calls.js';
import {
  Dialect,
  type EventFormat,
  onlyFolder,
  originOf,
  outcomeOf,
  fromMembers,
  grepFromMembers,
  oneOf,
} from './dialect.js';

const FILE = ['file_path', 'path', 'target_file'] as const;

/** Some versions call an edit a write, with the texts that it replaces. */
const cursorWrite = (input: Json | undefined, name: string): NativeInput | null => {
  const file = oneOf(input, ...FILE);
  const content = oneOf(input, 'content', 'contents');
  const [before, after] = [member(input, 'old_string'), member(input, 'new_string')];
  if (content !== undefined) return before === undefined ? writeCall(file, content) : null;
  return before === undefined ? otherCall(name, input) : editCall(file, [[before, after]]);
};

/** The call of an event that names no tool of `tools`. */
const inputOf = (event: JsonObject): NativeInput | null | undefined => {
  switch (member(event, 'hook_event_name')) {
    case 'beforeShellExecution':
    case 'afterShellExecution':
      return shellCall(member(event, 'command'));
    case 'beforeReadFile':
      return readCall(member(event, 'file_path'));
    case 'beforeMCPExecution':
    case 'afterMCPExecution': {
      const name = member(event, 'tool_name');
      return typeof name === 'string' ? otherCall(`MCP:${name}`, member(event, 'tool_input')) : null;
    }
    default:
      return undefined;
  }
};

const reportOf = (event: JsonObject): ReportedOutcome => {
  switch (member(event, 'hook_event_name')) {
    case 'postToolUse':
      return outcomeOf(member(event, 'tool_name') === 'Shell' ? 'unknown' : 'done', member(event, 'tool_output'));
    case 'postToolUseFailure': {
      const stopped = member(event, 'is_interrupt') === true || member(event, 'failure_type') === 'timeout';
      return outcomeOf(stopped ? 'unknown' : 'failed', member(event, 'error_message'));
    }
    default:
      return outcomeOf('unknown', oneOf(event, 'output', 'result_json'));
  }
};

/** One folder of the workspace is the working directory; of several, none is. */
const originIn = (event: JsonObject): ReturnType<typeof originOf> => {
  const root = onlyFolder(member(event, 'workspace_roots'));
  const cwd = member(event, 'cwd') ?? null;
  const session = member(event, 'conversation_id') ?? member(event, 'session_id');
  return originOf(session, null, cwd === '' ? root : (cwd ?? root));
};

const EVENTS: EventFormat = {
  nameMember: 'hook_event_name',
  kinds: {
    preToolUse: 'call',
    beforeShellExecution: 'call',
    beforeMCPExecution: 'call',
    beforeReadFile: 'call',
    postToolUse: 'outcome',
    postToolUseFailure: 'outcome',
    afterShellExecution: 'outcome',
    afterMCPExecution: 'outcome',
    sessionStart: 'session_start',
    sessionEnd: 'session_end',
  },
  callMembers: ['tool_name', 'tool_input', 'tool_use_id', 'command', 'file_path'],
  members: { tool: 'tool_name', input: 'tool_input', id: 'tool_use_id' },
  hasCallIds: false,
  // What preToolUse names. A call of an MCP tool is `MCP:TOOL`, without its server.
  tools: {
    Shell: fromMembers(shellCall, 'command', 'working_directory'),
    Read: fromMembers(readCall, FILE),
    Write: cursorWrite,
    Grep: grepFromMembers('path'),
  },
  inputOf,
  originOf: originIn,
  outcomeOf: reportOf,
};

export const CURSOR = new Dialect(EVENTS, {
  allow: () => ({ permission: 'allow' }),
  deny: (reason) => ({ permission: 'deny', user_message: reason, agent_message: reason }),
  refuseSession: (reason) => ({ continue: false, user_message: reason }),
  failureExit: 2,
});

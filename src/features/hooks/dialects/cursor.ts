// Cursor, as its documentation describes it: no call of a real one has been seen. hooks.json needs `failClosed: true`.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { Dialect } from '../dialect.js';
import type { ReportedOutcome } from '../hook-event.js';
import { editCall, member, otherCall, readCall, shellCall, writeCall, type NativeInput } from '../native-calls.js';
import { originOf, outcomeOf } from './event-fields.js';
import type { EventKind, EventRules } from './event-reader.js';
import { dialectOf } from './reply-writer.js';
import { grepCall, nativeCall, oneOf, type NativeTools } from './tool-inputs.js';

const fileIn = (input: Json | undefined): Json | undefined => oneOf(input, 'file_path', 'path', 'target_file');

/** The tools that preToolUse names. A call of an MCP tool is `MCP:TOOL`, without its server. */
const TOOLS: NativeTools = new Map([
  ['Shell', (input) => shellCall(member(input, 'command'), member(input, 'working_directory'))],
  ['Read', (input) => readCall(fileIn(input))],
  ['Write', (input) => cursorWrite(input)],
  ['Grep', (input) => grepCall(input, member(input, 'path'))],
]);

/** Some versions call an edit a write, with the texts that it replaces. */
const cursorWrite = (input: Json | undefined): NativeInput | null => {
  const content = oneOf(input, 'content', 'contents');
  const [before, after] = [member(input, 'old_string'), member(input, 'new_string')];
  if (content !== undefined) return before === undefined ? writeCall(fileIn(input), content) : null;
  return before === undefined ? otherCall('Write', input) : editCall(fileIn(input), [[before, after]]);
};

const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['preToolUse', 'call'],
  ['beforeShellExecution', 'call'],
  ['beforeMCPExecution', 'call'],
  ['beforeReadFile', 'call'],
  ['postToolUse', 'outcome'],
  ['postToolUseFailure', 'outcome'],
  ['afterShellExecution', 'outcome'],
  ['afterMCPExecution', 'outcome'],
  ['sessionStart', 'session_start'],
  ['sessionEnd', 'session_end'],
]);

const inputOf = (event: JsonObject): NativeInput | null => {
  switch (member(event, 'hook_event_name')) {
    case 'beforeShellExecution':
    case 'afterShellExecution':
      return shellCall(member(event, 'command'));
    case 'beforeReadFile':
      return readCall(member(event, 'file_path'));
    case 'beforeMCPExecution':
    case 'afterMCPExecution':
      return callOfServer(member(event, 'tool_name'), member(event, 'tool_input'));
    default:
      return callOfTool(member(event, 'tool_name'), member(event, 'tool_input'));
  }
};

const callOfServer = (name: Json | undefined, input: Json | undefined): NativeInput | null =>
  typeof name === 'string' ? otherCall(`MCP:${name}`, input) : null;
const callOfTool = (name: Json | undefined, input: Json | undefined): NativeInput | null =>
  typeof name === 'string' ? nativeCall(TOOLS, name, input) : null;

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
  const roots = member(event, 'workspace_roots');
  const root = Array.isArray(roots) && roots.length === 1 ? (roots[0] as Json) : null;
  const cwd = member(event, 'cwd') ?? null;
  return originOf(
    member(event, 'conversation_id') ?? member(event, 'session_id'),
    null,
    cwd === '' ? root : (cwd ?? root),
  );
};

const RULES: EventRules = {
  nameMember: 'hook_event_name',
  kinds: KINDS,
  callMembers: ['tool_name', 'tool_input', 'tool_use_id', 'command', 'file_path'],
  hasCallIds: false,
  originOf: originIn,
  inputOf,
  callIdOf: (event) => member(event, 'tool_use_id'),
  outcomeOf: reportOf,
};

const deny = (reason: string): JsonObject => ({ permission: 'deny', user_message: reason, agent_message: reason });

export const CURSOR: Dialect = dialectOf({
  client: 'cursor',
  events: RULES,
  allow: () => ({ permission: 'allow' }),
  deny,
  pending: deny,
  refuseSession: (reason) => ({ continue: false, user_message: reason }),
  failureExit: 2,
});

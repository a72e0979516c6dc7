// Gemini CLI: settings.json, commands only. Its events have no id of the call, no subagent and no permission mode.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { Dialect } from '../dialect.js';
import type { NativeCall, ReportedOutcome } from '../hook-event.js';
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
import { originOf, outcomeOf } from './event-fields.js';
import type { EventKind, EventRules } from './event-reader.js';
import { dialectOf } from './reply-writer.js';
import { globCall, grepCall, nativeCall, oneOf, type NativeTools } from './tool-inputs.js';

// Some versions call the same member by another name.
const folderIn = (input: Json | undefined): Json | undefined => oneOf(input, 'dir_path', 'path', 'directory');
const fileIn = (input: Json | undefined): Json | undefined => oneOf(input, 'file_path', 'absolute_path', 'path');

const TOOLS: NativeTools = new Map([
  ['run_shell_command', (input) => shellCall(member(input, 'command'), folderIn(input))],
  ['read_file', (input) => readCall(fileIn(input))],
  ['list_directory', (input) => readCall(folderIn(input))],
  ['glob', (input) => globCall('glob', input, folderIn(input))],
  ['grep_search', (input) => grepCall(input, folderIn(input))],
  ['search_file_content', (input) => grepCall(input, folderIn(input))],
  ['write_file', (input) => writeCall(fileIn(input), member(input, 'content'))],
  ['replace', (input) => editCall(fileIn(input), [[member(input, 'old_string'), member(input, 'new_string')]])],
  ['web_fetch', (input) => webFetchCall(input)],
  ['google_web_search', (input) => webSearchCall(member(input, 'query'))],
]);

/** A prompt may name any number of addresses, in words too, and the model service reads them: no `url` has them all. */
const webFetchCall = (input: Json | undefined): NativeInput | null =>
  member(input, 'prompt') === undefined && member(input, 'url') !== undefined
    ? fetchCall(member(input, 'url'))
    : otherCall('web_fetch', input);

const KINDS: ReadonlyMap<string, EventKind> = new Map<string, EventKind>([
  ['BeforeTool', 'call'],
  ['AfterTool', 'outcome'],
  ['SessionStart', 'session_start'],
  ['SessionEnd', 'session_end'],
]);

const inputOf = (event: JsonObject): NativeInput | null => {
  const name = member(event, 'tool_name');
  const input = member(event, 'tool_input');
  const context = member(event, 'mcp_context');
  if (typeof name !== 'string') return null;
  if (context === undefined) return nativeCall(TOOLS, name, input);
  const [server, tool] = [member(context, 'server_name'), member(context, 'tool_name')];
  return typeof server === 'string' && typeof tool === 'string' ? mcpCall(server, tool, input) : null;
};

/** A command that fails is no error of the tool: its exit code stands in a text that the command itself writes too. */
const reportOf = (event: JsonObject, call: NativeCall): ReportedOutcome => {
  const response = member(event, 'tool_response');
  if ((member(response, 'error') ?? null) !== null) return outcomeOf('failed', response);
  return outcomeOf(call.tool === 'native.shell' || response === undefined ? 'unknown' : 'done', response);
};

const RULES: EventRules = {
  nameMember: 'hook_event_name',
  kinds: KINDS,
  callMembers: ['tool_name', 'tool_input', 'tool_response', 'mcp_context'],
  hasCallIds: false,
  originOf: (event) => originOf(member(event, 'session_id'), null, member(event, 'cwd')),
  inputOf,
  callIdOf: () => null,
  outcomeOf: reportOf,
};

const deny = (reason: string): JsonObject => ({ decision: 'deny', reason });

export const GEMINI_CLI: Dialect = dialectOf({
  client: 'gemini-cli',
  events: RULES,
  allow: () => ({ decision: 'allow' }),
  deny,
  // `ask` would wait without end in a session without a person.
  pending: deny,
  refuseSession: (reason) => ({ systemMessage: reason }),
  failureExit: 2,
});

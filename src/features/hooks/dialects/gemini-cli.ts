// Gemini CLI: settings.json, commands only. Its events have no id of the call, no subagent and no permission mode.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { NativeCall, ReportedOutcome } from '../hook-event.js';
import {
  fetchCall,
  member,
  otherCall,
  readCall,
  shellCall,
  webSearchCall,
  writeCall,
  type NativeInput,
} from '../native-calls.js';
import {
  Dialect,
  type EventFormat,
  originOf,
  outcomeOf,
  editFromMembers,
  fromMembers,
  globFromMembers,
  grepFromMembers,
  mcpNameOfObject,
} from './dialect.js';

// Some versions call the same member by another name.
const FOLDER = ['dir_path', 'path', 'directory'] as const;
const FILE = ['file_path', 'absolute_path', 'path'] as const;

/** A prompt may name any number of addresses, in words too, and the model service reads them: no `url` has them all. */
const webFetchCall = (input: Json | undefined, name: string): NativeInput | null =>
  member(input, 'prompt') === undefined && member(input, 'url') !== undefined
    ? fetchCall(member(input, 'url'))
    : otherCall(name, input);

/** A command that fails is no error of the tool: its exit code stands in a text that the command itself writes too. */
const reportOf = (event: JsonObject, call: NativeCall): ReportedOutcome => {
  const response = member(event, 'tool_response');
  if ((member(response, 'error') ?? null) !== null) return outcomeOf('failed', response);
  return outcomeOf(call.tool === 'native.shell' || response === undefined ? 'unknown' : 'done', response);
};

const EVENTS: EventFormat = {
  nameMember: 'hook_event_name',
  kinds: { BeforeTool: 'call', AfterTool: 'outcome', SessionStart: 'session_start', SessionEnd: 'session_end' },
  callMembers: ['tool_name', 'tool_input', 'tool_response', 'mcp_context'],
  members: { tool: 'tool_name', input: 'tool_input', id: null },
  hasCallIds: false,
  tools: {
    run_shell_command: fromMembers(shellCall, 'command', FOLDER),
    read_file: fromMembers(readCall, FILE),
    list_directory: fromMembers(readCall, FOLDER),
    glob: globFromMembers(FOLDER),
    grep_search: grepFromMembers(FOLDER),
    search_file_content: grepFromMembers(FOLDER),
    write_file: fromMembers(writeCall, FILE, 'content'),
    replace: editFromMembers(FILE, 'old_string', 'new_string'),
    web_fetch: webFetchCall,
    google_web_search: fromMembers(webSearchCall, 'query'),
  },
  mcpNameOf: (event) => mcpNameOfObject(member(event, 'mcp_context'), 'server_name', 'tool_name'),
  originOf: (event) => originOf(member(event, 'session_id'), null, member(event, 'cwd')),
  outcomeOf: reportOf,
};

export const GEMINI_CLI = new Dialect(EVENTS, {
  allow: () => ({ decision: 'allow' }),
  // For a pending call too: `ask` would wait without end in a session without a person.
  deny: (reason) => ({ decision: 'deny', reason }),
  refuseSession: (reason) => ({ systemMessage: reason }),
  failureExit: 2,
});

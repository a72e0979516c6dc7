// Cline: executables `PreToolUse` and `PostToolUse` in its folder of hooks. A hook that fails, or that exits with any
// code, stops nothing: only the body does. Cline then ends the whole run and does not tell the model why.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import { quoteWord } from '../clients/hook-command-line.js';
import type { ReportedOutcome } from '../hook-event.js';
import {
  editCall,
  fetchCall,
  member,
  otherCall,
  readCall,
  searchCall,
  shellCall,
  writeCall,
  type NativeInput,
} from '../native-calls.js';
import {
  Dialect,
  type EventFormat,
  onlyFolder,
  originOf,
  outcomeOf,
  mcpNameIn,
  oneOf,
  patchTextCall,
} from './dialect.js';

/**
 * One text for all commands of a call, a line for each. Among several, a command of several lines would look like
 * several commands, so it makes the call unreadable.
 */
const commandsCall = (input: Json | undefined): NativeInput | null => {
  if (typeof input === 'string') return shellCall(input);
  const given = Array.isArray(input) ? input : oneOf(input, 'commands', 'command', 'cmd');
  const args = member(input, 'args') ?? null;
  if (args !== null) return shellCall(given === member(input, 'command') ? programLine(given, args) : null);
  if (typeof given === 'string') return shellCall(given);
  const lines = (Array.isArray(given) ? (given as readonly Json[]) : [given]).map(lineOf);
  const isClear = lines.length === 1 || lines.every((line) => line !== null && !/[\n\r]/.test(line));
  return isClear && !lines.includes(null) ? shellCall(lines.join('\n')) : null;
};

/** A text for the shell, or a program with its arguments. */
const lineOf = (command: Json | undefined): string | null => {
  const line = typeof command === 'string' ? command : programLine(member(command, 'command'), member(command, 'args'));
  return line === null || line.trim() === '' ? null : line;
};

/** A program that is executed without a shell, as a line of a shell; null if the arguments are no texts. */
const programLine = (program: Json | undefined, args: Json | undefined): string | null => {
  const words = [program, ...(Array.isArray(args) ? (args as readonly Json[]) : [])];
  const isProgram = (args ?? null) === null || Array.isArray(args);
  return isProgram && words.every(isText) ? words.map(quoteWord).join(' ') : null;
};

const isText = (value: Json | undefined): value is string => typeof value === 'string';

/** One file is a read; several are one call, which no path describes. */
const readFilesCall = (input: Json | undefined, name: string): NativeInput | null => {
  const given =
    typeof input === 'string' || Array.isArray(input) ? input : oneOf(input, 'files', 'file_paths', 'paths', 'path');
  const [file, ...rest] = Array.isArray(given) ? (given as readonly Json[]) : [given];
  if (rest.length > 0) return otherCall(name, input);
  return readCall(member(file, 'path') ?? file);
};

const searchesCall = (input: Json | undefined): NativeInput | null => {
  const queries = typeof input === 'string' || Array.isArray(input) ? input : member(input, 'queries');
  const texts = Array.isArray(queries) ? (queries as readonly Json[]) : [queries];
  return texts.length > 0 && texts.every(isText) ? searchCall(texts.join('\n')) : null;
};

/** `editor` creates the file if it does not exist, so a call without a text to replace writes. */
const editorCall = (input: Json | undefined): NativeInput | null => {
  const [path, before, after] = [member(input, 'path'), member(input, 'old_text') ?? null, member(input, 'new_text')];
  const inserts = (member(input, 'insert_line') ?? null) !== null;
  return before === null && !inserts ? writeCall(path, after) : editCall(path, [[before ?? '', after]]);
};

const fetchesCall = (input: Json | undefined, name: string): NativeInput | null => {
  const requests = member(input, 'requests');
  return Array.isArray(requests) && requests.length === 1
    ? fetchCall(member(requests[0] as Json, 'url'))
    : otherCall(name, input);
};

/** `tool_call` of an event before the call, `tool_result` of one after it. */
const callIn = (event: JsonObject): Json | undefined =>
  member(event, member(event, 'hookName') === 'tool_result' ? 'tool_result' : 'tool_call');

const reportOf = (event: JsonObject): ReportedOutcome => {
  const [error, output] = [member(callIn(event), 'error') ?? null, member(callIn(event), 'output')];
  return error === null ? outcomeOf('done', output) : outcomeOf('failed', { error });
};

/** The root of the conversation is the session. Only a subagent has a parent. */
const originIn = (event: JsonObject): ReturnType<typeof originOf> => {
  const root = member(member(event, 'sessionContext'), 'rootSessionId') ?? member(event, 'taskId');
  const isSubagent = (member(event, 'parent_agent_id') ?? null) !== null;
  const agent = isSubagent ? (member(event, 'agent_id') ?? '') : null;
  return originOf(root, agent, onlyFolder(member(event, 'workspaceRoots')));
};

const EVENTS: EventFormat = {
  nameMember: 'hookName',
  kinds: { tool_call: 'call', tool_result: 'outcome', session_shutdown: 'session_end' },
  callMembers: ['tool_call', 'tool_result', 'preToolUse', 'postToolUse'],
  members: { tool: 'name', input: 'input', id: 'id' },
  callIn,
  hasCallIds: true,
  tools: {
    run_commands: commandsCall,
    read_files: readFilesCall,
    search_codebase: searchesCall,
    editor: editorCall,
    apply_patch: (input) => patchTextCall(typeof input === 'string' ? input : member(input, 'input')),
    fetch_web_content: fetchesCall,
  },
  mcpNameOf: (_, name) => mcpNameIn(name),
  originOf: originIn,
  outcomeOf: reportOf,
};

const deny = (reason: string): JsonObject => ({ cancel: true, errorMessage: reason });

export const CLINE = new Dialect(EVENTS, {
  allow: () => ({ cancel: false }),
  deny,
  refuseSession: deny,
  failureExit: 0,
});

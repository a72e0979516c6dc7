// opencode, through the plugin that this package ships. The plugin names its events as Claude Code does; the session is
// the one of the main agent, and a subagent, which has a session of its own in opencode, is named by that session.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { Dialect } from '../dialect.js';
import type { ReportedOutcome } from '../hook-event.js';
import {
  editCall,
  fetchCall,
  mcpCall,
  member,
  readCall,
  shellCall,
  webSearchCall,
  writeCall,
  type NativeInput,
} from '../native-calls.js';
import { outcomeOf } from './event-fields.js';
import { CLAUDE_CODE_RULES, type EventRules } from './event-reader.js';
import { patchTextCall } from './patch-paths.js';
import { dialectOf } from './reply-writer.js';
import { globCall, grepCall, nativeCall, type NativeTools } from './tool-inputs.js';

type Edit = readonly [Json | undefined, Json | undefined];
const editIn = (value: Json | undefined): Edit => [member(value, 'oldString'), member(value, 'newString')];
const editsIn = (value: Json | undefined): Edit[] =>
  Array.isArray(value) ? (value as readonly Json[]).map(editIn) : [];

/** opencode cuts a path at a colon, and others do not: such a path is uncertain. */
const patchIn = (patch: Json | undefined): NativeInput | null => {
  const call = patchTextCall(patch);
  const paths = member(call?.input, 'paths');
  return Array.isArray(paths) && paths.some((path) => String(path).includes(':')) ? null : call;
};

const TOOLS: NativeTools = new Map([
  ['bash', (input) => shellCall(member(input, 'command'), member(input, 'workdir'))],
  ['read', (input) => readCall(member(input, 'filePath'))],
  ['list', (input) => readCall(member(input, 'path') ?? '.')],
  ['glob', (input) => globCall('glob', input, member(input, 'path'))],
  ['grep', (input) => grepCall(input, member(input, 'path'))],
  ['write', (input) => writeCall(member(input, 'filePath'), member(input, 'content'))],
  ['edit', (input) => editCall(member(input, 'filePath'), [editIn(input)])],
  ['multiedit', (input) => editCall(member(input, 'filePath'), editsIn(member(input, 'edits')))],
  ['patch', (input) => patchIn(member(input, 'patchText'))],
  ['apply_patch', (input) => patchIn(member(input, 'patchText'))],
  ['webfetch', (input) => fetchCall(member(input, 'url'))],
  ['websearch', (input) => webSearchCall(member(input, 'query'))],
]);

/** `SERVER_TOOL` can be split in more than one way, so the plugin looks up the servers and names the one that fits. */
const inputOf = (event: JsonObject): NativeInput | null => {
  const name = member(event, 'tool_name');
  const input = member(event, 'tool_input');
  const server = member(event, 'mcp_server');
  if (typeof name !== 'string') return null;
  if (server === undefined) return nativeCall(TOOLS, name, input);
  const [serverName, tool] = [member(server, 'name'), member(server, 'tool')];
  return typeof serverName === 'string' && typeof tool === 'string' ? mcpCall(serverName, tool, input) : null;
};

/** opencode reports a call only if the tool has returned. The exit code of a command is in its metadata. */
const reportOf = (event: JsonObject): ReportedOutcome => {
  const response = member(event, 'tool_response');
  if (response === undefined) return outcomeOf('unknown', null);
  if (member(event, 'tool_name') !== 'bash') return outcomeOf('done', response);
  const exit = member(member(response, 'metadata'), 'exit');
  return outcomeOf(typeof exit !== 'number' ? 'unknown' : exit === 0 ? 'done' : 'failed', response);
};

const RULES: EventRules = { ...CLAUDE_CODE_RULES, inputOf, outcomeOf: reportOf };

const deny = (reason: string): JsonObject => ({ decision: 'deny', reason });

/** The plugin throws unless the body says `allow`. */
export const OPENCODE: Dialect = dialectOf({
  client: 'opencode',
  events: RULES,
  allow: (runId) => ({ decision: 'allow', run_id: runId }),
  deny,
  pending: deny,
  refuseSession: deny,
  failureExit: 2,
});

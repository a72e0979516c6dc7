// opencode, through the plugin that this package ships. The plugin names its events as Claude Code does; the session is
// the one of the main agent, and a subagent, which has a session of its own in opencode, is named by that session.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { ReportedOutcome } from '../hook-event.js';
import { fetchCall, member, readCall, shellCall, webSearchCall, writeCall, type NativeInput } from '../native-calls.js';
import { CLAUDE_CODE_EVENTS } from './claude-code.js';
import {
  Dialect,
  type EventFormat,
  outcomeOf,
  editFromMembers,
  editsFromMembers,
  fromMembers,
  globFromMembers,
  grepFromMembers,
  mcpNameOfObject,
  patchTextCall,
} from './dialect.js';

/** opencode cuts a path at a colon, and others do not: such a path is uncertain. */
const patchIn = (patch: Json | undefined): NativeInput | null => {
  const call = patchTextCall(patch);
  const paths = member(call?.input, 'paths');
  return Array.isArray(paths) && paths.some((path) => String(path).includes(':')) ? null : call;
};

/** opencode reports a call only if the tool has returned. The exit code of a command is in its metadata. */
const reportOf = (event: JsonObject): ReportedOutcome => {
  const response = member(event, 'tool_response');
  if (response === undefined) return outcomeOf('unknown', null);
  if (member(event, 'tool_name') !== 'bash') return outcomeOf('done', response);
  const exit = member(member(response, 'metadata'), 'exit');
  return outcomeOf(typeof exit !== 'number' ? 'unknown' : exit === 0 ? 'done' : 'failed', response);
};

const EVENTS: EventFormat = {
  ...CLAUDE_CODE_EVENTS,
  tools: {
    bash: fromMembers(shellCall, 'command', 'workdir'),
    read: fromMembers(readCall, 'filePath'),
    list: (input) => readCall(member(input, 'path') ?? '.'),
    glob: globFromMembers('path'),
    grep: grepFromMembers('path'),
    write: fromMembers(writeCall, 'filePath', 'content'),
    edit: editFromMembers('filePath', 'oldString', 'newString'),
    multiedit: editsFromMembers('filePath', 'oldString', 'newString'),
    patch: fromMembers(patchIn, 'patchText'),
    apply_patch: fromMembers(patchIn, 'patchText'),
    webfetch: fromMembers(fetchCall, 'url'),
    websearch: fromMembers(webSearchCall, 'query'),
  },
  // `SERVER_TOOL` can be split in more than one way, so the plugin looks up the servers and names the one that fits.
  mcpNameOf: (event) => mcpNameOfObject(member(event, 'mcp_server'), 'name', 'tool'),
  outcomeOf: reportOf,
};

const deny = (reason: string): JsonObject => ({ decision: 'deny', reason });

/** The plugin throws unless the body says `allow`. */
export const OPENCODE = new Dialect(EVENTS, {
  allow: (runId) => ({ decision: 'allow', run_id: runId }),
  deny,
  refuseSession: deny,
  failureExit: 2,
});

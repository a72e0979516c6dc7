// Reads the events of every client, and writes the replies, by the format of the client. A format is data where clients
// agree, and a function where one of them has a form of its own.

import { type Json, type JsonObject, isJsonObject } from '../../../core/contract/json.js';
import type { HookAnswer, HookEvent, HookOrigin, NativeCall, ReportedOutcome } from '../hook-event.js';
import {
  mcpCall,
  member,
  type NativeInput,
  canonicalTextOf,
  contentOf,
  PATH_CHARS_MAX,
  editCall,
  otherCall,
  patchCall,
  searchCall,
} from '../native-calls.js';
import { sha256 } from '../../../core/contract/hash.js';

/** What a hook command writes and returns, or what an HTTP endpoint answers. */
export interface HookReply {
  /** The JSON for the client; null if it gets none. */
  readonly body: JsonObject | null;
  /** The exit code of a command. */
  readonly exit: 0 | 2;
  /** What a command writes to standard error; empty for nothing. */
  readonly stderr: string;
}

/** What an event is. `call` is the only kind that the client asks before it acts. */
type EventKind = HookEvent['kind'];

/** The form in which a client writes its events. */
export interface EventFormat {
  /** The member that names the event. */
  readonly nameMember: string;
  /** Every event that needs a decision or a record, by its name. */
  readonly kinds: Readonly<Record<string, EventKind>>;
  /** Members that only an event of a call has. */
  readonly callMembers: readonly string[];
  /** The member with the name of the tool, its input, and the client's id of the call; null if there is no id. */
  readonly members: { readonly tool: string; readonly input: string; readonly id: string | null };
  /** The object that has these members; absent: the event itself. */
  callIn?(event: JsonObject): Json | undefined;
  /** Whether every call has an id. */
  readonly hasCallIds: boolean;
  /** The tools of its own. A call of any other one is recorded by its name. */
  readonly tools: NativeTools;
  /** The tool of an MCP server that a call names; undefined for another tool, null if the names are malformed. */
  mcpNameOf?(event: JsonObject, name: string): McpName | null | undefined;
  /** The call of an event that has a form of its own; undefined for the others. */
  inputOf?(event: JsonObject): NativeInput | null | undefined;
  originOf(event: JsonObject): HookOrigin | null;
  outcomeOf(event: JsonObject, call: NativeCall): ReportedOutcome;
}

/** The form in which a client reads the answers. */
interface ReplyFormat {
  /** The body that lets a call go on; null if silence does it. */
  readonly allow: (runId: string) => JsonObject | null;
  /** The body that stops a call. `event` is null if it was not readable at all. */
  readonly deny: (reason: string, event: JsonObject | null) => JsonObject;
  /** The body for a call that needs an approval, which must stop the call too; absent: that of a denial. */
  readonly pending?: (reason: string, event: JsonObject) => JsonObject;
  /** The body that ends a session at its start, or tells the user why its calls will be denied. */
  readonly refuseSession: (reason: string) => JsonObject;
  /** The exit code that stops a call if the body does not arrive. */
  readonly failureExit: 0 | 2;
}

/**
 * How one client writes its events and reads the answers. Pure: it reads no clock, file or environment. A call without
 * a decision is stopped, whatever the reason.
 */
export class Dialect {
  readonly #events: EventFormat;
  readonly #replies: ReplyFormat;

  constructor(events: EventFormat, replies: ReplyFormat) {
    [this.#events, this.#replies] = [events, replies];
  }

  /**
   * An event of the client, whose JSON was parsed strictly.
   * @returns the event, or null for one that cannot be understood: a call in it must be denied
   */
  readEvent(event: JsonObject): HookEvent | null {
    const format = this.#events;
    const kind = kindOf(event, format);
    const origin = format.originOf(event);
    if (kind === null || origin === null) return null;
    if (kind === 'agent_end') return origin.agent === null ? null : { ...origin, kind };
    if (kind !== 'call' && kind !== 'outcome') return { ...origin, kind };
    const { members, hasCallIds } = format;
    const given = format.callIn === undefined ? event : format.callIn(event);
    const id = members.id === null ? null : member(given, members.id);
    const call = callOf(inputOf(event, given, format), id, hasCallIds);
    if (call === null) return null;
    return kind === 'call'
      ? { ...origin, kind, call }
      : { ...origin, kind, call, outcome: format.outcomeOf(event, call) };
  }

  /** The reply to an event. */
  writeReply(answer: HookAnswer, event: JsonObject): HookReply {
    const kind = kindOf(event, this.#events);
    const { allow, deny, pending = deny, refuseSession } = this.#replies;
    if (kind === null) return this.writeFailure(UNDECIDED, event);
    if (kind !== 'call') {
      const refuses = kind === 'session_start' && (answer.decision === 'deny' || answer.decision === 'pending');
      return bodyReply(refuses ? refuseSession(answer.reason) : null);
    }
    switch (answer.decision) {
      case 'allow':
        return bodyReply(allow(answer.run_id));
      case 'deny':
        return bodyReply(deny(answer.reason, event));
      case 'pending':
        return bodyReply(pending(answer.reason, event));
      case 'none':
        return this.writeFailure(UNDECIDED, event);
    }
  }

  /**
   * The reply that stops a call whose event could not be read or decided. Clients go on after exit 2 if nothing says
   * why, so there is always a text. An event after the call stops nothing.
   */
  writeFailure(reason: string, event: JsonObject | null): HookReply {
    const text = reason.trim() === '' ? UNDECIDED : reason;
    const kind = event === null ? null : kindOf(event, this.#events);
    return kind === null || kind === 'call'
      ? { body: this.#replies.deny(text, event), exit: this.#replies.failureExit, stderr: text }
      : { body: null, exit: 0, stderr: text };
  }
}

/** The kind of an event; null for one that must be denied because it names a call and is not known. */
const kindOf = (event: JsonObject, { nameMember, kinds, callMembers }: EventFormat): EventKind | null => {
  const name = member(event, nameMember);
  const kind = typeof name === 'string' && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  const namesCall = callMembers.some((one) => member(event, one) !== undefined);
  if (kind === 'call' || kind === 'outcome') return kind;
  // A call hides in no other event: not in a new one, and not in a known one with members that it should not have.
  return typeof name !== 'string' || name === '' || namesCall ? null : (kind ?? 'other');
};

const inputOf = (event: JsonObject, given: Json | undefined, format: EventFormat): NativeInput | null => {
  const found = format.inputOf?.(event);
  if (found !== undefined) return found;
  const name = member(given, format.members.tool);
  const input = member(given, format.members.input);
  if (typeof name !== 'string') return null;
  const mcp = format.mcpNameOf?.(event, name);
  if (mcp === undefined) return nativeCall(format.tools, name, input);
  return mcp === null ? null : mcpCall(mcp.server, mcp.tool, input);
};

const UNDECIDED = 'Turnpike: the call was not decided, so it is denied';

const bodyReply = (body: JsonObject | null): HookReply => ({ body, exit: 0, stderr: '' });

// What every dialect reads from an event in the same way: ids, the working directory, the result of a call. A member of
// the wrong type makes the whole event unreadable, so that its call is denied.

export const SESSION_CHARS_MAX = 128;
export const AGENT_CHARS_MAX = 64;
export const CALL_ID_CHARS_MAX = 128;
/** The longest canonical text of a result that is reported as it is. A longer one is reported by its hash. */
export const RESULT_CHARS_MAX = 65_536;

/** A member that may be missing or null. */
type Optional = Json | undefined;

/**
 * The session, the subagent and the working directory. The client makes these ids itself, so an id that is too long or
 * has other characters is no id of the client.
 * @returns null if one of them is malformed, or if there is no session
 */
export const originOf = (session: Optional, agent: Optional, cwd: Optional): HookOrigin | null => {
  if (!isId(session, SESSION_CHARS_MAX)) return null;
  if (!isMissing(agent) && !isId(agent, AGENT_CHARS_MAX)) return null;
  if (!isMissing(cwd) && !isAbsolutePath(cwd)) return null;
  return { session, agent: isMissing(agent) ? null : agent, cwd: isMissing(cwd) ? null : cwd };
};

/** The folder of a workspace that has one: of several, none is the working directory. */
export const onlyFolder = (roots: Optional): Json =>
  Array.isArray(roots) && roots.length === 1 ? (roots[0] as Json) : null;

/**
 * A call with the client's id of it. Some clients take this id from the model service, and some services make ids that
 * are longer than an id may be here. Such an id becomes `sha256:` and its hash, which keeps different ids different; an
 * id that has this form already is hashed too.
 * @returns null if the input is unreadable, or the id is malformed or missing where the client always gives one
 */
export const callOf = (input: NativeInput | null, id: Optional, idIsRequired: boolean): NativeCall | null => {
  if (input === null) return null;
  if (isMissing(id)) return idIsRequired ? null : { ...input, call_id: null };
  if (typeof id !== 'string' || id === '' || !id.isWellFormed()) return null;
  const isShort = isId(id, CALL_ID_CHARS_MAX) && !id.startsWith('sha256:');
  return { ...input, call_id: isShort ? id : `sha256:${sha256(id)}` };
};

/** The reported outcome with what the client tells of the result. */
export const outcomeOf = (status: ReportedOutcome['status'], result: Optional): ReportedOutcome => ({
  status,
  result: resultOf(result),
});

/** A result as an object: an object as it is, a text as `text`, another value as `value`, a long one as `shortened`. */
export const resultOf = (value: Optional): JsonObject | null => {
  if (isMissing(value)) return null;
  const result: JsonObject = isJsonObject(value) ? value : typeof value === 'string' ? { text: value } : { value };
  const text = canonicalTextOf(result);
  if (text === null) return null;
  return text.length <= RESULT_CHARS_MAX ? result : { shortened: contentOf(text) };
};

const isId = (value: Optional, length: number): value is string =>
  typeof value === 'string' && value.length <= length && /^[ -~]+$/.test(value);

const isAbsolutePath = (value: Json): value is string =>
  typeof value === 'string' &&
  value.length <= PATH_CHARS_MAX &&
  value.isWellFormed() &&
  !value.includes('\0') &&
  /^(\/|[A-Za-z]:[\\/]|\\\\)/.test(value);

const isMissing = (value: Optional): value is null | undefined => value === undefined || value === null;

// How clients write the inputs of their tools: which member has the command, the path, the text. Some versions call the
// same member by another name, so a member may have several.

/** How a tool of a client reads its input. */
type ReadInput = (input: Json | undefined, name: string) => NativeInput | null;

/** The native tools of a client, by their names. */
type NativeTools = Readonly<Record<string, ReadInput>>;

/** A call of a tool by its name. A tool that is not listed is called with its input as JSON text. */
const nativeCall = (tools: NativeTools, name: string, input: Json | undefined): NativeInput | null => {
  const read = Object.hasOwn(tools, name) ? tools[name] : undefined;
  return read === undefined ? otherCall(name, input) : read(input, name);
};

/** The name of a member, or its names in several versions. */
type Names = string | readonly string[];

/**
 * The one member of several names that is there.
 * @returns an object if several are there: which of them the client uses is not known, and no call has such a value
 */
export const oneOf = (input: Json | undefined, ...names: readonly string[]): Json | undefined => {
  const values = names.map((name) => member(input, name)).filter((value) => value !== undefined && value !== null);
  return values.length > 1 ? { ambiguous: true } : values[0];
};
const valueIn = (input: Json | undefined, names: Names): Json | undefined => oneOf(input, ...[names].flat());

/** Reads a call from the values of some members of the input, in this order. */
export const fromMembers =
  (call: (...values: readonly (Json | undefined)[]) => NativeInput | null, ...names: readonly Names[]): ReadInput =>
  (input) =>
    call(...names.map((one) => valueIn(input, one)));

/** Reads one replacement in a file. */
export const editFromMembers = (path: Names, before: Names, after: Names): ReadInput =>
  fromMembers((...[file, old, next]) => editCall(file, [[old, next]]), path, before, after);

/** Reads several replacements in a file, which are in the member `edits`. */
export const editsFromMembers =
  (path: Names, before: Names, after: Names): ReadInput =>
  (input) => {
    const edits = member(input, 'edits');
    const pairs = Array.isArray(edits) ? (edits as readonly Json[]) : [];
    return editCall(
      valueIn(input, path),
      pairs.map((one) => [valueIn(one, before), valueIn(one, after)] as const),
    );
  };

/** A pattern that may leave the folder in which it is searched: absolute, with `..`, or with such an alternative. */
const LEAVES_FOLDER = /^[/\\~]|^[A-Za-z]:|\.\.|[{,(|][/\\~]/;

/** A search of names. A pattern that may leave its folder is a call with JSON text: no path says where it ends. */
export const globFromMembers =
  (path: Names): ReadInput =>
  (input, name) => {
    const pattern = member(input, 'pattern');
    return typeof pattern === 'string' && LEAVES_FOLDER.test(pattern)
      ? otherCall(name, input)
      : searchCall(pattern, valueIn(input, path), [pattern, ...globsIn(input)]);
  };

/** A search of texts, in the files that any of its members names. */
export const grepFromMembers =
  (path: Names): ReadInput =>
  (input) =>
    searchCall(member(input, 'pattern'), valueIn(input, path), globsIn(input));

/** Members of a search that name no files, or only those that are left out. */
const NAMES_NO_FILES: readonly string[] = [
  ...['pattern', 'path', 'dir_path', 'directory', 'type', 'output_mode', 'description'],
  ...['exclude', 'exclude_pattern'],
];

/** Each text in any other member: clients differ in how they call the files of a search, and get new members. */
const globsIn = (input: Json | undefined): readonly Json[] =>
  !isJsonObject(input)
    ? []
    : Object.entries(input)
        .filter(
          ([name, value]) => !NAMES_NO_FILES.includes(name) && (typeof value === 'string' || Array.isArray(value)),
        )
        .flatMap(([, value]) => value)
        .filter((glob) => glob !== '');

/** The tool of an MCP server, by the names that the server and the client have for it. */
export interface McpName {
  readonly server: string;
  readonly tool: string;
}

/** The server and the tool in `mcp__SERVER__TOOL`; undefined if the name can be split in more than one way. */
export const mcpNameIn = (name: string): McpName | undefined => {
  const [first, server, tool, ...rest] = name.split('__');
  const isClear = first === 'mcp' && rest.length === 0 && !name.includes('___');
  return isClear && server !== undefined && server !== '' && tool !== undefined && tool !== ''
    ? { server, tool }
    : undefined;
};

/** The server and the tool that an object of an event names; undefined without it, null for other values than names. */
export const mcpNameOfObject = (value: Json | undefined, server: string, tool: string): McpName | null | undefined => {
  if (value === undefined) return undefined;
  const [serverName, toolName] = [member(value, server), member(value, tool)];
  return typeof serverName === 'string' && typeof toolName === 'string' ? { server: serverName, tool: toolName } : null;
};

const HEADER = /^\*\*\* (?:Add File|Delete File|Update File|Move to):/;
/** A path without a margin and without characters that could end a line for some reader. */
const PATH = /^ (?!\s)[^\p{Cc}\u2028\u2029\ufeff]+(?<!\s)$/u;
const MARKERS: readonly string[] = ['*** Begin Patch', '*** End Patch', '*** End of File'];

/** What some reader of the format strips at the beginning or the end of a line. */
const MARGIN = /^[\s\u0085\ufeff]+|[\s\u0085\ufeff]+$/g;

/**
 * A call that applies a patch in the format of apply_patch: `*** Add File: PATH` and so on. Clients read the format
 * with different tolerance, so a line that one of them could read in another way makes the patch unreadable.
 */
export const patchTextCall = (patch: Json | undefined): NativeInput | null => {
  const paths = typeof patch === 'string' ? pathsOfPatch(patch) : null;
  return paths === null ? null : patchCall(paths, patch);
};

/**
 * The files that a patch adds, deletes, updates or moves, each once, in order.
 * @returns null if a line begins with `***` and is neither a header nor a marker, or a path has an uncertain end
 */
export const pathsOfPatch = (patch: string): string[] | null => {
  const paths = new Set<string>();
  for (const line of patch.split('\n')) {
    const text = line.replace(MARGIN, '');
    const header = HEADER.exec(text)?.[0];
    if (header !== undefined) {
      const path = text.slice(header.length);
      if (!PATH.test(path)) return null;
      paths.add(path.slice(1));
    } else if (text.startsWith('***') && !MARKERS.includes(text) && !line.startsWith(' ')) {
      // An unchanged line of a file begins with a space, and may be any text.
      return null;
    }
  }
  return [...paths];
};

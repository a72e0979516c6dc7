// Reads the events of every client, and writes the replies, by the format of the client. A format is data where clients
// agree, and a function where one of them has a form of its own.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { Client, HookAnswer, HookEvent, HookOrigin, NativeCall, ReportedOutcome } from '../hook-event.js';
import { mcpCall, member, type NativeInput } from '../native-calls.js';
import { callOf } from './event-fields.js';
import { nativeCall, type McpName, type NativeTools } from './tool-inputs.js';

/** What a hook command writes and returns, or what an HTTP endpoint answers. */
export interface HookReply {
  /** The JSON for the client; null if it gets none. */
  readonly body: JsonObject | null;
  /** The exit code of a command. */
  readonly exit: 0 | 2;
  /** What a command writes to standard error; empty for nothing. */
  readonly stderr: string;
}

/** How one client writes its events and reads the answers. Pure: it reads no clock, file or environment. */
export interface Dialect {
  readonly client: Client;
  /**
   * An event of the client, whose JSON was parsed strictly.
   * @returns the event, or null for one that cannot be understood: a call in it must be denied
   */
  readEvent(event: JsonObject): HookEvent | null;
  /** The reply to an event. */
  writeReply(answer: HookAnswer, event: JsonObject): HookReply;
  /** The reply that stops a call whose event could not be read or decided. */
  writeFailure(reason: string, event: JsonObject | null): HookReply;
}

/** What an event is. `call` is the only kind that the client asks before it acts. */
export type EventKind = HookEvent['kind'];

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
export interface ReplyFormat {
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

/** The dialect of a client. A call without a decision is stopped, whatever the reason. */
export const dialectOf = (client: Client, events: EventFormat, replies: ReplyFormat): Dialect => ({
  client,
  readEvent: (event) => readEvent(event, events),
  writeReply: (answer, event) => writeReply(answer, event, events, replies),
  writeFailure: (reason, event) => writeFailure(reason, event, events, replies),
});

/** The event; null for one that cannot be understood. */
const readEvent = (event: JsonObject, format: EventFormat): HookEvent | null => {
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
};

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

const writeReply = (answer: HookAnswer, event: JsonObject, events: EventFormat, replies: ReplyFormat): HookReply => {
  const kind = kindOf(event, events);
  if (kind === null) return writeFailure(UNDECIDED, event, events, replies);
  if (kind === 'call') return writeCallReply(answer, event, events, replies);
  const refuses = kind === 'session_start' && (answer.decision === 'deny' || answer.decision === 'pending');
  return bodyReply(refuses ? replies.refuseSession(answer.reason) : null);
};

const writeCallReply = (
  answer: HookAnswer,
  event: JsonObject,
  events: EventFormat,
  replies: ReplyFormat,
): HookReply => {
  switch (answer.decision) {
    case 'allow':
      return bodyReply(replies.allow(answer.run_id));
    case 'deny':
      return bodyReply(replies.deny(answer.reason, event));
    case 'pending':
      return bodyReply((replies.pending ?? replies.deny)(answer.reason, event));
    case 'none':
      return writeFailure(UNDECIDED, event, events, replies);
  }
};

/** Clients go on after exit 2 if nothing says why, so there is always a text. An event after the call stops nothing. */
const writeFailure = (
  reason: string,
  event: JsonObject | null,
  events: EventFormat,
  replies: ReplyFormat,
): HookReply => {
  const text = reason.trim() === '' ? UNDECIDED : reason;
  const kind = event === null ? null : kindOf(event, events);
  return kind === null || kind === 'call'
    ? { body: replies.deny(text, event), exit: replies.failureExit, stderr: text }
    : { body: null, exit: 0, stderr: text };
};

const bodyReply = (body: JsonObject | null): HookReply => ({ body, exit: 0, stderr: '' });

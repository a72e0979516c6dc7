// Reads an event whose client names it, in one member, and gives the tool, its input and its result in others.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { HookEvent, HookOrigin, NativeCall, ReportedOutcome } from '../hook-event.js';
import { member, type NativeInput } from '../native-calls.js';
import { callOf, originOf } from './event-fields.js';

/** What an event is. `call` is the only kind that the client asks before it acts. */
export type EventKind = HookEvent['kind'];

/** How a client writes its events. */
export interface EventRules {
  /** The member that names the event. */
  readonly nameMember: string;
  /** Every event that needs a decision or a record, by its name. */
  readonly kinds: ReadonlyMap<string, EventKind>;
  /** Members that only an event of a call has. */
  readonly callMembers: readonly string[];
  /** Whether every call has an id. */
  readonly hasCallIds: boolean;
  originOf(event: JsonObject): HookOrigin | null;
  inputOf(event: JsonObject): NativeInput | null;
  callIdOf(event: JsonObject): Json | undefined;
  outcomeOf(event: JsonObject, call: NativeCall): ReportedOutcome;
}

/** The rules of the clients that name events as Claude Code does. */
export const CLAUDE_CODE_RULES: Omit<EventRules, 'inputOf' | 'outcomeOf'> = {
  nameMember: 'hook_event_name',
  kinds: new Map<string, EventKind>([
    ['PreToolUse', 'call'],
    ['PostToolUse', 'outcome'],
    ['SessionStart', 'session_start'],
    ['SessionEnd', 'session_end'],
    ['SubagentStop', 'agent_end'],
  ]),
  callMembers: ['tool_name', 'tool_input', 'tool_use_id'],
  hasCallIds: true,
  originOf: (event) => originOf(member(event, 'session_id'), member(event, 'agent_id'), member(event, 'cwd')),
  callIdOf: (event) => member(event, 'tool_use_id'),
};

/** The kind of an event; null for one that must be denied because it names a call and is not known. */
export const kindOf = (event: JsonObject, rules: EventRules): EventKind | null => {
  const name = member(event, rules.nameMember);
  const kind = typeof name === 'string' ? rules.kinds.get(name) : undefined;
  const namesCall = rules.callMembers.some((one) => member(event, one) !== undefined);
  if (kind === 'call' || kind === 'outcome') return kind;
  // A call hides in no other event: not in a new one, and not in a known one with members that it should not have.
  return typeof name !== 'string' || name === '' || namesCall ? null : (kind ?? 'other');
};

/** The event; null for one that cannot be understood. */
export const readEventBy = (event: JsonObject, rules: EventRules): HookEvent | null => {
  const kind = kindOf(event, rules);
  const origin = rules.originOf(event);
  if (kind === null || origin === null) return null;
  if (kind === 'agent_end') return origin.agent === null ? null : { ...origin, kind };
  if (kind !== 'call' && kind !== 'outcome') return { ...origin, kind };
  const call = callOf(rules.inputOf(event), rules.callIdOf(event), rules.hasCallIds);
  if (call === null) return null;
  return kind === 'call' ? { ...origin, kind, call } : { ...origin, kind, call, outcome: rules.outcomeOf(event, call) };
};

// What every dialect reads from an event in the same way: ids, the working directory, the result of a call. A member of
// the wrong type makes the whole event unreadable, so that its call is denied.

import { sha256 } from '../../../core/contract/hash.js';
import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import type { HookOrigin, NativeCall, ReportedOutcome } from '../hook-event.js';
import { canonicalTextOf, contentOf, type NativeInput } from '../native-calls.js';
import { PATH_CHARS_MAX } from '../native-tools.js';

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

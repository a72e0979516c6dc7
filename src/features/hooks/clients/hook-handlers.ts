// The hooks in settings of the form that Claude Code, Codex and Gemini CLI share: `hooks.EVENT` is a list of groups,
// each with a matcher and a list of handlers.

import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import type { ClientFinding, SettingsFile } from './client-facts.js';

/** Settings that were read. */
export interface ReadSettings {
  readonly file: SettingsFile;
  readonly settings: JsonObject;
}

/** One handler of an event. */
export interface HookHandler extends ReadSettings {
  /** The number of its group, and its number in the group. */
  readonly place: readonly [number, number];
  readonly group: JsonObject;
  readonly handler: JsonObject;
}

/** The handlers of an event, in the order of the file. */
export const handlersOf = ({ file, settings }: ReadSettings, event: string): readonly HookHandler[] =>
  objectsIn(objectIn(settings, 'hooks')[event]).flatMap(([group, groupAt]) =>
    objectsIn(group['hooks']).map(([handler, handlerAt]) => ({
      file,
      settings,
      group,
      handler,
      place: [groupAt, handlerAt] as const,
    })),
  );

/** The objects of a list, with their places. */
export const objectsIn = (value: Json | undefined): readonly (readonly [JsonObject, number])[] =>
  Array.isArray(value)
    ? (value as readonly Json[]).flatMap((item, at) => (isJsonObject(item) ? [[item, at] as const] : []))
    : [];

/** The object in a member; an empty one without it. */
export const objectIn = (value: JsonObject | undefined, name: string): JsonObject => {
  const found = value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
  return isJsonObject(found) ? found : {};
};

/** Whether a matcher matches every tool. Only the usual forms count. */
export const matchesAll = (matcher: Json | undefined): boolean =>
  matcher === undefined || matcher === null || (typeof matcher === 'string' && ['', '*', '.*'].includes(matcher));

/** Whether an object has members that are not among the known ones: they could limit when a hook runs. */
export const hasOtherMembers = (value: JsonObject, known: readonly string[]): boolean =>
  Object.keys(value).some((name) => !known.includes(name));

/** The text of a member, or an empty one. */
export const textIn = (value: JsonObject, name: string): string => {
  const found = value[name];
  return typeof found === 'string' ? found : '';
};

/** What is wrong with the handler that has the fewest problems: one that is right is enough. Null without handlers. */
export function bestOf<Handler>(
  handlers: readonly Handler[],
  problemsOf: (handler: Handler) => readonly ClientFinding[],
): readonly ClientFinding[] | null {
  const [best] = handlers.map(problemsOf).sort((one, other) => one.length - other.length);
  return best ?? null;
}

// Adds groups of hooks to settings, and removes them again.

import { isJsonObject, type Json, type JsonObject } from '../../../../core/contract/json.js';
import type { Client } from '../../hook-event.js';
import { mentionsHook } from '../hook-command-line.js';
import { objectIn, textIn } from '../hook-handlers.js';
import { EditProblem, withMember } from './editor.js';

/** A handler or a group of handlers for each event. */
export type HookEntries = Readonly<Record<string, JsonObject>>;

/** @throws EditProblem if the settings have something else in place of lists of hooks */
export function addEntries(settings: JsonObject, entries: HookEntries): JsonObject {
  const { hooks = {} } = settings;
  if (!isJsonObject(hooks)) throw new EditProblem('has something else than an object in `hooks`');
  const added = Object.entries(entries).map(([event, entry]) => {
    const present = hooks[event] ?? [];
    if (!Array.isArray(present)) throw new EditProblem(`has something else than a list in \`hooks.${event}\``);
    return [event, [...(present as readonly Json[]), entry]] as const;
  });
  return { ...settings, hooks: { ...hooks, ...Object.fromEntries(added) } };
}

/** Removes every handler that mentions the hook of the client, and what is empty then. */
export function removeEntries(settings: JsonObject, client: Client): JsonObject {
  const hooks = objectIn(settings, 'hooks');
  if (!hasOwn(hooks, client)) return settings;
  const left = Object.entries(hooks).reduce<JsonObject>(
    (kept, [event, groups]) =>
      Array.isArray(groups)
        ? withMember(
            kept,
            event,
            groups.flatMap((group: Json) => withoutOwn(group, client)),
          )
        : { ...kept, [event]: groups },
    {},
  );
  return withMember(settings, 'hooks', left);
}

const hasOwn = (hooks: JsonObject, client: Client): boolean => {
  const text = JSON.stringify(hooks);
  return mentionsHook(text, client) || text.includes(routeOf(client));
};

function withoutOwn(group: Json, client: Client): readonly Json[] {
  if (!isJsonObject(group)) return [group];
  if (isOwn(group, client)) return [];
  const { hooks } = group;
  if (!Array.isArray(hooks)) return [group];
  const left = (hooks as readonly Json[]).filter((handler) => !(isJsonObject(handler) && isOwn(handler, client)));
  if (left.length === hooks.length) return [group];
  return left.length === 0 ? [] : [{ ...group, hooks: left }];
}

const routeOf = (client: Client): string => `/api/v1/hooks/${client}`;
const isOwn = (handler: JsonObject, client: Client): boolean =>
  mentionsHook(textIn(handler, 'command'), client) || textIn(handler, 'url').includes(routeOf(client));

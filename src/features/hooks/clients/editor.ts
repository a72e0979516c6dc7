// How files of a client change so that Turnpike decides its calls. Everything else in a file stays. Pure: the text of a
// file comes in, the new text goes out.

import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import type { Client } from '../hook-event.js';
import type { SettingsLevel } from './client-facts.js';
import { mentionsHook, optionWords, type HookTarget } from './hook-command-line.js';
import { isOwnHook, mentionsRoute } from './judge-hooks.js';
import { listIn, objectIn, readJsonObject } from './read-settings.js';

/** What an installation writes. */
export interface InstallTarget extends HookTarget {
  /** Events by HTTP in place of commands: the address of the service, and the variable with the token. */
  readonly http?: { readonly url: string; readonly tokenVariable: string };
  /** The program and the script of the MCP server. */
  readonly server: readonly string[];
  /** The names of the tools that Turnpike offers over MCP. */
  readonly tools: readonly string[];
  /** The text of the plugin for opencode. */
  readonly plugin: string;
}

/** A file of a client that an installation changes. */
export interface EditedFile {
  readonly levels: readonly SettingsLevel[];
  /** Below the folder of the settings of the user. */
  readonly userFile: string;
  /** Below the project. */
  readonly projectFile?: string;
}

/** Changes one file of a client. */
export interface Editor extends EditedFile {
  /** The permissions of a new file. */
  readonly mode: number;
  /**
   * @param text the present text without the entries of an earlier installation; null if there is no file
   * @throws EditProblem
   */
  add(text: string | null, target: InstallTarget): string;
  /**
   * The text without our entries; null if nothing else is left.
   * @throws EditProblem
   */
  remove(text: string): string | null;
}

/** A file that cannot be changed without losing something. The message follows the path of the file. */
export class EditProblem extends Error {}

export const BOTH_LEVELS: readonly SettingsLevel[] = ['user', 'project'];
export const SHARED_MODE = 0o644;

/** Changes of settings. */
interface SettingsChange {
  readonly add: (settings: JsonObject, target: InstallTarget) => JsonObject;
  readonly remove: (settings: JsonObject) => JsonObject;
}

/** An editor of a JSON file. */
export const jsonEditor = (file: EditedFile, change: SettingsChange): Editor => ({
  ...file,
  mode: SHARED_MODE,
  add: (text, target) => writeLike(text ?? '', change.add(readStrict(text ?? ''), target)),
  remove: (text) => {
    const settings = readStrict(text);
    const left = change.remove(settings);
    if (left === settings) return text;
    return Object.keys(left).length === 0 ? null : writeLike(text, left);
  },
});

/** A handler or a group of handlers for each event. */
export type HookEntries = Readonly<Record<string, JsonObject>>;

/**
 * An editor of a JSON file with hooks.
 * @param head members that such a file must have
 */
export const hooksEditor = (
  client: Client,
  file: EditedFile,
  entriesOf: (target: InstallTarget) => HookEntries,
  head: JsonObject = {},
): Editor =>
  jsonEditor(file, {
    add: (settings, target) => addEntries({ ...head, ...settings }, entriesOf(target)),
    remove: (settings) => {
      const left = removeEntries(settings, client);
      const names = Object.keys(left);
      return names.length > 0 && names.every((name) => Object.hasOwn(head, name)) ? {} : left;
    },
  });

/** The same entry for several events. */
export const entriesFor = (events: readonly string[], entry: JsonObject): HookEntries =>
  Object.fromEntries(events.map((event) => [event, entry]));

/** @throws EditProblem if the settings have something else in place of lists of hooks */
function addEntries(settings: JsonObject, entries: HookEntries): JsonObject {
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
function removeEntries(settings: JsonObject, client: Client): JsonObject {
  const hooks = objectIn(settings, 'hooks');
  const text = JSON.stringify(hooks);
  if (!mentionsHook(text, client) && !mentionsRoute(text, client)) return settings;
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

function withoutOwn(group: Json, client: Client): readonly Json[] {
  if (!isJsonObject(group)) return [group];
  if (isOwnHook(client, group)) return [];
  const handlers = listIn(group, 'hooks');
  const left = handlers.filter((handler) => !(isJsonObject(handler) && isOwnHook(client, handler)));
  if (left.length === handlers.length) return [group];
  return left.length === 0 ? [] : [{ ...group, hooks: left }];
}

/** The name of Turnpike's MCP server in settings. */
const SERVER = 'turnpike';

/**
 * An editor of a JSON file with MCP servers.
 * @param member the member with the servers
 * @param serverOf the entry of a server that is started with these words
 * @param only the change by which the client has the tools of the server and no others. Its removal returns the
 *   settings themselves if they have nothing of it
 */
export const serverEditor = (
  file: EditedFile,
  member: string,
  serverOf: (words: readonly string[]) => JsonObject,
  only: SettingsChange = { add: (settings) => settings, remove: (settings) => settings },
): Editor =>
  jsonEditor(file, {
    add: (settings, target) => {
      const servers = { ...objectIn(settings, member), [SERVER]: serverOf(serverWords(target)) };
      return { ...only.add(settings, target), [member]: servers };
    },
    remove: (settings) => {
      const left = only.remove(settings);
      const servers = objectIn(settings, member);
      if (left === settings && !Object.hasOwn(servers, SERVER)) return settings;
      return withMember(left, member, without(servers, SERVER));
    },
  });

/** A server as a program and its arguments. */
export const asCommand = ([command = '', ...args]: readonly string[]): JsonObject => ({ command, args });

/** @throws EditProblem for comments, and for anything that a rewritten file would lose */
function readStrict(text: string): JsonObject {
  const settings = readJsonObject(text);
  if (settings === null) {
    throw new EditProblem(
      'is not plain JSON with an object: remove comments, repeated keys, and commas before a closing bracket',
    );
  }
  if (text.trim() !== '' && compact(text) !== JSON.stringify(settings)) {
    throw new EditProblem(
      'has a repeated key, or a number or text that rewriting would change: write it plainly first',
    );
  }
  return settings;
}

/** The text without spaces outside of strings, with usual escapes. */
const compact = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|\s+|\uFEFF/g, (token) =>
    token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : '',
  );

/** The settings with the indentation and the end of the text. */
function writeLike(text: string, settings: JsonObject): string {
  const indent = /^[ \t]+(?=["}\]])/m.exec(text)?.[0] ?? '  ';
  const end = text === '' || text.endsWith('\n') ? '\n' : '';
  return `${JSON.stringify(settings, null, indent)}${end}`;
}

/** An object without a member. */
export const without = (settings: JsonObject, name: string): JsonObject =>
  Object.fromEntries(Object.entries(settings).filter(([key]) => key !== name));

/** An object with a member, or without it if the value is empty. */
export const withMember = (settings: JsonObject, name: string, value: JsonObject | readonly Json[]): JsonObject =>
  (Array.isArray(value) ? value.length : Object.keys(value).length) === 0
    ? without(settings, name)
    : { ...settings, [name]: value };

/** The command that starts Turnpike's MCP server for a client. */
export const serverWords = ({
  server,
  home,
  lane,
  role,
  client,
  actor = client,
  ...target
}: InstallTarget): string[] => [...server, 'mcp', ...optionWords({ home, case: target.case, actor, lane, role })];

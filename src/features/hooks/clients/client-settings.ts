// What the settings of a client are: where they are, how they are judged and edited, and what runs there without a
// hook. Each client has them in a file of its own (`codex-settings.ts`); `judge-client.ts`, `inspect-client.ts` and
// `install-client.ts` work by them.

import { type JsonObject, isJsonObject, type Json } from '../../../core/contract/json.js';
import {
  type ClientFacts,
  type ClientFinding,
  type Profile,
  type SettingsKind,
  type SettingsLevel,
  type SettingsPlace,
  type ReadSettings,
  isOwnHook,
  mentionsRoute,
} from './judge-hooks.js';
import { folderIn, type ClientSurroundings } from './client-names.js';
import type { Client } from '../hook-event.js';
import { mentionsHook, optionWords, type HookTarget } from './hook-command-line.js';
import { listIn, objectIn, readJsonObject } from './read-settings.js';

export interface ClientSettings {
  /** The folder of the settings of the user. */
  readonly userFolder: (around: ClientSurroundings) => string;
  /** The files that the client reads, those of a wider level first. */
  readonly files: readonly FilePlace[];
  readonly unhooked: UnhookedPlaces;
  /** How the files are read that are judged, by their kinds. Their findings have this order. */
  readonly readers: readonly (readonly [SettingsKind, (text: string) => JsonObject | null])[];
  /** What is wrong with the client itself; before the findings of its files. */
  readonly judgeProgram?: (facts: ClientFacts) => readonly ClientFinding[];
  /** What lets a call pass without a decision. */
  readonly judgeGate: Judge;
  /** The same for the profile strong; absent if no setting is known that switches off the native tools. */
  readonly judgeStrong?: Judge;
  /** The editors of each profile; none for a profile that the client does not have. */
  readonly editors: Readonly<Record<Profile, readonly Editor[]>>;
}

type Judge = (facts: ClientFacts, settings: readonly ReadSettings[]) => readonly ClientFinding[];

/** What a client executes, starts or follows without asking a hook. */
interface UnhookedPlaces {
  /** Files and folders below a folder of the project. Several clients read those of others. */
  readonly repository: readonly string[];
  /** Whether it also reads the folders above, up to that of the repository. */
  readonly readsAbove: boolean;
  /** Files and folders outside of the project, as absolute paths. */
  readonly user: (around: ClientSurroundings, userFolder: string) => readonly string[];
  /** The members of settings that name what it starts. */
  readonly members: readonly string[];
}

/** @param userFolder the folder of the settings of the user */
export type FilePlace = (around: ClientSurroundings, userFolder: string) => SettingsPlace;

/** The folder that a file of the user must be in: it may be a link to anywhere in the home folder. */
export const userRoot = ({ userHome }: Pick<ClientSurroundings, 'userHome'>, userFolder: string): string =>
  userFolder.startsWith(`${userHome}/`) ? userHome : userFolder;

/** A file below the folder of the settings of the user. */
export const ofUser =
  (kind: SettingsKind, name: string): FilePlace =>
  (around, folder) => ({ kind, level: 'user', path: `${folder}/${name}`, root: userRoot(around, folder) });

export const ofProject =
  (kind: SettingsKind, name: string, level: SettingsLevel = 'project'): FilePlace =>
  ({ project }) => ({ kind, level, path: `${project}/${name}`, root: project });

/**
 * A file of the administrator of the machine.
 * @param variable may name the file
 */
export const managed =
  (kind: SettingsKind, path: string, darwinPath = path, variable = ''): FilePlace =>
  (around) => ({
    kind,
    level: 'managed',
    path: folderIn(around, variable) ?? (around.platform === 'darwin' ? darwinPath : path),
    root: '/',
  });

/** The paths of several names below a folder. */
export const below = (folder: string, names: readonly string[]): readonly string[] =>
  names.map((name) => `${folder}/${name}`);

// How files of a client change so that Turnpike decides its calls. Everything else in a file stays: the text of a file
// comes in, the new text goes out.

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
interface EditedFile {
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
type HookEntries = Readonly<Record<string, JsonObject>>;

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

import type { Json, JsonObject } from '../../../../core/contract/json.js';
import type { SettingsLevel } from '../client-facts.js';
import type { HookTarget } from '../hook-command-line.js';
import { readJsonObject } from '../read-commented-json.js';

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

/** Changes one file of a client. */
export interface Editor {
  readonly levels: readonly SettingsLevel[];
  /** Below the folder of the settings of the user. */
  readonly userFile: string;
  /** Below the project. */
  readonly projectFile?: string;
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

export const UNSUPPORTED: readonly Editor[] = [];
export const BOTH_LEVELS: readonly SettingsLevel[] = ['user', 'project'];
export const PRIVATE_MODE = 0o600;
export const SHARED_MODE = 0o644;

/** Settings while they are changed. */
export type MutableSettings = Record<string, Json>;

/** An editor of a JSON file. */
export const jsonEditor = (
  file: Pick<Editor, 'levels' | 'userFile' | 'projectFile'>,
  change: {
    readonly add: (settings: JsonObject, target: InstallTarget) => JsonObject;
    readonly remove: (settings: JsonObject) => JsonObject;
  },
): Editor => ({
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
export const serverWords = ({ server, home, lane, role, actor, client, ...target }: InstallTarget): string[] => [
  ...server,
  'mcp',
  '--home',
  home,
  '--case',
  target.case,
  '--actor',
  actor ?? client,
  ...(lane === undefined ? [] : ['--lane', lane]),
  ...(role === undefined ? [] : ['--role', role]),
];

// The parts of a call of a tool of a coding agent, as call rules see them. Each part must be allowed alone.

import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import { isNativeTool, isRedacted, type NativeToolName } from '../../../core/contract/policy/native-tool-names.js';
import { searchedNames, type SearchedNames } from './glob.js';
import { shellCommands } from './shell-words.js';
import { namedPaths, pathsOfText, readWordPaths } from './word-paths.js';

/** One part of a call. */
export type CallPart =
  | {
      readonly kind: 'command';
      readonly words: readonly string[];
      /** The paths that the words may name, and the folder in which they do. */
      readonly paths: readonly string[];
      /** What the words, and parts of words, may search for by name. */
      readonly names: SearchedNames;
    }
  | { readonly kind: 'path'; readonly path: string }
  /** What a search asks for by name in a folder. Only rules that deny see it. */
  | { readonly kind: 'glob'; readonly path: string; readonly glob: string; readonly names: SearchedNames }
  | { readonly kind: 'host'; readonly host: string }
  | { readonly kind: 'name'; readonly name: string }
  /** The call as a whole: its input has nothing that rules distinguish. */
  | { readonly kind: 'call' };

/** The members of an input by which rules decide. */
const DECIDED: Readonly<Record<NativeToolName, readonly string[]>> = {
  'native.shell': ['command', 'cwd', 'paths'],
  'native.read': ['path'],
  'native.search': ['path', 'globs'],
  'native.write': ['path'],
  'native.edit': ['path'],
  'native.patch': ['paths'],
  'native.fetch': ['url'],
  'native.web_search': [],
  'native.mcp': ['server', 'tool'],
  'native.other': ['name'],
};

/** Whether rules decide by this member of the input of a tool. */
const isDecidedMember = (tool: string, member: string): boolean => isNativeTool(tool) && DECIDED[tool].includes(member);

/** @returns null if the input cannot be read with certainty: the call is then denied */
export function callParts(tool: string, input: JsonObject): readonly CallPart[] | null {
  if (hasHiddenPart(tool, input)) return null;
  switch (tool) {
    case 'native.shell':
      return commandParts(input);
    case 'native.read':
    case 'native.write':
    case 'native.edit':
      return pathParts([input['path']]);
    case 'native.search':
      return searchParts(input);
    case 'native.patch':
      return Array.isArray(input['paths']) ? pathParts(input['paths']) : null;
    case 'native.fetch':
      return hostParts(input['url']);
    case 'native.mcp':
      return namePart([input['server'], input['tool']]);
    case 'native.other':
      return namePart([input['name']]);
    default:
      return [{ kind: 'call' }];
  }
}

function hasHiddenPart(tool: string, input: JsonObject): boolean {
  const { redacted } = input;
  if (!isRedacted(input)) return false;
  return !isTexts(redacted) || redacted.some((name) => isDecidedMember(tool, name));
}

const isTexts = (value: Json | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every((one: Json) => typeof one === 'string');

function commandParts({ command, cwd, paths }: JsonObject): readonly CallPart[] | null {
  if (!isJsonObject(command)) return null;
  const { text, bytes } = command;
  // Only the beginning of a longer command is recorded, so the rest cannot be judged.
  if (typeof text !== 'string' || Buffer.byteLength(text) !== bytes) return null;
  const commands = shellCommands(text);
  if (commands === null) return null;
  const resolved = readWordPaths(paths);
  const folders = typeof cwd === 'string' ? [cwd] : [];
  if (resolved === null || ![...folders, ...resolved.values()].every(isCanonical)) return null;
  // The limits are those of the whole call.
  const all = namedPaths(commands.flat());
  if (all === null || searchedNames(all.filter(isGlob)) === null) return null;
  return commands.map((words) => {
    const named = namedPaths(words) ?? [];
    return {
      kind: 'command',
      words,
      paths: [...folders, ...named.flatMap((text) => pathsOfText(text, folders[0] ?? '.', resolved))],
      names: searchedNames(named.filter(isGlob)) ?? [],
    };
  });
}

/** Whether a program may search for names by a word, or by a part of one. */
const isGlob = (text: string): boolean => /[*?[{]|[@+!]\(/.test(text);

function searchParts({ path = '.', globs = [] }: JsonObject): readonly CallPart[] | null {
  const folder = pathParts([path]);
  if (folder === null || typeof path !== 'string' || !isTexts(globs) || searchedNames(globs) === null) return null;
  return [
    ...folder,
    ...globs.map((glob) => ({ kind: 'glob' as const, path, glob, names: searchedNames([glob]) ?? [] })),
  ];
}

function pathParts(paths: readonly (Json | undefined)[]): readonly CallPart[] | null {
  const parts = paths.map((path) => (typeof path === 'string' && isCanonical(path) ? path : null));
  return parts.every((path) => path !== null) ? parts.map((path) => ({ kind: 'path', path })) : null;
}

/** `.` for the root of the project, a path below it, or an absolute path outside of it. */
const isCanonical = (path: string): boolean =>
  path === '.' ||
  path === '/' ||
  (!/[\\\p{Cc}]/u.test(path) &&
    path
      .replace(/^\//, '')
      .split('/')
      .every((segment) => segment !== '' && segment !== '.' && segment !== '..'));

function hostParts(url: Json | undefined): readonly CallPart[] | null {
  const host = typeof url === 'string' ? hostOf(url) : null;
  return host === null ? null : [{ kind: 'host', host }];
}

/** The host of an `http` or `https` address without a user. Written out, because readers of addresses differ. */
const hostOf = (url: string): string | null =>
  /^https?:\/\/([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)(?::\d{1,5})?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?$/
    .exec(url)?.[1]
    ?.toLowerCase() ?? null;

function namePart(names: readonly (Json | undefined)[]): readonly CallPart[] | null {
  const known = names.filter((name): name is string => typeof name === 'string' && !name.includes('/'));
  return known.length === names.length ? [{ kind: 'name', name: known.join('/') }] : null;
}

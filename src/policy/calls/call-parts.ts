// The parts of a call of a tool of a coding agent, as call rules see them. Each part must be allowed alone.

import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { shellCommands } from './shell-words.js';

/** One part of a call. */
export type CallPart =
  | { readonly kind: 'command'; readonly words: readonly string[] }
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'host'; readonly host: string }
  | { readonly kind: 'name'; readonly name: string }
  /** The call as a whole: its input has nothing that rules distinguish. */
  | { readonly kind: 'call' };

/** The kind of the parts of each call of the tool. */
export function partKindOf(tool: string): CallPart['kind'] {
  return Object.hasOwn(KINDS, tool) ? KINDS[tool as keyof typeof KINDS] : 'call';
}

/** What call rules see in the input of each tool of a coding agent. */
const KINDS = {
  'native.shell': 'command',
  'native.read': 'path',
  'native.search': 'path',
  'native.write': 'path',
  'native.edit': 'path',
  'native.patch': 'path',
  'native.fetch': 'host',
  'native.web_search': 'call',
  'native.mcp': 'name',
  'native.other': 'name',
} as const satisfies Record<string, CallPart['kind']>;
export const NATIVE_TOOL_NAMES: readonly string[] = Object.keys(KINDS);

/** @returns null if the input cannot be read with certainty: the call is then denied */
export function callParts(tool: string, input: JsonObject): readonly CallPart[] | null {
  switch (tool) {
    case 'native.shell':
      return commandParts(input['command']);
    case 'native.read':
    case 'native.write':
    case 'native.edit':
      return pathParts([input['path']]);
    case 'native.search':
      return pathParts([input['path'] ?? '.']);
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

function commandParts(command: Json | undefined): readonly CallPart[] | null {
  if (!isJsonObject(command)) return null;
  const { text, bytes } = command;
  // Only the beginning of a longer command is recorded, so the rest cannot be judged.
  if (typeof text !== 'string' || Buffer.byteLength(text) !== bytes) return null;
  return shellCommands(text)?.map((words) => ({ kind: 'command' as const, words })) ?? null;
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

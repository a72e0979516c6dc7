// Calls of native tools from the values that a client gives. Each returns null for values that no call can have: the
// event is then unreadable, and the call is denied.

import { Buffer } from 'node:buffer';
import { isJsonObject, type Json, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { NativeToolName } from '../../core/contract/policy/native-tool-names.js';
import type { NativeCall } from './hook-event.js';
import { EDITS_MAX, GLOBS_MAX, PATH_CHARS_MAX, PATHS_MAX, TEXT_CHARS_MAX } from './native-tools.js';

/** The input of a call, by the name of its tool. */
export type NativeInput = Pick<NativeCall, 'tool' | 'input'>;

/** @param cwd the directory in which the command runs, if the call itself names one */
export const shellCall = (command: Json | undefined, cwd?: Json): NativeInput | null =>
  isText(command) && command !== '' && isOptionalPath(cwd)
    ? call('native.shell', { command: contentOf(command), ...(isPath(cwd) ? { cwd } : {}) })
    : null;

export const readCall = (path: Json | undefined): NativeInput | null =>
  isPath(path) ? call('native.read', { path }) : null;

/** @param globs the names of files in which it searches; what is no text makes the call unreadable */
export const searchCall = (
  pattern: Json | undefined,
  path?: Json,
  globs: readonly (Json | undefined)[] = [],
): NativeInput | null =>
  isText(pattern) && isOptionalPath(path) && globs.length <= GLOBS_MAX && globs.every(isPath)
    ? call('native.search', {
        pattern: pattern.slice(0, TEXT_CHARS_MAX).toWellFormed(),
        ...(isPath(path) ? { path } : {}),
        ...(globs.length === 0 ? {} : { globs }),
      })
    : null;

export const writeCall = (path: Json | undefined, content: Json | undefined): NativeInput | null =>
  isPath(path) && isText(content) ? call('native.write', { path, content: contentOf(content) }) : null;

/** @param edits pairs of the text to replace and the new one */
export const editCall = (
  path: Json | undefined,
  edits: readonly (readonly [Json | undefined, Json | undefined])[],
): NativeInput | null => {
  if (!isPath(path) || edits.length === 0 || edits.length > EDITS_MAX) return null;
  const pairs: { readonly old: JsonObject; readonly new: JsonObject }[] = [];
  for (const [before, after] of edits) {
    if (!isText(before) || !isText(after)) return null;
    pairs.push({ old: contentOf(before), new: contentOf(after) });
  }
  return call('native.edit', { path, edits: pairs });
};

/** @param paths the files that the patch names, on both sides of a move */
export const patchCall = (paths: readonly Json[], patch: Json | undefined): NativeInput | null =>
  paths.length >= 1 && paths.length <= PATHS_MAX && paths.every(isPath) && isText(patch)
    ? call('native.patch', { paths: [...paths], patch: contentOf(patch) })
    : null;

export const fetchCall = (url: Json | undefined): NativeInput | null =>
  isText(url) && url.length >= 1 && url.length <= PATH_CHARS_MAX ? call('native.fetch', { url }) : null;

export const webSearchCall = (query: Json | undefined): NativeInput | null =>
  isText(query) ? call('native.web_search', { query: query.slice(0, TEXT_CHARS_MAX).toWellFormed() }) : null;

/** A call of a tool of an MCP server, with its input as JSON text (decision 0012). */
export const mcpCall = (server: string, tool: string, input: Json | undefined): NativeInput | null =>
  isName(server) && isName(tool)
    ? callWithJson(input, (text) => call('native.mcp', { server, tool, input: text }))
    : null;

/** A call of any other tool, with its input as JSON text. */
export const otherCall = (name: Json | undefined, input: Json | undefined): NativeInput | null =>
  isText(name) && isName(name) ? callWithJson(input, (text) => call('native.other', { name, input: text })) : null;

/** The beginning of a text, its hash and its length. */
export const contentOf = (text: string): JsonObject => ({
  text: text.slice(0, TEXT_CHARS_MAX).toWellFormed(),
  sha256: sha256(text),
  bytes: Buffer.byteLength(text),
});

const call = (tool: NativeToolName, input: JsonObject): NativeInput => ({ tool, input });

const callWithJson = (input: Json | undefined, make: (text: JsonObject) => NativeInput): NativeInput | null => {
  const text = canonicalTextOf(input ?? null);
  return text === null ? null : make(contentOf(text));
};

/**
 * The canonical text of a value of a client.
 * @returns null for a value that is too deep, or that has a lone surrogate
 */
export const canonicalTextOf = (value: Json): string | null => {
  try {
    return canonicalJson(value);
  } catch {
    return null;
  }
};

const isText = (value: Json | undefined): value is string => typeof value === 'string' && value.isWellFormed();
const isPath = (value: Json | undefined): value is string =>
  isText(value) && value.length >= 1 && value.length <= PATH_CHARS_MAX && !value.includes('\0');
const isOptionalPath = (value: Json | undefined): boolean =>
  value === undefined || value === null || value === '' || isPath(value);
const isName = (value: string): boolean => value.length >= 1 && value.length <= 256 && value.isWellFormed();

/** A member of an object of the client. */
export const member = (value: Json | undefined, name: string): Json | undefined =>
  isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

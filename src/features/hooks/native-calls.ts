// The tools that coding agents have of their own, as tools whose caller executes them (U-08), and calls of them from
// the values that a client gives. The names are those that lanes list. The schemas are the same for every client; a
// dialect translates.

import { Buffer } from 'node:buffer';
import { isJsonObject, type Json, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { NativeToolName } from '../../core/contract/policy/native-tool-names.js';
import type { NativeCall } from './hook-event.js';
import { closed, Sha256 } from '../../core/contract/shapes.js';

import Type, { type TObject, type TProperties } from 'typebox';

/** The longest text of an input, in UTF-16 units. A longer one is recorded by its hash, with its beginning. */
export const TEXT_CHARS_MAX = 8_192;
export const PATH_CHARS_MAX = 4_096;
export const PATHS_MAX = 128;
export const EDITS_MAX = 32;
/** How many words of a command may have a path of their own. */
export const WORD_PATHS_MAX = 256;
const GLOBS_MAX = 32;

/** How long the outcome of a call may take to arrive, in milliseconds. */
const REPORT_MS = 3_600_000;

const Text = Type.String({ maxLength: TEXT_CHARS_MAX });
const Path = Type.String({ minLength: 1, maxLength: PATH_CHARS_MAX });
const Name = Type.String({ minLength: 1, maxLength: 256 });
/** A text of any length: its beginning, and the hash of all of it. */
const Content = Type.Object({ text: Text, sha256: Sha256, bytes: Type.Integer({ minimum: 0 }) }, closed);

/** A tool of coding agents. */
interface NativeTool {
  readonly name: NativeToolName;
  readonly summary: string;
  readonly input: TObject;
  /** Whether its input can leave the machine. */
  readonly outside: boolean;
  readonly timeout: number;
}

/** The path of a word of a command, where the file system resolves it otherwise than it is written. */
const WordPath = Type.Object({ word: Path, path: Path }, closed);

/** Of each tool: what it does, whether its input can leave the machine, and the members of its input. */
const TOOLS: Readonly<Record<NativeToolName, readonly [summary: string, outside: boolean, members: TProperties]>> = {
  'native.shell': [
    'Run a command in the shell of the client',
    true,
    {
      command: Content,
      cwd: Type.Optional(Path),
      paths: Type.Optional(Type.Array(WordPath, { minItems: 1, maxItems: WORD_PATHS_MAX })),
    },
  ],
  'native.read': ['Read a file or folder', false, { path: Path }],
  'native.search': [
    'Search files for names or text',
    false,
    {
      path: Type.Optional(Path),
      pattern: Text,
      /** The files in which it searches. */
      globs: Type.Optional(Type.Array(Path, { minItems: 1, maxItems: GLOBS_MAX })),
    },
  ],
  'native.write': ['Write a whole file', false, { path: Path, content: Content }],
  'native.edit': [
    'Replace texts in a file',
    false,
    {
      path: Path,
      edits: Type.Array(Type.Object({ old: Content, new: Content }, closed), { minItems: 1, maxItems: EDITS_MAX }),
    },
  ],
  'native.patch': [
    'Apply a patch to one or more files',
    false,
    { paths: Type.Array(Path, { minItems: 1, maxItems: PATHS_MAX }), patch: Content },
  ],
  'native.fetch': ['Read a page of the web', true, { url: Type.String({ minLength: 1, maxLength: PATH_CHARS_MAX }) }],
  'native.web_search': ['Search the web', true, { query: Text }],
  'native.mcp': [
    'Call a tool of an MCP server that the client has connected',
    true,
    { server: Name, tool: Name, input: Content },
  ],
  'native.other': ['Call any other tool of the client', true, { name: Name, input: Content }],
};

/** Every input may say from which of its members secrets were removed, with the hash of the client's input. */
const REDACTED: TProperties = {
  original_sha256: Type.Optional(Sha256),
  redacted: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z_]{1,40}$' }), { minItems: 1, maxItems: 8 })),
};

/** All of them, sorted by name. */
export const NATIVE_TOOLS: readonly NativeTool[] = (Object.keys(TOOLS) as NativeToolName[]).sort().map((name) => {
  const [summary, outside, members] = TOOLS[name];
  return { name, summary, input: Type.Object({ ...members, ...REDACTED }, closed), outside, timeout: REPORT_MS };
});

// A call is null for values that no call can have: the event is then unreadable, and the call is denied.

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

// Calls of native tools whose meaning depends on more than one value.

import { isJsonObject, type Json } from '../../../core/contract/json.js';
import { member, otherCall, searchCall, type NativeInput } from '../native-calls.js';

/** How a tool of a client reads its input. */
export type ReadInput = (input: Json | undefined) => NativeInput | null;

/** The native tools of a client, by their names. */
export type NativeTools = ReadonlyMap<string, ReadInput>;

/** A call of a tool by its name. A tool that is not listed is called with its input as JSON text. */
export const nativeCall = (tools: NativeTools, name: string, input: Json | undefined): NativeInput | null => {
  const read = tools.get(name);
  return read === undefined ? otherCall(name, input) : read(input);
};

/**
 * The one member of several names that is there.
 * @returns null if several are there: which of them the client uses is not known
 */
export const oneOf = (input: Json | undefined, ...names: readonly string[]): Json | undefined => {
  const values = names.map((name) => member(input, name)).filter((value) => value !== undefined && value !== null);
  return values.length > 1 ? { ambiguous: true } : values[0];
};

/** A pattern that may leave the folder in which it is searched: absolute, with `..`, or with such an alternative. */
const LEAVES_FOLDER = /^[/\\~]|^[A-Za-z]:|\.\.|[{,(|][/\\~]/;

/** A search of names. A pattern that may leave its folder is a call with JSON text: no path says where it ends. */
export const globCall = (name: string, input: Json | undefined, path: Json | undefined): NativeInput | null => {
  const pattern = member(input, 'pattern');
  return typeof pattern === 'string' && LEAVES_FOLDER.test(pattern)
    ? otherCall(name, input)
    : searchCall(pattern, path, [pattern, ...globsIn(input)]);
};

/** A search of texts, in the files that any of its members names. */
export const grepCall = (input: Json | undefined, path: Json | undefined): NativeInput | null =>
  searchCall(member(input, 'pattern'), path, globsIn(input));

/** Members of a search that name no files, or only those that are left out. */
const NAMES_NO_FILES: readonly string[] = [
  ...['pattern', 'path', 'dir_path', 'directory', 'type', 'output_mode', 'description'],
  ...['exclude', 'exclude_pattern'],
];

/** Each text in any other member: clients differ in how they call the files of a search, and get new members. */
const globsIn = (input: Json | undefined): readonly Json[] =>
  !isJsonObject(input)
    ? []
    : Object.entries(input)
        .filter(
          ([name, value]) => !NAMES_NO_FILES.includes(name) && (typeof value === 'string' || Array.isArray(value)),
        )
        .flatMap(([, value]) => value)
        .filter((glob) => glob !== '');

/** The server and the tool in `mcp__SERVER__TOOL`; null if the name can be split in more than one way. */
export const mcpNameOf = (name: string): { readonly server: string; readonly tool: string } | null => {
  const [first, server, tool, ...rest] = name.split('__');
  const isClear = first === 'mcp' && rest.length === 0 && !name.includes('___');
  return isClear && server !== undefined && server !== '' && tool !== undefined && tool !== ''
    ? { server, tool }
    : null;
};

// How clients write the inputs of their tools: which member has the command, the path, the text. Some versions call the
// same member by another name, so a member may have several.

import { isJsonObject, type Json } from '../../../core/contract/json.js';
import { editCall, member, otherCall, patchCall, searchCall, type NativeInput } from '../native-calls.js';

/** How a tool of a client reads its input. */
export type ReadInput = (input: Json | undefined, name: string) => NativeInput | null;

/** The native tools of a client, by their names. */
export type NativeTools = Readonly<Record<string, ReadInput>>;

/** A call of a tool by its name. A tool that is not listed is called with its input as JSON text. */
export const nativeCall = (tools: NativeTools, name: string, input: Json | undefined): NativeInput | null => {
  const read = Object.hasOwn(tools, name) ? tools[name] : undefined;
  return read === undefined ? otherCall(name, input) : read(input, name);
};

/** The name of a member, or its names in several versions. */
type Names = string | readonly string[];

/**
 * The one member of several names that is there.
 * @returns an object if several are there: which of them the client uses is not known, and no call has such a value
 */
export const oneOf = (input: Json | undefined, ...names: readonly string[]): Json | undefined => {
  const values = names.map((name) => member(input, name)).filter((value) => value !== undefined && value !== null);
  return values.length > 1 ? { ambiguous: true } : values[0];
};
const valueIn = (input: Json | undefined, names: Names): Json | undefined => oneOf(input, ...[names].flat());

/** Reads a call from the values of some members of the input, in this order. */
export const fromMembers =
  (call: (...values: readonly (Json | undefined)[]) => NativeInput | null, ...names: readonly Names[]): ReadInput =>
  (input) =>
    call(...names.map((one) => valueIn(input, one)));

/** Reads one replacement in a file. */
export const editFromMembers = (path: Names, before: Names, after: Names): ReadInput =>
  fromMembers((...[file, old, next]) => editCall(file, [[old, next]]), path, before, after);

/** Reads several replacements in a file, which are in the member `edits`. */
export const editsFromMembers =
  (path: Names, before: Names, after: Names): ReadInput =>
  (input) => {
    const edits = member(input, 'edits');
    const pairs = Array.isArray(edits) ? (edits as readonly Json[]) : [];
    return editCall(
      valueIn(input, path),
      pairs.map((one) => [valueIn(one, before), valueIn(one, after)] as const),
    );
  };

/** A pattern that may leave the folder in which it is searched: absolute, with `..`, or with such an alternative. */
const LEAVES_FOLDER = /^[/\\~]|^[A-Za-z]:|\.\.|[{,(|][/\\~]/;

/** A search of names. A pattern that may leave its folder is a call with JSON text: no path says where it ends. */
export const globFromMembers =
  (path: Names): ReadInput =>
  (input, name) => {
    const pattern = member(input, 'pattern');
    return typeof pattern === 'string' && LEAVES_FOLDER.test(pattern)
      ? otherCall(name, input)
      : searchCall(pattern, valueIn(input, path), [pattern, ...globsIn(input)]);
  };

/** A search of texts, in the files that any of its members names. */
export const grepFromMembers =
  (path: Names): ReadInput =>
  (input) =>
    searchCall(member(input, 'pattern'), valueIn(input, path), globsIn(input));

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

/** The tool of an MCP server, by the names that the server and the client have for it. */
export interface McpName {
  readonly server: string;
  readonly tool: string;
}

/** The server and the tool in `mcp__SERVER__TOOL`; undefined if the name can be split in more than one way. */
export const mcpNameIn = (name: string): McpName | undefined => {
  const [first, server, tool, ...rest] = name.split('__');
  const isClear = first === 'mcp' && rest.length === 0 && !name.includes('___');
  return isClear && server !== undefined && server !== '' && tool !== undefined && tool !== ''
    ? { server, tool }
    : undefined;
};

/** The server and the tool that an object of an event names; undefined without it, null for other values than names. */
export const mcpNameOfObject = (value: Json | undefined, server: string, tool: string): McpName | null | undefined => {
  if (value === undefined) return undefined;
  const [serverName, toolName] = [member(value, server), member(value, tool)];
  return typeof serverName === 'string' && typeof toolName === 'string' ? { server: serverName, tool: toolName } : null;
};

const HEADER = /^\*\*\* (?:Add File|Delete File|Update File|Move to):/;
/** A path without a margin and without characters that could end a line for some reader. */
const PATH = /^ (?!\s)[^\p{Cc}\u2028\u2029\ufeff]+(?<!\s)$/u;
const MARKERS: readonly string[] = ['*** Begin Patch', '*** End Patch', '*** End of File'];

/** What some reader of the format strips at the beginning or the end of a line. */
const MARGIN = /^[\s\u0085\ufeff]+|[\s\u0085\ufeff]+$/g;

/**
 * A call that applies a patch in the format of apply_patch: `*** Add File: PATH` and so on. Clients read the format
 * with different tolerance, so a line that one of them could read in another way makes the patch unreadable.
 */
export const patchTextCall = (patch: Json | undefined): NativeInput | null => {
  const paths = typeof patch === 'string' ? pathsOfPatch(patch) : null;
  return paths === null ? null : patchCall(paths, patch);
};

/**
 * The files that a patch adds, deletes, updates or moves, each once, in order.
 * @returns null if a line begins with `***` and is neither a header nor a marker, or a path has an uncertain end
 */
export const pathsOfPatch = (patch: string): string[] | null => {
  const paths = new Set<string>();
  for (const line of patch.split('\n')) {
    const text = line.replace(MARGIN, '');
    const header = HEADER.exec(text)?.[0];
    if (header !== undefined) {
      const path = text.slice(header.length);
      if (!PATH.test(path)) return null;
      paths.add(path.slice(1));
    } else if (text.startsWith('***') && !MARKERS.includes(text) && !line.startsWith(' ')) {
      // An unchanged line of a file begins with a space, and may be any text.
      return null;
    }
  }
  return [...paths];
};

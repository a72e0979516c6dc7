// The tools that coding agents have of their own, as tools whose caller executes them (U-08). Their names are those
// that lanes list. Their schemas are the same for every client; a dialect translates.

import Type, { type TObject, type TProperties } from 'typebox';
import type { NativeToolName } from '../../core/contract/policy/native-tool-names.js';
import { closed, Sha256 } from '../../core/contract/shapes.js';

/** The longest text of an input, in UTF-16 units. A longer one is recorded by its hash, with its beginning. */
export const TEXT_CHARS_MAX = 8_192;
export const PATH_CHARS_MAX = 4_096;
export const PATHS_MAX = 128;
export const EDITS_MAX = 32;
/** How many words of a command may have a path of their own. */
export const WORD_PATHS_MAX = 256;
export const GLOBS_MAX = 32;

/** How long the outcome of a call may take to arrive, in milliseconds. */
const REPORT_MS = 3_600_000;

const Text = Type.String({ maxLength: TEXT_CHARS_MAX });
const Path = Type.String({ minLength: 1, maxLength: PATH_CHARS_MAX });
const Name = Type.String({ minLength: 1, maxLength: 256 });
/** A text of any length: its beginning, and the hash of all of it. */
const Content = Type.Object({ text: Text, sha256: Sha256, bytes: Type.Integer({ minimum: 0 }) }, closed);

/** A tool of coding agents. */
export interface NativeTool {
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

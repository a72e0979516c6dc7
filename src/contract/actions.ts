// The built-in action catalogue. An action that is not in the catalogue does not exist; one that no policy lists is
// denied. Limits that a policy may set (content bytes, extensions) are not here but in the actions policy.

import Type, { type TObject } from 'typebox';
import { closed } from './shapes.js';

/** S1-19: what an action can do to the world. `none` never leaves the pipeline. */
export const RISK_CLASSES = ['none', 'read', 'write', 'destructive'] as const;
export type RiskClass = (typeof RISK_CLASSES)[number];

/** Length of a path in UTF-8 bytes is capped by the step; this keeps the schema itself bounded. */
export const PATH_BYTES_MAX = 1_024;
export const SEGMENT_BYTES_MAX = 255;

const Path = Type.String({
  pattern: '^/sandbox/',
  maxLength: PATH_BYTES_MAX,
  description:
    "Absolute path below /sandbox/, Unicode NFC, no backslash or control character, no empty, '.' or '..' segment. " +
    "A segment has at most 255 bytes and does not begin with '.turnpike-'. " +
    'Only LIST_FILES and CREATE_DIRECTORY take a slash at the end.',
});

export interface ActionDefinition {
  readonly name: string;
  readonly summary: string;
  readonly risk: RiskClass;
  readonly args: TObject;
  /** Which arguments are sandbox paths, in the order in which they are checked. */
  readonly paths: readonly string[];
  /** C27: may a path other than the root end with a slash? */
  readonly trailingSlash: boolean;
  /** The tool a lane must list for the mediated run, or null for an action that needs no run of its own. */
  readonly tool: string | null;
  /** What the lane must let the db_write child do, or null where nothing is written. */
  readonly write: { readonly table: string; readonly mode: 'append' | 'upsert' } | null;
}

const SANDBOX_FILES = { table: 'sandbox_files', mode: 'upsert' } as const;

const path = Type.Object({ path: Path }, closed);

export const ACTIONS = {
  THINK: {
    name: 'THINK',
    summary: 'Note a thought. Nothing happens.',
    risk: 'none',
    args: Type.Object({}, closed),
    paths: [],
    trailingSlash: false,
    tool: null,
    write: null,
  },
  FINISH: {
    name: 'FINISH',
    summary: 'End the run with a last word to the user.',
    risk: 'none',
    args: Type.Object({ response: Type.String() }, closed),
    paths: [],
    trailingSlash: false,
    tool: null,
    write: null,
  },
  READ_FILE: {
    name: 'READ_FILE',
    summary: 'Read a UTF-8 text file.',
    risk: 'read',
    args: path,
    paths: ['path'],
    trailingSlash: false,
    tool: 'sandbox.read_file',
    write: null,
  },
  LIST_FILES: {
    name: 'LIST_FILES',
    summary: 'List a directory.',
    risk: 'read',
    args: path,
    paths: ['path'],
    trailingSlash: true,
    tool: 'sandbox.list_files',
    write: null,
  },
  WRITE_FILE: {
    name: 'WRITE_FILE',
    summary: 'Create a text file, or replace all of it. Its directory must exist.',
    risk: 'write',
    args: Type.Object({ path: Path, content: Type.String({ minLength: 1 }) }, closed),
    paths: ['path'],
    trailingSlash: false,
    tool: 'sandbox.write_file',
    write: SANDBOX_FILES,
  },
  CREATE_DIRECTORY: {
    name: 'CREATE_DIRECTORY',
    summary: 'Create one directory. Its parent must exist.',
    risk: 'write',
    args: path,
    paths: ['path'],
    trailingSlash: true,
    tool: 'sandbox.create_directory',
    write: SANDBOX_FILES,
  },
  DELETE_FILE: {
    name: 'DELETE_FILE',
    summary: 'Delete one file.',
    risk: 'destructive',
    args: path,
    paths: ['path'],
    trailingSlash: false,
    tool: 'sandbox.delete_file',
    write: SANDBOX_FILES,
  },
  RENAME_FILE: {
    name: 'RENAME_FILE',
    summary: 'Rename or move one file. The destination must not exist.',
    risk: 'destructive',
    args: Type.Object({ source: Path, destination: Path }, closed),
    paths: ['source', 'destination'],
    trailingSlash: false,
    tool: 'sandbox.rename_file',
    write: SANDBOX_FILES,
  },
} as const satisfies Record<string, ActionDefinition>;
export type ActionName = keyof typeof ACTIONS;
export const ACTION_NAMES = Object.keys(ACTIONS) as readonly ActionName[];

/** The definition of a built-in action; own keys only, so `constructor` is not one. */
export const findAction = (name: string): ActionDefinition | undefined =>
  Object.hasOwn(ACTIONS, name) ? ACTIONS[name as ActionName] : undefined;

// The eight built-in actions of the step contract. An action outside the catalogue does not exist; an action that no
// policy lists is denied. Limits that a policy sets (content bytes, extensions) are in the actions policy.

import Type, { type TObject } from 'typebox';
import type { WriteMode } from './lanes.js';
import { closed } from '../shapes.js';

/** S1-19: what an action can change outside. `none` has no effect outside the pipeline. */
export const RISK_CLASSES = ['none', 'read', 'write', 'destructive'] as const;
/** One of `RISK_CLASSES`. */
export type RiskClass = (typeof RISK_CLASSES)[number];

/** The step limits the length of a path in UTF-8 bytes; this value keeps the schema itself bounded. */
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

/** What the contract fixes about an action: its arguments, its risk, and the run that it needs. */
export interface ActionDefinition {
  readonly name: string;
  readonly summary: string;
  readonly risk: RiskClass;
  readonly args: TObject;
  /** Arguments that are sandbox paths, in the order in which they are checked. */
  readonly paths: readonly string[];
  /** C27: whether a path other than the root may end with a slash. */
  readonly trailingSlash: boolean;
  /** The kind of the mediated run that the action needs; null if it needs none. */
  readonly run_kind: MediatedKind | null;
  /** The tool that a lane must list for the action, if it is always the same; else null. */
  readonly tool: string | null;
  /**
   * The write that the lane must allow, if it is always the same; for a tool_gateway run, the write of its db_write
   * child.
   */
  readonly write: { readonly table: string; readonly mode: WriteMode } | null;
  /** The table that the lane must allow to read, if it is always the same. */
  readonly read: string | null;
  /** Whether two executions with one idempotency key have the effect of one: a failed one may be retried (C54). */
  readonly idempotent: boolean;
  /** Whether the action sends its arguments outside the platform. */
  readonly outside: boolean;
}

/** The kinds of runs that mediate an agent's actions. */
export type MediatedKind = 'tool_gateway' | 'db_write' | 'db_read';

const SANDBOX_FILES = { table: 'sandbox_files', mode: 'upsert' } as const;

const path = Type.Object({ path: Path }, closed);

/** The eight built-in actions by name. */
export const ACTIONS = {
  THINK: {
    name: 'THINK',
    summary: 'Note a thought. Nothing happens.',
    risk: 'none',
    args: Type.Object({}, closed),
    paths: [],
    trailingSlash: false,
    run_kind: null,
    tool: null,
    write: null,
    read: null,
    idempotent: true,
    outside: false,
  },
  FINISH: {
    name: 'FINISH',
    summary: 'End the run with a last word to the user.',
    risk: 'none',
    args: Type.Object({ response: Type.String() }, closed),
    paths: [],
    trailingSlash: false,
    run_kind: null,
    tool: null,
    write: null,
    read: null,
    idempotent: true,
    outside: false,
  },
  READ_FILE: {
    name: 'READ_FILE',
    summary: 'Read a UTF-8 text file.',
    risk: 'read',
    args: path,
    paths: ['path'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.read_file',
    write: null,
    read: null,
    idempotent: true,
    outside: false,
  },
  LIST_FILES: {
    name: 'LIST_FILES',
    summary: 'List a directory.',
    risk: 'read',
    args: path,
    paths: ['path'],
    trailingSlash: true,
    run_kind: 'tool_gateway',
    tool: 'sandbox.list_files',
    write: null,
    read: null,
    idempotent: true,
    outside: false,
  },
  WRITE_FILE: {
    name: 'WRITE_FILE',
    summary: 'Create a text file, or replace all of it. Its directory must exist.',
    risk: 'write',
    args: Type.Object({ path: Path, content: Type.String({ minLength: 1 }) }, closed),
    paths: ['path'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.write_file',
    write: SANDBOX_FILES,
    read: null,
    idempotent: true,
    outside: false,
  },
  CREATE_DIRECTORY: {
    name: 'CREATE_DIRECTORY',
    summary: 'Create one directory. Its parent must exist.',
    risk: 'write',
    args: path,
    paths: ['path'],
    trailingSlash: true,
    run_kind: 'tool_gateway',
    tool: 'sandbox.create_directory',
    write: SANDBOX_FILES,
    read: null,
    idempotent: false,
    outside: false,
  },
  DELETE_FILE: {
    name: 'DELETE_FILE',
    summary: 'Delete one file.',
    risk: 'destructive',
    args: path,
    paths: ['path'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.delete_file',
    write: SANDBOX_FILES,
    read: null,
    idempotent: false,
    outside: false,
  },
  RENAME_FILE: {
    name: 'RENAME_FILE',
    summary: 'Rename or move one file. The destination must not exist.',
    risk: 'destructive',
    args: Type.Object({ source: Path, destination: Path }, closed),
    paths: ['source', 'destination'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.rename_file',
    write: SANDBOX_FILES,
    read: null,
    idempotent: false,
    outside: false,
  },
} as const satisfies Record<string, ActionDefinition>;
/** The name of a built-in action on files. */
export type FileActionName = {
  [Name in keyof typeof ACTIONS]: (typeof ACTIONS)[Name]['paths'] extends readonly [] ? never : Name;
}[keyof typeof ACTIONS];
/** The name of a built-in action. */
export type ActionName = keyof typeof ACTIONS;
/** The names of the built-in actions. */
export const ACTION_NAMES = Object.keys(ACTIONS) as readonly ActionName[];

/** The definition of a built-in action. Only own keys count, so `constructor` is not an action. */
export const findAction = (name: string): ActionDefinition | undefined =>
  Object.hasOwn(ACTIONS, name) ? ACTIONS[name as ActionName] : undefined;

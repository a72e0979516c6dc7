// What the kernel asks the world for, and what the world answers: facts before a decision, results after it.

import Type, { type Static } from 'typebox';
import { EXECUTION_CAUSES, type ExecutionCause } from '../fault.js';
import type { JsonObject } from '../json.js';
import { closed, Nullable, OneOf } from '../shapes.js';

/** Why the sandbox refuses a path that exists: all of these are denied, no exceptions (C29). */
export const REFUSED_KINDS = [
  'symlink',
  'hard_link',
  'fifo',
  'socket',
  'device',
  'other_file_system',
  'name_twin',
] as const;
export type RefusedKind = (typeof REFUSED_KINDS)[number];

/** `inode` and `mtime_ns` are decimal strings: 64-bit numbers do not survive JSON. */
const identityProperties = { inode: Type.String({ maxLength: 24 }), mtime_ns: Type.String({ maxLength: 24 }) };

/** What stands at a sandbox path, gathered race-free just before AUTHORIZE. Host paths never appear. */
export const PathFact = Type.Union([
  Type.Object({ status: Type.Literal('absent') }, closed),
  Type.Object({ status: Type.Literal('no_parent') }, closed),
  /** A middle component is a file, or the last one is and the path ends with a slash. */
  Type.Object({ status: Type.Literal('not_a_directory') }, closed),
  Type.Object({ status: Type.Literal('file'), bytes: Type.Integer({ minimum: 0 }), ...identityProperties }, closed),
  Type.Object({ status: Type.Literal('directory'), ...identityProperties }, closed),
  Type.Object({ status: Type.Literal('refused'), kind: OneOf(REFUSED_KINDS) }, closed),
  Type.Object(
    { status: Type.Literal('error'), cause: OneOf(Object.keys(EXECUTION_CAUSES) as readonly ExecutionCause[]) },
    closed,
  ),
]);
export type PathFact = Static<typeof PathFact>;

/** Bytes of files, and how many files and directories. */
export const SandboxAmount = Type.Object(
  { bytes: Type.Integer({ minimum: 0 }), files: Type.Integer({ minimum: 0 }) },
  closed,
);
export type SandboxAmount = Static<typeof SandboxAmount>;

/** `paths` in the order of the request; `usage` of the whole case sandbox, null when it was not asked for. */
export const SandboxFacts = Type.Object(
  {
    paths: Type.Array(PathFact, { maxItems: 4 }),
    usage: Nullable(SandboxAmount),
  },
  closed,
);
export type SandboxFacts = Static<typeof SandboxFacts>;

export interface GatherRequest {
  readonly case_id: string;
  /** Canonical sandbox paths (`/sandbox/...`). */
  readonly paths: readonly string[];
  /** Whether the quota is asked for (actions that can make the sandbox grow). */
  readonly usage: boolean;
  /** Refuse a name that equals an existing one after NFC and case folding. */
  readonly portable_names: boolean;
}

/** One authorised action, complete: an executor needs nothing else and may reinterpret nothing (S0-53). */
export interface Effect {
  readonly action: string;
  readonly args: JsonObject;
  /** Null where the run has no case: a sandbox or a case-scoped table is out of its reach then. */
  readonly case_id: string | null;
  /** The mediated run that carries the allow. */
  readonly run_id: string;
  /** The same effect has the same key, in every attempt. */
  readonly idempotency_key: string;
  /** SHA-256 of the canonical request (S4-60). */
  readonly request_hash: string;
  /** The before-facts of AUTHORIZE, for settling an unknown outcome (D8). */
  readonly before: readonly PathFact[];
  /** S4-65: whether the lane lets a run that fails leave behind what it had made until then. */
  readonly partial_outputs: boolean;
  readonly limits: { readonly read_bytes_max: number; readonly list_entries_max: number };
}

/**
 * What became of an effect. `failed` means that it certainly did not happen, or ended without success; `unknown` that
 * it may have happened. `partial` is what was made until it failed, where that may be kept.
 * `detail` is for the service log; it is neither recorded nor shown to an agent.
 */
export type EffectResult =
  | { readonly status: 'done'; readonly result: JsonObject }
  | {
      readonly status: 'failed';
      readonly cause: ExecutionCause;
      readonly detail?: string;
      readonly partial?: JsonObject;
    }
  | { readonly status: 'unknown' };

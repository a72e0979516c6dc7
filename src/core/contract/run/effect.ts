// The kernel's commands to the outside and their answers: facts before a decision, results after it.

import Type, { type Static } from 'typebox';
import { EXECUTION_CAUSES, type ExecutionCause } from '../fault.js';
import type { JsonObject } from '../json.js';
import type { CounterFact, CounterQuery } from './counter-fact.js';
import type { DecisionFact, DecisionQuery } from '../policy/decision-points.js';
import { closed, Nullable, OneOf } from '../shapes.js';

/** Kinds of existing paths that the sandbox refuses: all of these are denied without exception (C29). */
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

/** `inode` and `mtime_ns` are decimal strings, because JSON cannot carry 64-bit numbers. */
const identityProperties = { inode: Type.String({ maxLength: 24 }), mtime_ns: Type.String({ maxLength: 24 }) };

/** The file at a sandbox path, examined without races just before AUTHORIZE. Host paths never appear. */
export const PathFact = Type.Union([
  Type.Object({ status: Type.Literal('absent') }, closed),
  Type.Object({ status: Type.Literal('no_parent') }, closed),
  /** A middle component is a file, or the last one is a file and the path ends with a slash. */
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

/** The size of files in bytes, and the number of files and directories. */
export const SandboxAmount = Type.Object(
  { bytes: Type.Integer({ minimum: 0 }), files: Type.Integer({ minimum: 0 }) },
  closed,
);
export type SandboxAmount = Static<typeof SandboxAmount>;

/** `paths` in the order of the request; `usage` of the whole case sandbox, null if it was not requested. */
export const SandboxFacts = Type.Object(
  {
    paths: Type.Array(PathFact, { maxItems: 4 }),
    usage: Nullable(SandboxAmount),
  },
  closed,
);
export type SandboxFacts = Static<typeof SandboxFacts>;

/** A request for facts about the sandbox, counters and decision points, on which a verdict depends. */
export interface GatherRequest {
  /** Null only without paths and usage. */
  readonly case_id: string | null;
  /** Canonical sandbox paths (`/sandbox/...`). */
  readonly paths: readonly string[];
  /** Whether the usage is requested (for actions that can make the sandbox grow). */
  readonly usage: boolean;
  /** Whether to refuse a name that equals an existing one after NFC and case folding. */
  readonly portable_names: boolean;
  /** Absent: none. */
  readonly counters?: readonly CounterQuery[];
  /** Absent: none. */
  readonly decisions?: readonly DecisionQuery[];
  /** With questions to decision points: the mediated run that waits for the answers. */
  readonly mediated_run_id?: string;
}

/** The part of it that a sandbox answers. */
export type SandboxRequest = Omit<GatherRequest, 'case_id' | 'counters' | 'decisions' | 'mediated_run_id'> & {
  readonly case_id: string;
};

/** What a verdict depends on. */
export interface GatheredFacts extends SandboxFacts {
  /** In the order of the request; absent if it has none. */
  readonly counters?: readonly CounterFact[];
  /** What decision points answered; absent if the request has none. */
  readonly decisions?: readonly DecisionFact[];
}

/** One authorized action, complete: an executor needs nothing else and may reinterpret nothing (S0-53). */
export interface Effect {
  readonly action: string;
  readonly args: JsonObject;
  /** Null if the run has no case: it cannot reach a sandbox or a case-scoped table then. */
  readonly case_id: string | null;
  /** The mediated run that has the allow. */
  readonly run_id: string;
  /** Equal in every attempt of the same effect. */
  readonly idempotency_key: string;
  /** SHA-256 of the canonical request (S4-60). */
  readonly request_hash: string;
  /** The facts of AUTHORIZE, used to settle an unknown outcome (D8). */
  readonly before: readonly PathFact[];
  /** S4-65: whether the lane lets a failed run leave partial output behind. */
  readonly partial_outputs: boolean;
  /** C95: whether another execution with the same key has no further effect, so that an error is no unknown outcome. */
  readonly repeatable?: boolean;
  /** C94: whether the agent sees the words of a tool about its failure. */
  readonly explained?: boolean;
  readonly limits: { readonly read_bytes_max: number; readonly list_entries_max: number };
}

/**
 * The result of an effect. `failed`: it certainly did not happen, or ended without success. `unknown`: it may have
 * happened. `partial` is the output until the failure, where the lane permits it. `detail` is for the service log; it
 * is neither recorded nor shown to an agent. `explanation` is what a tool says of its failure; it is recorded only if
 * the effect is `explained`.
 */
export type EffectResult =
  | { readonly status: 'done'; readonly result: JsonObject }
  | {
      readonly status: 'failed';
      readonly cause: ExecutionCause;
      readonly detail?: string;
      readonly partial?: JsonObject;
      readonly explanation?: string;
    }
  | { readonly status: 'unknown' };

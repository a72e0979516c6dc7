// One event of a coding agent, in a vocabulary that all clients share, and the answer to it. A dialect translates both
// (`dialect.ts`); the gate decides (`src/features/hooks/gate`).

import type { JsonObject } from '../../core/contract/json.js';

/** The coding agents whose hooks are understood. */
export const CLIENTS = ['claude-code', 'codex', 'gemini-cli', 'opencode', 'cline', 'cursor'] as const;
/** One of `CLIENTS`. */
export type Client = (typeof CLIENTS)[number];

/** Where an event comes from. The client says so; nothing proves it. */
export interface HookOrigin {
  /** The client's id of the session; 1 to 128 printable ASCII characters. */
  readonly session: string;
  /** The client's id of the subagent; null for the main agent. 1 to 64 printable ASCII characters. */
  readonly agent: string | null;
  /** The working directory of the client, an absolute path; null if the client gives none. */
  readonly cwd: string | null;
}

/** A call of a tool of the client, as a call of a registered tool (`native-calls.ts`). */
export interface NativeCall {
  /** The name of the registered tool. */
  readonly tool: string;
  /** The input, which conforms to the schema of the tool. Paths are as the client gave them. */
  readonly input: JsonObject;
  /** The client's id of the call; null if the client gives none. 1 to 128 printable ASCII characters. */
  readonly call_id: string | null;
}

/** The outcome of a call, as the client reports it. */
export interface ReportedOutcome {
  /** `unknown`: the client does not tell whether the call has succeeded. */
  readonly status: 'done' | 'failed' | 'unknown';
  /** What the client tells of the result; null if it tells nothing. */
  readonly result: JsonObject | null;
}

/** An event of a client. */
export type HookEvent = HookOrigin &
  (
    | { readonly kind: 'call'; readonly call: NativeCall }
    | { readonly kind: 'outcome'; readonly call: NativeCall; readonly outcome: ReportedOutcome }
    | { readonly kind: 'session_start' }
    | { readonly kind: 'session_end' }
    /** A subagent has ended. */
    | { readonly kind: 'agent_end' }
    /** An event that needs no decision and no record. */
    | { readonly kind: 'other' }
  );

/** Why a call was denied without a decision. */
export const UNDECIDED_REASONS = [
  'no_service', // the service is away, or does not answer in time
  'too_long',
  'unreadable', // what is no event of its client, or cannot be read without its secrets
  'failed', // the service could not decide
  'refused', // the session is not open: its client is unsafe, policy has ended it, or it belongs to another project
] as const;
/** One of `UNDECIDED_REASONS`. */
export type UndecidedReason = (typeof UNDECIDED_REASONS)[number];

/** The answer to an event. */
export type HookAnswer =
  /** The client may execute the call; `run_id` is the run that waits for the outcome. */
  | { readonly decision: 'allow'; readonly run_id: string }
  /** The client must not execute the call. `reason` is for the model: 1 to 1,000 characters. */
  | {
      readonly decision: 'deny';
      readonly reason: string;
      /** Why nothing is recorded of the call; absent if its denial is recorded. */
      readonly undecided?: UndecidedReason;
    }
  /** The call needs an approval that is not granted yet. `reason` is for the model. */
  | { readonly decision: 'pending'; readonly reason: string }
  /** There is nothing to decide. `noted`: the session has ended, and what the hook has counted in it is recorded. */
  | { readonly decision: 'none'; readonly noted?: true };

// What machines emit: ledger entries, commands to the engine, and replies to agents. They use `emit`, and the kernel
// collects it; machines have no other side effect.

import type { Effect, GatherRequest } from '../src/core/contract/run/effect.js';
import type { FeatureEntries, ProposalMark } from '../src/core/contract/run/entry.js';
import type { TerminalState } from '../src/core/contract/run/run-context.js';
import type { StepTraceDraft } from '../src/core/contract/run/step-trace.js';
import type { AuditDraft, RunCreatedDraft } from '../src/core/run/audit-events.js';

/** Work for the engine. Its result comes back as an input to the same run. */
export type Command =
  | { readonly kind: 'gather'; readonly run_id: string; readonly request: GatherRequest }
  | {
      readonly kind: 'perform';
      readonly run_id: string;
      readonly effect: Effect;
      /**
       * Runs before the commit of its decision, which then includes the outcome: a local read, which changes nothing
       * (C78), or a write into the ledger's own database, which the same commit makes durable.
       */
      readonly in_commit: boolean;
    };

/** The one response to a proposal, or the reply to a session command. */
export interface Reply {
  readonly run_id: string;
  readonly input_id: string;
  readonly response: string;
}

/** How a run ended. */
export interface RunTermination {
  readonly run_id: string;
  readonly state: TerminalState;
  readonly reason: string;
}

/** The kernel sets `seq`. */
export type MarkDraft = { -readonly [K in keyof ProposalMark]: ProposalMark[K] };

/** An entry of a feature. The kernel sets its `timestamp_utc`. */
type FeatureEmission = {
  readonly [T in keyof FeatureEntries]: {
    readonly type: 'feature_entry';
    readonly entry_type: T;
    readonly body: { -readonly [K in keyof FeatureEntries[T]]: FeatureEntries[T][K] };
  };
}[keyof FeatureEntries];

/** What a machine emits while it takes one event. The kernel turns emissions into a decision. */
export type Emission =
  | { readonly type: 'run_created'; readonly body: RunCreatedDraft }
  | { readonly type: 'audit_event'; readonly body: AuditDraft }
  | { readonly type: 'step_trace'; readonly body: StepTraceDraft }
  | FeatureEmission
  | { readonly type: 'command'; readonly command: Command }
  | { readonly type: 'reply'; readonly reply: Reply }
  | { readonly type: 'mark'; readonly mark: MarkDraft }
  /** Wakes this run at or after a time; a later timer of the same run replaces it. */
  | { readonly type: 'timer'; readonly run_id: string; readonly at: string }
  /** The outcome of this run's action stays unknown, although the platform has not executed it (U-08). */
  | {
      readonly type: 'unknown';
      readonly run_id: string;
      readonly request_hash: string;
      readonly idempotency_key: string;
    }
  /** This run has entered a terminal state. */
  | ({ readonly type: 'ended' } & RunTermination);

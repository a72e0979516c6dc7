// What a mediated run remembers: its request, the approval that it waits for, and its outcome.

import type { ApprovalBallot, ApprovalBook, ApprovalRule } from '../src/core/contract/run/approval.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Effect } from '../src/core/contract/run/effect.js';
import type { RunCreated } from '../src/core/contract/run/entry.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../src/core/contract/fault.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { PrivilegedRequest } from '../src/core/policy/authorize-run.js';
import type { Verdict } from '../src/core/policy/verdict.js';
import type { RunEnd } from '../src/core/run/audit-events.js';
import { failureEnd, type MediatedOutcome, type RunMemory } from './run.js';

/** The request of the run. A tool_gateway run passes the same request to its db_write child. */
export interface MediatedRequest {
  readonly privileged: PrivilegedRequest;
  /** SHA-256 of the canonical request (S4-60). */
  readonly hash: string;
  readonly effect: Omit<Effect, 'run_id' | 'idempotency_key'>;
  /** For a retry, the key of the first attempt; null for a first attempt, whose key is its own run id. */
  readonly idempotency_key: string | null;
  readonly in_commit: boolean;
  /** Whether two executions with one key have the effect of one. If so, an unknown outcome may be retried. */
  readonly idempotent: boolean;
  readonly inputs: readonly ArtifactRef[];
  /** The artifact of a successful write, if it is known beforehand. */
  readonly written: ArtifactRef | null;
  readonly retry: RunCreated['retry'];
  /** The emergency overlay under which the request was allowed; it also applies to a child run. */
  readonly overlay: OverlayFact | null;
  /** The time by which the caller must report the outcome. Absent: the platform executes the request (U-08). */
  readonly report_due?: string;
}

/** The approval that the run needs before it enters `running`, and the votes so far (D7). */
export interface RequiredApproval {
  readonly digest: string;
  readonly rule: ApprovalRule;
  readonly book: ApprovalBook;
}

/** The answer of approvers to requests of a run. */
export interface VoteEvent {
  readonly type: 'VOTE';
  readonly ballot: ApprovalBallot;
  readonly overlay: OverlayFact | null;
}

export interface MediatedMemory extends RunMemory {
  readonly request: MediatedRequest;
  readonly done: MediatedOutcome;
  readonly approval: RequiredApproval | null;
  /** The verdict on a run that has waited for approval. */
  readonly verdict: Verdict | null;
}

export const executionFailureEnd = (cause: ExecutionCause, idempotent: boolean): RunEnd =>
  failureEnd(
    cause,
    EXECUTION_CAUSES[cause].message,
    EXECUTION_CAUSES[cause].retryable || (isUnknown(cause) && idempotent),
  );

const isUnknown = (cause: ExecutionCause): boolean => cause === 'OUTCOME_UNKNOWN';

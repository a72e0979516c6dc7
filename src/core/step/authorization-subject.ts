// The part of a step that AUTHORIZE reads, and its result so far.

import type { ApprovalBook, ApprovalObligation } from '../contract/run/approval.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { PathFact } from '../contract/run/effect.js';
import type { JsonObject } from '../contract/json.js';
import type { Label } from '../contract/policy/labels.js';
import type { OverlayFact } from '../contract/policy/overlay.js';
import type { Exposure } from '../contract/run/response.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { Verdict } from '../policy/verdict.js';

/** The result of AUTHORIZE so far: no verdict while it waits for facts. */
export interface Authorization {
  readonly verdict: Verdict | null;
  /** The canonical arguments, once allowed. */
  readonly args: JsonObject | null;
  /** The files at the paths when it was allowed (D8). */
  readonly before: readonly PathFact[];
  /** The digest that approvers vote on; null if the action needs no approval (D7). */
  readonly digest: string | null;
  /** What conditions ask of the approvers, with the policy's own rule; absent if no condition asks for an approval. */
  readonly obligation?: ApprovalObligation;
}

/** The initial state. */
export const UNDECIDED_AUTHORIZATION: Authorization = { verdict: null, args: null, before: [], digest: null };

/** The part of a step that AUTHORIZE reads; reasoning is not part of it (S0-67). */
export interface AuthorizationSubject {
  readonly agent: RunContext;
  readonly action: string | null;
  readonly args: JsonObject | null;
  readonly mediated_run_id: string;
  readonly payload: ArtifactRef;
  readonly exposure?: Exposure;
  readonly received_at: string;
  readonly authorization: Authorization;
  readonly label: Label;
  readonly overlay: OverlayFact | null;
  readonly approvals: ApprovalBook;
  /** Hashes of requests whose outcome is unknown. */
  readonly unsettled: readonly string[];
}

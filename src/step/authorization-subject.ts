// What of a step AUTHORIZE looks at, and how far it has come.

import type { ApprovalBook } from '../contract/run/approval.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { PathFact } from '../contract/run/effect.js';
import type { JsonObject } from '../contract/json.js';
import type { Label } from '../contract/policy/labels.js';
import type { OverlayFact } from '../contract/policy/overlay.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { Verdict } from '../policy/verdict.js';

/** How far AUTHORIZE has come: no verdict while it waits for facts. */
export interface Authorization {
  readonly verdict: Verdict | null;
  /** The canonical arguments, once allowed. */
  readonly args: JsonObject | null;
  /** What stood at the paths when it was allowed (D8). */
  readonly before: readonly PathFact[];
  /** Of an action that needs people's approval: what exactly they approve (D7). */
  readonly digest: string | null;
}

/** Nothing is decided yet. */
export const UNDECIDED_AUTHORIZATION: Authorization = { verdict: null, args: null, before: [], digest: null };

/** What of a step AUTHORIZE looks at; reasoning is not part of it (S0-67). */
export interface AuthorizationSubject {
  readonly agent: RunContext;
  readonly action: string | null;
  readonly args: JsonObject | null;
  readonly mediated_run_id: string;
  readonly payload: ArtifactRef;
  readonly received_at: string;
  readonly authorization: Authorization;
  readonly label: Label;
  readonly overlay: OverlayFact | null;
  readonly approvals: ApprovalBook;
  /** Hashes of requests whose outcome nobody knows. */
  readonly unsettled: readonly string[];
}

// A request as the schedule sees it.

import type { WorkKind } from './admission-limits.js';
import type { TokenShare } from './token-shares.js';

/** What a client wants to have done. */
export interface WorkDemand {
  readonly token: string;
  /** The connection that it came over: any object that is the same for all of its requests. */
  readonly connection: object;
  readonly kind: WorkKind;
  /** Bytes that its body may have. */
  readonly bytes: number;
}

/** Why a request is refused: its connection or token has its limit, or all together have. */
export type RefusalCause = 'connection' | 'connections' | 'token' | 'service';
export interface AdmissionRefusal {
  readonly cause: RefusalCause;
  readonly retryMs: number;
}

/** `attached`: it is no request, and only its slices are scheduled. */
export type RequestState = 'queued' | 'running' | 'refused' | 'left' | 'attached';

/** A request, from when it comes until its work has ended. */
export interface ScheduledRequest extends WorkDemand {
  readonly share: TokenShare;
  readonly deadline: number;
  state: RequestState;
  refusal: AdmissionRefusal | null;
  /** Whether it runs as that of a modest token. */
  modest: boolean;
}

/** Requests so far, by what became of them, and those that run and wait now. */
export interface AdmissionCounts {
  readonly admitted: Readonly<Record<WorkKind, number>>;
  readonly queued: Readonly<Record<WorkKind, number>>;
  readonly refused: Readonly<Record<RefusalCause, number>>;
  readonly running: number;
  readonly waiting: number;
}

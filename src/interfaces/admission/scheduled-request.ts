// A request as the schedule sees it.

import type { WorkKind } from './admission-limits.js';
import type { TokenShare } from './token-shares.js';

/** The demand of a request. */
export interface WorkDemand {
  readonly token: string;
  /** The connection: any object that is the same for all requests of the connection. */
  readonly connection: object;
  readonly kind: WorkKind;
  /** The size limit of its body in bytes. */
  readonly bytes: number;
}

/** Why a request is refused: its connection, its token, or the whole service has reached a limit. */
export type RefusalCause = 'connection' | 'connections' | 'token' | 'service';
export interface AdmissionRefusal {
  readonly cause: RefusalCause;
  readonly retryMs: number;
}

/** `attached`: work that is not a request; only its slices are scheduled. */
type RequestState = 'queued' | 'running' | 'refused' | 'left' | 'attached';

/** A request, from its arrival until its work has ended. */
export interface ScheduledRequest extends WorkDemand {
  readonly share: TokenShare;
  readonly deadline: number;
  state: RequestState;
  refusal: AdmissionRefusal | null;
  /** Whether it runs as a request of a modest token. */
  modest: boolean;
}

/** Counts of requests so far by outcome, and of those that run and wait now. */
export interface AdmissionCounts {
  readonly admitted: Readonly<Record<WorkKind, number>>;
  readonly queued: Readonly<Record<WorkKind, number>>;
  readonly refused: Readonly<Record<RefusalCause, number>>;
  readonly running: number;
  readonly waiting: number;
}

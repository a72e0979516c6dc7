// The source of the page's ledger: a service, or the file that contains the page. Views use only this interface.

import type {
  Chart,
  Course,
  EventDetails,
  LedgerInfo,
  RowPage,
  StepStory,
  DecisionExplanation,
} from '../../../../core/contract/inspection/inspection.js';
import type { SessionView } from '../../contract/session-view.js';

/**
 * `none`: no connection yet. `closed`: a file, which never grows. `other`: the same address now serves another ledger.
 */
export type FeedConnection = 'connecting' | 'none' | 'live' | 'lost' | 'paused' | 'refused' | 'other' | 'closed';

export interface FeedListener {
  /** Pages arrive in order, one at a time: the next page waits for the returned promise. */
  readonly onPage: (page: RowPage) => Promise<void>;
  readonly onConnection: (state: FeedConnection) => void;
  /** The first entry to send. Queried before each attempt. */
  readonly from: () => number;
  /** The only ledger to accept; null accepts any. Queried before each attempt. */
  readonly ledger: string | null;
}

export interface Feed {
  info(): Promise<LedgerInfo>;
  rows(from: number, to: number): Promise<RowPage>;
  entries(from: number, to: number): Promise<readonly string[]>;
  event(at: number): Promise<EventDetails | null>;
  artifact(at: number, sha256: string): Promise<Uint8Array<ArrayBuffer> | null>;
  course(run_id: string, after: number): Promise<Course | null>;
  chart(hash: string): Promise<Chart | null>;
  step(run_id: string, step: number): Promise<StepStory | null>;
  why(at: number): Promise<DecisionExplanation | null>;
  session(session_id: string, at: number | null): Promise<SessionView | null>;
  /** The clock of the service in milliseconds since 1970; null without a service. The reader's clock may be wrong. */
  now(): number | null;
  /** Follows new entries until the signal aborts. */
  follow(listener: FeedListener, until: AbortSignal): Promise<void>;
}

/** A refusal of the service, with the text of its problem document. */
export class FeedError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'FeedError';
    this.status = status;
    this.code = code;
  }
}

/** Why access is refused: the page has no token, an invalid one, or one without the right. */
export type AccessProblem = 'absent' | 'wrong' | 'right';

/** The kind of an access refusal; null for any other error, which a retry may solve. */
export function toAccessProblem(error: unknown): AccessProblem | null {
  if (!(error instanceof FeedError)) return null;
  if (error.status === 401) return error.code === TOKEN_ABSENT ? 'absent' : 'wrong';
  return error.status === 403 ? 'right' : null;
}
/** The text of an error for a reader. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The code of a refusal without a token. */
export const TOKEN_ABSENT = 'TOKEN_ABSENT';

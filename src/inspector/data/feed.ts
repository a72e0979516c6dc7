// Where the page has its ledger from: a service, or the file that the page itself is. Whoever draws asks only this.

import type {
  Chart,
  Course,
  EventDetails,
  LedgerInfo,
  RowPage,
  SessionView,
  StepStory,
  DecisionExplanation,
} from '../../contract/inspection/inspection.js';

/**
 * `none`: it never came about. `closed` is a file: nothing will come. `other`: behind the same address there is another
 * ledger now.
 */
export type FeedConnection = 'connecting' | 'none' | 'live' | 'lost' | 'paused' | 'refused' | 'other' | 'closed';

export interface FeedListener {
  /** Pages come in order, one at a time: the next one waits for what this one returns. */
  readonly onPage: (page: RowPage) => Promise<void>;
  readonly onConnection: (state: FeedConnection) => void;
  /** From which entry on. Asked before every try. */
  readonly from: () => number;
  /** Of which ledger alone. Looked at before every try; null takes any. */
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
  /** Follows what is written from now on, until the signal ends it. */
  follow(listener: FeedListener, until: AbortSignal): Promise<void>;
}

/** What the service refused, in the words of its problem document. */
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

/** Why nobody is let in: no token came with the page, it is none that holds, or it has not the right. */
export type AccessProblem = 'absent' | 'wrong' | 'right';

/** What kind of refusal it is; null for anything else that went wrong: to ask again may help. */
export function toAccessProblem(error: unknown): AccessProblem | null {
  if (!(error instanceof FeedError)) return null;
  if (error.status === 401) return error.code === TOKEN_ABSENT ? 'absent' : 'wrong';
  return error.status === 403 ? 'right' : null;
}
/** The code of a refusal of whoever came without a token. */
export const TOKEN_ABSENT = 'TOKEN_ABSENT';

// What the clients of a case asked, and what they know of the outcome.

/** One request of an agent. */
export interface Operation {
  readonly run_id: string;
  readonly input_id: string;
  readonly proposal_id: string;
  readonly payload: string;
  readonly case_id: string;
  readonly kind: 'think' | 'read' | 'create' | 'replace' | 'tool';
  /** The file of the sandbox that it writes, without `/sandbox/`; otherwise null. */
  readonly path: string | null;
  /** What it writes, or what its tool notes: unique. */
  readonly what: string;
  /** In ms of the monotonic clock of the machine. */
  readonly invokedAt: number;
  answeredAt: number;
  /** `ok`: the client has the response. `unknown`: it has no answer. */
  outcome: 'ok' | 'unknown';
  /** The response as it was sent; null if unknown. */
  response: string | null;
  /** How often it was sent. */
  sends: number;
  /** Whether a worker has answered that the run has ended. */
  hasRunEnded: boolean;
}

/** What the clients of a case have done. */
export interface History {
  readonly operations: Operation[];
  /** The runs that were started, with their case. */
  readonly runs: { readonly run_id: string; readonly case_id: string }[];
  /** How many operations are `ok`. */
  answered: number;
  /** Longest time until an answer, in ms. */
  slowestMs: number;
}

// How much of the service one connection, one token, and all of them together may use.

/** Kinds of work. Each kind has its own slots, so that none can exhaust those of another. */
export const WORK_KINDS = ['live', 'step', 'read', 'task'] as const;

/** `live`: health and metrics. `step`: proposals and MCP. `read`: the ledger. `task`: promotions, exports. */
export type WorkKind = (typeof WORK_KINDS)[number];

/** The limits of one kind of request. */
export interface KindLimits {
  /** Requests that run at the same time, of all tokens. */
  readonly running: number;
  /** Requests that run at the same time, of one token. */
  readonly runningPerToken: number;
  /** Milliseconds that a request may wait before it is refused. */
  readonly queueMs: number;
  /** The charge of a request when it starts, in milliseconds of work. */
  readonly cost: number;
}

/** Every limit of the admission controller. Times are milliseconds, costs are milliseconds of work. */
export interface AdmissionLimits {
  readonly kinds: Readonly<Record<WorkKind, KindLimits>>;
  /** Requests of one connection without an answer; at least 2. With one more the connection is closed. */
  readonly requestsPerConnection: number;
  /** Connections of one token that have a request without an answer. */
  readonly connectionsPerToken: number;
  /** Requests that wait, of all tokens and of one. */
  readonly queued: number;
  readonly queuedPerToken: number;
  /** Bytes of request bodies that are read at the same time, of all tokens and of one. */
  readonly bodyBytes: number;
  readonly bodyBytesPerToken: number;
  /** Budget of one token for reads and tasks: how fast the cost is refunded, and how much may be used at once. */
  readonly costPerSecond: number;
  readonly costBurst: number;
  /** A token with at most so many steps outstanding is modest: its steps run before those of tokens with more. */
  readonly modestSteps: number;
  /** Steps a second for which a token stays modest. */
  readonly modestStepsPerSecond: number;
  /** The share of the time that all other work gets while a modest token works, from 0 to 1. */
  readonly bulkShare: number;
  /** Milliseconds after the end of a modest token's request for which it still counts as working. */
  readonly modestAfterMs: number;
  /** Steps that another token runs at the same time while a modest token has worked within `sharedAfterMs`. */
  readonly bulkSteps: number;
  readonly sharedAfterMs: number;
  /** Milliseconds that a read runs before it yields to other work. */
  readonly sliceMs: number;
  /** Milliseconds after which a response is aborted if its client does not read it. */
  readonly drainMs: number;
  /** Limits of failed authentications of one address: how many at once, and how many per second after that. */
  readonly failures: number;
  readonly failuresPerSecond: number;
  /** MCP sessions of one token, and of all. */
  readonly mcpSessionsPerToken: number;
  readonly mcpSessions: number;
  /** The weight of a token against other tokens, by token id. Default: 1. */
  readonly weights: Readonly<Record<string, number>>;
}

/** Limits that an operator may set; those of the kinds of work individually. */
export type AdmissionOptions = Partial<Omit<AdmissionLimits, 'kinds'>> & {
  readonly kinds?: Readonly<Partial<Record<WorkKind, Partial<KindLimits>>>>;
};

const MEBIBYTE = 1_048_576;

/** The limits of the service where no option sets another. Names that end in `Ms` are milliseconds. */
export const DEFAULT_LIMITS: AdmissionLimits = {
  kinds: {
    live: { running: 16, runningPerToken: 4, queueMs: 2_000, cost: 0.3 },
    step: { running: 128, runningPerToken: 64, queueMs: 10_000, cost: 1 },
    read: { running: 8, runningPerToken: 2, queueMs: 10_000, cost: 1 },
    task: { running: 4, runningPerToken: 1, queueMs: 30_000, cost: 5 },
  },
  requestsPerConnection: 8,
  connectionsPerToken: 96,
  queued: 2_048,
  queuedPerToken: 512,
  bodyBytes: 24 * MEBIBYTE,
  bodyBytesPerToken: 8 * MEBIBYTE,
  costPerSecond: 500,
  costBurst: 10_000,
  modestSteps: 2,
  modestStepsPerSecond: 1_000,
  bulkShare: 0.25,
  modestAfterMs: 5,
  bulkSteps: 8,
  sharedAfterMs: 1_000,
  sliceMs: 2,
  drainMs: 10_000,
  failures: 20,
  failuresPerSecond: 1,
  mcpSessionsPerToken: 32,
  mcpSessions: 256,
  weights: {},
};

/** The limits of a service: the defaults, overridden by the options of its operator. */
export function resolveAdmissionLimits({ kinds = {}, ...options }: AdmissionOptions = {}): AdmissionLimits {
  const { live, step, read, task } = DEFAULT_LIMITS.kinds;
  return {
    ...DEFAULT_LIMITS,
    ...options,
    kinds: {
      live: { ...live, ...kinds.live },
      step: { ...step, ...kinds.step },
      read: { ...read, ...kinds.read },
      task: { ...task, ...kinds.task },
    },
  };
}

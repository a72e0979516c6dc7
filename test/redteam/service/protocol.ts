// What the programs of the campaign tell each other.

/** What can be made wrong in the attacked service on purpose, so that the campaign has to find it. */
export const FAULTS = ['no-token-bound', 'no-backpressure', 'no-bulk-lane'] as const;
export type Fault = (typeof FAULTS)[number];

/** How the attacked service is started, in its argument. */
export interface ServerOptions {
  readonly folder: string;
  /** Entries of the ledger before it serves. */
  readonly entries: number;
  readonly fault: Fault | null;
}

/** Its first line on stdout; the others tell what it has held for one answer, in bytes: `{"held":131072}`. */
export interface Served {
  readonly url: string;
  readonly tokens: Readonly<Record<'hostile' | 'victim' | 'probe', string>>;
}

/** What the victim and the probe are started with. */
export interface ClientOptions {
  readonly url: string;
  readonly token: string;
  readonly ms: number;
}

/** What they measured: milliseconds of each answer, in order of length, and answers that were none. */
export interface Measured {
  readonly times: readonly number[];
  readonly failures: number;
  /** How long it took as a whole. */
  readonly ms: number;
}

export const ATTACKS = ['pipelined-runs', 'unread-entries', 'unread-streams', 'large-bodies', 'steps-and-mcp'] as const;
export type Attack = (typeof ATTACKS)[number];

export interface AttackerOptions extends ClientOptions {
  readonly seed: number;
  readonly attacks: readonly Attack[];
}

/** The argument of a program, as its starter wrote it. */
export const argument = (): unknown => JSON.parse(process.argv[2] ?? '{}');

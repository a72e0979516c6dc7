// The messages between the programs of the campaign.

/** Planted faults of the attacked service, which the campaign has to find. */
export const FAULTS = ['no-token-bound', 'no-backpressure', 'no-bulk-lane'] as const;
export type Fault = (typeof FAULTS)[number];

/** The argument with which the attacked service is started. */
export interface ServerOptions {
  readonly folder: string;
  /** Entries of the ledger before it serves. */
  readonly entries: number;
  readonly fault: Fault | null;
}

/** Its first line on stdout; later lines report how many bytes it holds for one response: `{"held":131072}`. */
export interface Served {
  readonly url: string;
  readonly tokens: Readonly<Record<'hostile' | 'victim' | 'probe', string>>;
}

/** The arguments of the victim and the probe. */
export interface ClientOptions {
  readonly url: string;
  readonly token: string;
  readonly ms: number;
}

/** Their measurements: milliseconds of each response, sorted, and the number of failed requests. */
export interface Measured {
  readonly times: readonly number[];
  readonly failures: number;
  /** The total duration. */
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

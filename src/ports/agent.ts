import type { StepResponse } from '../contract/run/response.js';

/** Whatever proposes: a model behind a provider, a program, a person. It is not trusted (S2-04, S2-13). */
export interface Agent {
  /**
   * Says what to do next. `signal` is aborted as soon as nobody waits for it any more. It may throw anything: whoever
   * asks stops then, and nothing is proposed.
   */
  propose(turn: AgentTurn, signal: AbortSignal): Promise<AgentProposal>;
}

export interface AgentProposal {
  /** Exactly what the agent said, unmodified, fences and all: what it is worth, the pipeline decides. */
  readonly raw: string | Uint8Array;
  /** What saying it has cost, a whole number; null where the agent cannot tell. */
  readonly tokens: number | null;
}

/** Everything that an agent is told. */
export interface AgentTurn {
  /** What it may do, and how a proposal looks. The same text in every turn of a run. */
  readonly instructions: string;
  readonly schemas: AgentSchemas;
  readonly task: string | null;
  /** What was said before, oldest first, cut to a limit of bytes. */
  readonly conversation: readonly AgentExchange[];
  /** The answer to its last proposal, whole; null in the first turn. */
  readonly last_response: StepResponse | null;
  /** An id that no proposal has: models are bad at making them up. */
  readonly fresh_id: string;
}

/** One proposal and its response, as texts. A text that was too long ends in a note that says so. */
export interface AgentExchange {
  readonly proposal: string;
  /** The response as JSON. */
  readonly response: string;
  /** Exchanges that were left out directly before this one. */
  readonly left_out: number;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What an agent may propose in its lane, each with its JSON Schema. What is not here would be denied. */
export interface AgentSchemas {
  readonly proposal: JsonSchema;
  readonly actions: readonly {
    readonly action: string;
    readonly summary: string;
    readonly risk: string;
    readonly args: JsonSchema;
    /** Per path argument, the endings that the policy allows. */
    readonly extensions?: Readonly<Record<string, readonly string[]>>;
  }[];
  /** What CALL_TOOL may call. */
  readonly tools: readonly { readonly name: string; readonly summary: string; readonly input: JsonSchema }[];
  /** What WRITE_RECORD and READ_RECORDS may name. */
  readonly targets: readonly {
    readonly name: string;
    readonly summary: string;
    readonly record: JsonSchema;
    readonly key: readonly string[];
    readonly modes: readonly string[];
    readonly readable: boolean;
  }[];
  readonly limits: Readonly<Record<string, number>>;
  readonly response: JsonSchema;
}

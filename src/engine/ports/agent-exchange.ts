import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { StepResponse } from '../../core/contract/run/response.js';

/** A source of proposals: a model behind a provider, a program, or a person. It is not trusted (S2-04, S2-13). */
export interface Agent {
  /**
   * Proposes the next action. `signal` is aborted when the result is no longer needed. It may throw anything; the
   * caller then stops and submits no proposal.
   */
  propose(turn: AgentTurn, signal: AbortSignal): Promise<AgentProposal>;
}

/** The answer of an agent to one turn. */
export interface AgentProposal {
  /** Exactly what the agent returned, unmodified, including code fences. The pipeline validates it. */
  readonly raw: string | Uint8Array;
  /** Tokens that this proposal used, a whole number; null if unknown. */
  readonly tokens: number | null;
}

/** The complete input of an agent for one turn. */
export interface AgentTurn {
  /** What the agent may do, and the format of a proposal. The text is the same in every turn of a run. */
  readonly instructions: string;
  readonly schemas: AgentSchemas;
  readonly task: string | null;
  /** Earlier exchanges, oldest first, truncated to a limit of bytes. */
  readonly conversation: readonly AgentExchange[];
  /** The complete response to its last proposal; null in the first turn. */
  readonly last_response: StepResponse | null;
  /** An id that no proposal has used: models are bad at inventing ids. */
  readonly fresh_id: string;
}

/** One proposal and its response, as texts. A truncated text ends with a note about the truncation. */
export interface AgentExchange {
  readonly proposal: string;
  /** The response as JSON. */
  readonly response: string;
  /** Number of exchanges omitted directly before this one. */
  readonly left_out: number;
  /** What became of the request for approval that the proposal made. Absent: it made none. */
  readonly request?: RequestOutcome;
}

/** What people have decided about a request, or that it has expired. An approved one is proposed again by the loop. */
export type RequestOutcome = 'approved' | 'rejected' | 'expired';

/** The actions that an agent may propose in its lane, each with its JSON Schema. Any other action would be denied. */
export interface AgentSchemas {
  readonly proposal: JsonSchema;
  readonly actions: readonly {
    readonly action: string;
    readonly summary: string;
    readonly risk: string;
    readonly args: JsonSchema;
    /** For each path argument, the extensions that the policy allows. */
    readonly extensions?: Readonly<Record<string, readonly string[]>>;
  }[];
  /** The tools that CALL_TOOL may call. */
  readonly tools: readonly { readonly name: string; readonly summary: string; readonly input: JsonSchema }[];
  /** The targets that WRITE_RECORD and READ_RECORDS may name. */
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

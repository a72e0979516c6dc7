import type { JsonObject } from '../../../core/contract/json.js';
import type { TraceCarrier } from '../../../core/contract/trace-context.js';

/** One call of a tool. It must be sent at most once. */
export interface UpstreamCall {
  /** The tool name at the server. */
  readonly tool: string;
  readonly input: JsonObject;
  /** Passed on to the server, which may use it to deduplicate. */
  readonly idempotency_key: string;
  /** The place of the call in its trace, for the server. */
  readonly trace?: TraceCarrier;
}

/**
 * A connection to an MCP server. Everything received is untrusted: it was parsed strictly, is bounded in size and
 * depth, and is otherwise as the server sent it.
 */
export interface UpstreamLink {
  /** False once the link is dead. It does not recover; connect again. */
  readonly isOpen: boolean;
  /** How often the server has notified that its list of tools has changed. */
  readonly toolListChanges: number;
  /** One page of the server's tools. Throws unless the server returns a result. */
  listTools(cursor: string | null, signal: AbortSignal): Promise<JsonObject>;
  /**
   * Throws NotExecuted if the server certainly has not received the request, or reports that it has not started it;
   * Failed if it reports that the call failed; any other error if the outcome is unknown. Aborting sends a
   * cancellation.
   */
  callTool(call: UpstreamCall, signal: AbortSignal): Promise<JsonObject>;
  /** Closes the link, and its process if there is one, in bounded time. Never throws. */
  close(): Promise<void>;
}

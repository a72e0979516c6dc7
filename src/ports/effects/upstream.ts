import type { Json, JsonObject } from '../../contract/json.js';
import type { UpstreamServer } from '../../contract/policy/upstreams.js';

/** One call of a tool, of which there is exactly one: whoever carries it never sends it twice. */
export interface UpstreamCall {
  /** As the server calls the tool. */
  readonly tool: string;
  readonly input: JsonObject;
  /** Handed on to the server, which may make use of it. */
  readonly idempotency_key: string;
}

/**
 * A connection to an MCP server. Whatever comes over it was written by somebody else: it has been read by the `parse`
 * of whoever connected, is bounded in size, and is otherwise as the server sent it.
 */
export interface UpstreamLink {
  /** False once it can carry nothing any more. It does not come back: another one is made. */
  readonly isOpen: boolean;
  /** How often the server has said that its list of tools is another one now. */
  readonly toolListChanges: number;
  /** One page of the server's tools. Throws for any answer but a result. */
  listTools(cursor: string | null, signal: AbortSignal): Promise<JsonObject>;
  /**
   * Throws NotExecuted when the server certainly has not got the request, or says that it has not begun with it;
   * Failed when it says that the call went wrong; anything else when nobody can tell. Aborting tells the server so.
   */
  callTool(call: UpstreamCall, signal: AbortSignal): Promise<JsonObject>;
  /** Ends it, and the process behind it where there is one, in bounded time. Never throws. */
  close(): Promise<void>;
}

export interface ConnectOptions {
  /** From where relative folders are meant. */
  readonly folder: string;
  /** The JSON in a text, strictly; undefined where it is none, is too deep, or says something twice. */
  readonly parse: (text: string) => Json | undefined;
  /** Gives up connecting. */
  readonly signal: AbortSignal;
}

/** Connects, and agrees on a protocol. Throws with a message that names no secret. */
export type UpstreamConnector = (server: UpstreamServer, options: ConnectOptions) => Promise<UpstreamLink>;

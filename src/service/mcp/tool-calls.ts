// What a call is known by. A call that comes again must be found again, by the same ids, in whatever process: nothing
// of them is drawn (D4).

import { canonicalJson } from '../../contract/canonical-json.js';
import { sha256 } from '../../contract/hash.js';
import type { JsonObject } from '../../contract/json.js';

/** One call of a tool, as its connection received it. */
export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
  /** Of the JSON-RPC request: no two requests of one connection have the same. */
  readonly request_id: string | number;
  /** The caller's own key for this act: the same in every attempt, on whatever connection. */
  readonly key: string | null;
}

/** Name and arguments: a key or request id that comes again with others is a mistake. */
export const contentOf = ({ name, args }: ToolCall): string => digest('content', name, args);

/** The same call has the same mark. A request id means something on its connection only, and for one content. */
export const markOf = (call: ToolCall, connection: string): string =>
  call.key === null ? digest('request', connection, call.request_id, contentOf(call)) : digest('key', call.key);

/** By which the run recognises the proposal. */
export const inputIdOf = (run_id: string, mark: string): string => `mcp:${digest('input', run_id, mark)}`;

/** The id of the proposal that a call becomes: a UUID of version 8, whose bits are ours to choose (RFC 9562). */
export function proposalIdOf(run_id: string, mark: string): string {
  const hex = digest('proposal', run_id, mark);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-');
}

/** A list, so that no two different ones run together. */
const digest = (...parts: readonly unknown[]): string => sha256(canonicalJson(parts));

/** Where a call went, and with which content. */
export interface PlacedCall {
  readonly run_id: string;
  readonly content: string;
}

const CALLS_REMEMBERED = 4_096;

/** Calls by their marks, so that one that comes again goes into the run that it went into. The oldest are forgotten. */
export class PlacedCalls {
  readonly #placed = new Map<string, PlacedCall>();

  get(mark: string): PlacedCall | undefined {
    return this.#placed.get(mark);
  }

  remember(mark: string, placed: PlacedCall): void {
    this.#placed.delete(mark);
    this.#placed.set(mark, placed);
    const [oldest] = this.#placed.keys();
    if (this.#placed.size > CALLS_REMEMBERED && oldest !== undefined) this.#placed.delete(oldest);
  }
}

// The identity of tool calls. A repeated call must map to the same ids in every process, so no id is random (D4).

import { type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import { createLruMap, type LruMap } from '../../system/lru-map.js';

/** One tool call as its connection received it. */
export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
  /** The id of the JSON-RPC request, unique within its connection. */
  readonly request_id: string | number;
  /** The idempotency key of the client: the same in every attempt, on every connection. */
  readonly key: string | null;
  /** The trace context of the client: it identifies nothing. */
  readonly trace?: TraceCarrier;
}

/** A digest of name and arguments. */
const contentOf = ({ name, args }: ToolCall): string => digest('content', name, args);

/** The mark that identifies a call. A request id identifies a call only on its connection, and for one content. */
export const markOf = (call: ToolCall, connection: string): string =>
  call.key === null ? digest('request', connection, call.request_id, contentOf(call)) : digest('key', call.key);

/** The input id by which the run deduplicates the proposal. */
export const inputIdOf = (run_id: string, mark: string): string => `mcp:${digest('input', run_id, mark)}`;

/** The proposal id of a call: a UUID of version 8, whose bits the application defines (RFC 9562). */
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

/** The correlation id of the runs of one connection. A hash, because the id of a connection may be a secret. */
export const correlationOf = (connection: string): string => `cor_${digest('correlation', connection).slice(0, 24)}`;

/** The hash of a list: as a list, different parts cannot collide by concatenation. */
const digest = (...parts: readonly unknown[]): string => sha256(canonicalJson(parts));

/** One attempt of a call that is a proposal. */
export interface CallAttempt {
  readonly mark: string;
  /** Whether the client has given it a key: then another process may have received an earlier attempt. */
  readonly isKeyed: boolean;
  /** The run that the call names, or null. */
  readonly requestedRun: string | null;
  /** The payload that the call has in a run. */
  readonly payloadFor: (run_id: string) => string;
}

/** The calls that became proposals, so that a repeated call goes into the same run. */
export interface CallHistory {
  /** The run of the earlier attempt of a call; null for a first attempt. The run knows whether it had other content. */
  find(attempt: CallAttempt): Promise<string | null>;
  remember(attempt: CallAttempt, run_id: string): void;
  /** Forgets an attempt that was not executed, so that its repetition may go into another run. */
  forget(attempt: CallAttempt): void;
}

/** The calls of one connection, and the keyed calls of all connections of one service. */
export class ConnectionHistory implements CallHistory {
  readonly #own = createCallCache();
  readonly #keyed: CallCache;

  constructor(keyed: CallCache) {
    this.#keyed = keyed;
  }

  find(attempt: CallAttempt): Promise<string | null> {
    return Promise.resolve(this.#callsOf(attempt).get(attempt.mark) ?? null);
  }

  remember(attempt: CallAttempt, run_id: string): void {
    this.#callsOf(attempt).set(attempt.mark, run_id);
  }

  forget(attempt: CallAttempt): void {
    this.#callsOf(attempt).delete(attempt.mark);
  }

  #callsOf({ isKeyed }: CallAttempt): CallCache {
    return isKeyed ? this.#keyed : this.#own;
  }
}

const CALLS_REMEMBERED = 4_096;

/** The runs by the marks of calls, so that a repeated call goes into the same run. */
export type CallCache = LruMap<string>;

export const createCallCache = (): CallCache => createLruMap<string>(CALLS_REMEMBERED);

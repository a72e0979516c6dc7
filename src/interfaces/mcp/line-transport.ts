// MCP over two streams: one message per line.

import { parseJSONRPCMessage, type JSONRPCMessage, type RequestId, type Transport } from '@modelcontextprotocol/server';
import type { Json } from '../../core/contract/json.js';
import { splitLines } from '../../host/control/split-lines.js';
import { UsageError } from '../../core/errors.js';
import { createDeferred, type DeferredPromise } from '../../runtime/deferred.js';
import { errorResponse, INVALID_REQUEST, MESSAGE_BYTES_MAX, readMessage } from './read-message.js';

/** Limit of requests without a response; at the limit, reading stops. */
const REQUESTS_OUTSTANDING_MAX = 256;

export interface StdioStreams {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves when the stream has accepted the text. Rejects if the reader is gone. */
  readonly write: (text: string) => Promise<void>;
}

/**
 * Why the transport ended: the input ended, the reader is gone, a message was too large, or the transport was closed.
 */
export type StdioEnding = 'end' | 'deaf' | 'too_large' | 'closed';

/**
 * @internal A transport for the SDK. The SDK's own stdio transport accepts duplicate keys, does not report unreadable
 * messages, and does not notice the end of its input.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #streams: StdioStreams;
  readonly #ending: DeferredPromise<StdioEnding> = createDeferred();
  /** The number of requests without a response, by id: a client may use one id several times. */
  readonly #outstandingIds = new Map<RequestId, number>();
  #outstanding = 0;
  #settled: DeferredPromise<null> = createDeferred();
  #open = true;

  constructor(streams: StdioStreams) {
    this.#streams = streams;
  }

  /** Resolves when the input has ended. Responses may still be outstanding. */
  get ending(): Promise<StdioEnding> {
    return this.#ending.promise;
  }

  start(): Promise<void> {
    void this.#readLines();
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#write(JSON.stringify(message));
    if (!('method' in message) && message.id !== undefined) this.#markAnswered(message.id);
  }

  /** Resolves when every request has its response. */
  waitUntilIdle(): Promise<void> {
    return this.#waitForFewerThan(1);
  }

  close(): Promise<void> {
    if (this.#open) {
      this.#open = false;
      this.#ending.resolve('closed');
      this.#settled.resolve(null);
      this.onclose?.();
    }
    return Promise.resolve();
  }

  async #readLines(): Promise<void> {
    try {
      for await (const line of splitLines(this.#streams.input, MESSAGE_BYTES_MAX)) {
        if (!this.#open) return;
        await this.#receive(line);
        // A client that sends requests without reading the responses blocks only itself.
        await this.#waitForFewerThan(REQUESTS_OUTSTANDING_MAX);
      }
      this.#ending.resolve('end');
    } catch (error) {
      if (error instanceof UsageError) {
        await this.#write(errorResponse(INVALID_REQUEST, `A message has at most ${MESSAGE_BYTES_MAX} bytes`));
      }
      this.#ending.resolve(error instanceof UsageError ? 'too_large' : 'end');
    }
  }

  async #receive(line: Uint8Array): Promise<void> {
    const read = readMessage(line);
    if (!read.ok) return this.#write(read.answer);
    const message = asMessage(read.message);
    if (message === null) return this.#write(errorResponse(INVALID_REQUEST, 'Invalid request'));
    // A subscription has no response until it ends.
    if ('method' in message && 'id' in message && message.method !== 'subscriptions/listen') {
      this.#outstanding += 1;
      this.#outstandingIds.set(message.id, (this.#outstandingIds.get(message.id) ?? 0) + 1);
    }
    this.onmessage?.(message);
    // A cancelled request gets no response. Of several requests with its id, only one is cancelled.
    if ('method' in message && message.method === 'notifications/cancelled') {
      const id = message.params?.['requestId'] as RequestId;
      if (this.#outstandingIds.get(id) === 1) this.#markAnswered(id);
    }
  }

  #markAnswered(id: RequestId): void {
    const outstanding = this.#outstandingIds.get(id);
    if (outstanding === undefined) return;
    this.#outstanding -= 1;
    if (outstanding === 1) this.#outstandingIds.delete(id);
    else this.#outstandingIds.set(id, outstanding - 1);
    const settled = this.#settled;
    this.#settled = createDeferred();
    settled.resolve(null);
  }

  async #waitForFewerThan(limit: number): Promise<void> {
    while (this.#open && this.#outstanding >= limit) await this.#settled.promise;
  }

  async #write(text: string): Promise<void> {
    if (!this.#open) return;
    await this.#streams.write(`${text}\n`).catch(() => this.#ending.resolve('deaf'));
  }
}

function asMessage(value: Json): JSONRPCMessage | null {
  try {
    return parseJSONRPCMessage(value);
  } catch {
    return null;
  }
}

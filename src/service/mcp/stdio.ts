// MCP over two streams: one message a line.

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { JSONRPCMessageSchema, type JSONRPCMessage, type RequestId } from '@modelcontextprotocol/sdk/types.js';
import { byteLines } from '../../runtime/byte-lines.js';
import { UsageError } from '../../errors.js';
import { defer, type Deferred } from '../../runtime/deferred.js';
import { errorAnswer, INVALID_REQUEST, MESSAGE_BYTES_MAX, readMessage } from './messages.js';

/** Requests that may be without an answer; no more is read meanwhile. */
const ASKED_MAX = 256;

export interface Streams {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves when the text is taken. Rejects when nobody reads any more. */
  readonly write: (text: string) => Promise<void>;
}

/** How it came to an end: nothing more is sent, nobody reads any more, too much was sent at once, or it was cut. */
export type Leaving = 'end' | 'deaf' | 'too_large' | 'closed';

/**
 * A transport of the SDK. Its own for stdio takes the last of two equal keys, is silent about what it cannot read, and
 * does not notice the end of its input.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #streams: Streams;
  readonly #left: Deferred<Leaving> = defer();
  /** Requests that have no answer yet, by their ids: a client may use one id for several. */
  readonly #asked = new Map<RequestId, number>();
  #outstanding = 0;
  #settled: Deferred<null> = defer();
  #open = true;

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  /** Resolves when nothing more comes in. Answers may still be outstanding. */
  get left(): Promise<Leaving> {
    return this.#left.promise;
  }

  start(): Promise<void> {
    void this.#listen();
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#write(JSON.stringify(message));
    if (!('method' in message) && message.id !== undefined) this.#settle(message.id);
  }

  /** Resolves when every request has its answer. */
  idle(): Promise<void> {
    return this.#fewerThan(1);
  }

  close(): Promise<void> {
    if (this.#open) {
      this.#open = false;
      this.#left.resolve('closed');
      this.#settled.resolve(null);
      this.onclose?.();
    }
    return Promise.resolve();
  }

  async #listen(): Promise<void> {
    try {
      for await (const line of byteLines(this.#streams.input, MESSAGE_BYTES_MAX)) {
        if (!this.#open) return;
        await this.#take(line);
        // Whoever asks without reading the answers waits for itself.
        await this.#fewerThan(ASKED_MAX);
      }
      this.#left.resolve('end');
    } catch (error) {
      if (error instanceof UsageError) {
        await this.#write(errorAnswer(INVALID_REQUEST, `A message has at most ${MESSAGE_BYTES_MAX} bytes`));
      }
      this.#left.resolve(error instanceof UsageError ? 'too_large' : 'end');
    }
  }

  async #take(line: Uint8Array): Promise<void> {
    const read = readMessage(line);
    if (!read.ok) return this.#write(read.answer);
    const checked = JSONRPCMessageSchema.safeParse(read.message);
    if (!checked.success) return this.#write(errorAnswer(INVALID_REQUEST, 'Invalid request'));
    const message = checked.data;
    if ('method' in message && 'id' in message) {
      this.#outstanding += 1;
      this.#asked.set(message.id, (this.#asked.get(message.id) ?? 0) + 1);
    }
    this.onmessage?.(message);
    // A request that was given up gets no answer. Of several with its id, one alone is given up, and the rest answered.
    if ('method' in message && message.method === 'notifications/cancelled') {
      const id = message.params?.['requestId'] as RequestId;
      if (this.#asked.get(id) === 1) this.#settle(id);
    }
  }

  #settle(id: RequestId): void {
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    this.#outstanding -= 1;
    if (asked === 1) this.#asked.delete(id);
    else this.#asked.set(id, asked - 1);
    const settled = this.#settled;
    this.#settled = defer();
    settled.resolve(null);
  }

  async #fewerThan(limit: number): Promise<void> {
    while (this.#open && this.#outstanding >= limit) await this.#settled.promise;
  }

  async #write(text: string): Promise<void> {
    if (!this.#open) return;
    await this.#streams.write(`${text}\n`).catch(() => this.#left.resolve('deaf'));
  }
}

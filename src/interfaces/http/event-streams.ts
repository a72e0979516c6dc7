// The ledger as a stream of server-sent events.
//
// Invariants:
//   E1. An event has the id of its last entry, and entries come in order without a gap: a client that names the last id
//       it has received continues with the next entry, on any connection.
//   E2. The ledger is polled ten times a second, and only while a client is connected.
//   E3. At most one unread message per client is buffered; a client that does not read it in time is disconnected.
//   E4. A stream ends when its token expires or is revoked, and when the server closes.

import { LedgerError, InvariantError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { ReadControl } from '../../engine/ports/pace.js';
import type { Log } from '../../engine/ports/log.js';
import type { TokenBook } from '../../engine/ports/token-book.js';
import { leafHash } from '../../core/ledger/proof/merkle.js';
import type { InspectorSource } from '../inspector/inspector-source.js';
import { waitForDrain, type PieceWriter } from './write-pieces.js';

const POLL_MS = 100;
const COMMENT_MS = 15_000;
/** How long a client may leave a message unread, in milliseconds. */
const DRAIN_TIMEOUT_MS = 10_000;
const CLIENTS_MAX = 64;
/** Streams per token, so that one token cannot use up all. */
export const CLIENTS_PER_TOKEN = 8;

/** The response that a stream writes to. */
export interface StreamOutput extends PieceWriter {
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown;
}

/** Formats entries as events. */
export interface StreamFormat {
  /**
   * The event for the entries from `from` up to, but not including, `to`, and the first entry that it does not contain.
   */
  next(from: number, to: number, control?: ReadControl): Promise<{ readonly text: string; readonly through: number }>;
}

interface EventStreamsOptions {
  readonly size: () => Promise<number>;
  readonly tokens: Pick<TokenBook, 'holds'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface StreamClient {
  readonly out: StreamOutput;
  readonly token: string;
  /** Whether the caller would still be accepted. */
  readonly isHeld: () => boolean;
  readonly format: StreamFormat;
  readonly control: ReadControl | undefined;
  /** The next entry for this client. */
  from: number;
  busy: boolean;
  open: boolean;
  quietSince: number;
}

/** The start of a stream: its first entry, its token, and how its reads are divided. */
type StreamStart = Pick<StreamClient, 'from' | 'token' | 'format'> & {
  /** Default: while the token book has the token. */
  readonly isHeld?: () => boolean;
  readonly control?: ReadControl;
};

export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #clients = new Set<StreamClient>();
  #cancelWake: (() => void) | null = null;
  #closed = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#clients.size;
  }

  /** Whether this token has reached its limit of streams. */
  isFull(token: string): boolean {
    if (this.#closed || this.#clients.size >= CLIENTS_MAX) return true;
    return [...this.#clients].filter((client) => client.token === token).length >= CLIENTS_PER_TOKEN;
  }

  /** Streams entries from `from` until the client leaves or is disconnected. */
  add(out: StreamOutput, { from, token, isHeld, format, control }: StreamStart): void {
    if (out.destroyed) return;
    const client: StreamClient = {
      out,
      token,
      isHeld: isHeld ?? (() => this.#options.tokens.holds(token)),
      format,
      control,
      from,
      busy: false,
      open: true,
      quietSince: this.#options.clock.now(),
    };
    out.once('close', () => {
      client.open = false;
      this.#clients.delete(client);
    });
    out.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Accel-Buffering': 'no',
    });
    // Headers go out with the first bytes only.
    out.write('retry: 1500\n\n');
    if (this.isFull(token)) {
      this.#end(client);
      return;
    }
    this.#clients.add(client);
    this.#wake(0);
  }

  close(): void {
    this.#closed = true;
    this.#cancelWake?.();
    this.#cancelWake = null;
    for (const client of this.#clients) this.#end(client);
  }

  #end(client: StreamClient): void {
    client.open = false;
    this.#clients.delete(client);
    client.out.end();
  }

  #wake(ms: number): void {
    if (this.#cancelWake !== null && ms > 0) return;
    this.#cancelWake?.();
    const { clock } = this.#options;
    this.#cancelWake = clock.wake(clock.now() + ms, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    this.#cancelWake = null;
    try {
      const size = await this.#options.size();
      for (const client of this.#clients) this.#serve(client, size);
    } catch (error) {
      this.#options.log.error('the ledger could not be read for a stream', { error });
      for (const client of this.#clients) this.#end(client);
    }
    if (this.#clients.size > 0 && !this.#closed) this.#wake(POLL_MS);
  }

  #serve(client: StreamClient, size: number): void {
    const { clock } = this.#options;
    if (!client.isHeld()) {
      this.#end(client);
      return;
    }
    if (client.busy) return;
    if (client.from < size) {
      client.busy = true;
      void this.#pump(client, size);
    } else if (clock.now() - client.quietSince >= COMMENT_MS) {
      client.busy = true;
      void this.#write(client, ':\n\n').finally(() => (client.busy = false));
    }
  }

  async #pump(client: StreamClient, size: number): Promise<void> {
    try {
      while (client.open && client.from < size) {
        const { text, through } = await client.format.next(client.from, size, client.control);
        // The client may have left, or been disconnected, while the ledger was read.
        if (!this.#clients.has(client)) return;
        client.from = through;
        await this.#write(client, text);
      }
    } catch (error) {
      const isCancelled = client.control?.signal.aborted === true;
      if (!isCancelled && !(error instanceof LedgerError)) this.#options.log.error('a stream broke off', { error });
      this.#end(client);
    } finally {
      client.busy = false;
    }
  }

  /** Resolves when the client can receive more. */
  async #write(client: StreamClient, text: string): Promise<void> {
    const { out } = client;
    const { clock } = this.#options;
    client.quietSince = clock.now();
    if (client.open && !out.write(text)) await waitForDrain(out, { clock, drainMs: DRAIN_TIMEOUT_MS });
  }
}

/** Limits of the entries, and of their bytes, in one message. A single entry is sent whatever its size. */
const ENTRIES_AT_ONCE = 1_000;
const BYTES_AT_ONCE = 262_144;

/** Formats one message per entry. */
export const createEntryFormat = (source: Pick<InspectorSource, 'entries'>): StreamFormat => ({
  async next(from, to, control) {
    const options = { ...(control === undefined ? {} : copyControl(control)), bytesMax: BYTES_AT_ONCE };
    const texts = await source.entries(from, Math.min(to, from + ENTRIES_AT_ONCE), options);
    const events = texts.map((text, place) => {
      // Canonical JSON has no line breaks; a tampered text may have some, which would end the event.
      const entry = text.replace(/[\r\n]/g, ' ');
      const data = `{"log_index":${from + place},"leaf_hash":"${leafHash(text)}","entry":${entry}}`;
      return `id: ${from + place}\ndata: ${data}\n\n`;
    });
    return toChunk(events.join(''), from, events.length);
  },
});

/** Formats pages of rows, for an inspector. */
export const createRowFormat = (source: Pick<InspectorSource, 'rows'>): StreamFormat => ({
  async next(from, to, control) {
    const page = await source.rows(from, Math.min(to, from + ENTRIES_AT_ONCE), control);
    const { length } = page.rows;
    return toChunk(`event: rows\nid: ${from + length - 1}\ndata: ${JSON.stringify(page)}\n\n`, from, length);
  },
});

/** Copies member by member, because a signal may be created when it is first read. */
const copyControl = ({ signal, pause }: ReadControl): ReadControl => ({ signal, pause });

function toChunk(text: string, from: number, count: number): { readonly text: string; readonly through: number } {
  if (count === 0) throw new InvariantError('the ledger has fewer entries than it reports');
  return { text, through: from + count };
}

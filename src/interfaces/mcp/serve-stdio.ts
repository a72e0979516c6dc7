// Serves one agent on two streams, until it disconnects.

import { serveStdio as serveSdkStdio } from '@modelcontextprotocol/server/stdio';
import { drawToken } from '../../stores/keys/access-token.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { systemClock } from '../../system/system-clock.js';
import { RunId } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { waitAtMost } from '../../engine/timers.js';
import { PolicyError, UsageError } from '../../core/errors.js';
import type { StoredRun } from './own-runs.js';
import type { RunGateway } from './run-gateway.js';
import { MISPLACED_MESSAGE, sdkServer } from './sdk-server.js';
import type { McpService } from './agent-connection.js';
import { createConnection } from './mcp-service.js';
import { parseJSONRPCMessage, type JSONRPCMessage, type RequestId, type Transport } from '@modelcontextprotocol/server';
import type { Json } from '../../core/contract/json.js';
import { splitLines } from '../../host/control/split-lines.js';
import { createDeferred, type DeferredPromise } from '../../runtime/deferred.js';
import { errorResponse, INVALID_REQUEST, MESSAGE_BYTES_MAX, readMessage } from './read-message.js';

/** How long the last responses may take after the input has ended, in milliseconds. */
const LAST_RESPONSES_MS = 10_000;

/** Limit of subscriptions, none of which ever gets a notification. */
const SUBSCRIPTIONS_MAX = 16;

/** Options of an MCP server on stdin and stdout. */
export interface ServeStdioOptions extends StdioStreams {
  /** Aborted when the process should end. */
  readonly stop: AbortSignal;
  /**
   * The file that stores the id of the agent's run, so that the next server continues the run if this one is killed.
   * Null: not stored.
   */
  readonly note: string | null;
}

/**
 * Serves MCP until the client disconnects, or `stop` is aborted. If the agent closes its stream, its run ends. In every
 * other case the run stays active, as remote runs do, and the next server with this note continues it.
 */
export async function serveStdio(
  service: McpService,
  { stop, note, ...streams }: ServeStdioOptions,
): Promise<StdioEnding> {
  const connection = createConnection(
    service,
    drawToken(),
    note === null ? undefined : await loadStoredRun(note, service.agentRuns),
  );
  const transport = new LineTransport(streams);
  const closeTransport = (): void => void transport.close();
  stop.addEventListener('abort', closeTransport, { once: true });
  if (stop.aborted) closeTransport();
  // The first message determines which protocol the client speaks. The process serves one agent, so the connection is
  // the same for all.
  const server = serveSdkStdio(({ era }) => sdkServer(connection, service, era), {
    transport,
    maxSubscriptions: SUBSCRIPTIONS_MAX,
    onerror: () => service.log.info(MISPLACED_MESSAGE),
  });
  const ending = await transport.ending;
  stop.removeEventListener('abort', closeTransport);
  if (ending === 'end' || ending === 'too_large')
    await waitAtMost(systemClock(), LAST_RESPONSES_MS, transport.waitUntilIdle());
  if (ending === 'end') await connection.end();
  await server.close();
  return ending;
}

const NOTE_BYTES_MAX = 256;

/** The run of an earlier server, if the note names a run of the same agent. Losing the note loses nothing else. */
async function loadStoredRun(note: string, agentRuns: RunGateway): Promise<StoredRun> {
  const run_id = readNote(note);
  const storedRunId = run_id !== null && (await agentRuns.belongs(run_id)) ? run_id : null;
  return { run_id: storedRunId, keep: (own) => replaceFile(note, `${own}\n`, 0o600) };
}

function readNote(note: string): string | null {
  try {
    const bytes = readSmallFile(note, { bytesMax: NOTE_BYTES_MAX, forbiddenMode: 0o022 });
    const run_id = Buffer.from(bytes ?? [])
      .toString('latin1')
      .trim();
    return isConforming(RunId, run_id) ? run_id : null;
  } catch (error) {
    if (error instanceof PolicyError) return null;
    throw error;
  }
}

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

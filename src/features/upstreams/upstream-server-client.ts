// Client of one upstream server. It connects on demand and reads the tool list again whenever the list may be stale.
//
//   U1. A call is sent at most once, and only while the definition of its tool matches its pin.
//   U1a. Before a call that is not idempotent, the list is read again: an earlier reading does not suffice.
//   U2. A definition that has changed once stays rejected until the Turnpike is opened again, with a new pin.
//   U3. A failure before the call is sent is NotExecuted. After that, only the server knows what happened.

import { ActionNotExecutedError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { UpstreamCall, UpstreamLink } from '../../engine/ports/effects/upstream.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { UpstreamServer as Configured } from '../../core/contract/policy/upstreams.js';
import { listDefinitions, type UpstreamToolDefinition, type ToolListing } from './tool-definitions.js';

/** Timeout of connecting and listing together, in milliseconds. */
const PREPARE_MS = 20_000;
/** For idempotent calls a list stays fresh for this time in ms, unless the server announces a change. */
const LIST_FRESH_MS = 10_000;
const CALLS_MAX = 64;
/** The client gives up on a server whose list changes while it is read. */
const PREPARATIONS_MAX = 3;
const TOO_LONG = 'it takes too long';

interface ServerParts {
  readonly clock: Clock;
  /** Relative folders of the configuration are resolved against this one. */
  readonly folder: string;
}

/** One reading of the tool list: its result, its connection and its time. */
interface ToolListReading {
  readonly listing: ToolListing;
  readonly link: UpstreamLink;
  readonly changes: number;
  readonly at: number;
  /** Readings are numbered when they start. */
  readonly number: number;
}

/** A call of a tool, with the pinned hash of its definition. */
interface PinnedCall extends UpstreamCall {
  readonly sha256: string;
  /** An idempotent call may rely on a list that was read before. */
  readonly idempotent: boolean;
  /** The call must be sent within this time in ms; otherwise it is not executed. */
  readonly prepare_ms: number;
}

type CallTarget = Pick<PinnedCall, 'tool' | 'sha256' | 'prepare_ms' | 'idempotent'>;
const NO_READING = 0;

export class UpstreamServerClient {
  readonly #configured: Configured;
  readonly #parts: ServerParts;
  readonly #changed = new Set<string>();
  #link: UpstreamLink | null = null;
  #read: ToolListReading | null = null;
  #reading: { readonly read: Promise<ToolListReading>; readonly abort: AbortController } | null = null;
  #closed = false;
  #inFlight = 0;
  #readingsStarted = NO_READING;

  constructor(configured: Configured, parts: ServerParts) {
    this.#configured = configured;
    this.#parts = parts;
  }

  get name(): string {
    return this.#configured.name;
  }

  /**
   * Reads the tools that the server lists now.
   * @throws Error that says in one line why they are not available
   */
  async list(): Promise<ToolListing> {
    return (await this.#currentReading()).listing;
  }

  /**
   * @throws ActionNotExecutedError, ActionFailedError; any other error if the outcome is unknown, like
   * `UpstreamLink.callTool`
   */
  async call({ sha256, prepare_ms, idempotent, ...call }: PinnedCall, signal: AbortSignal): Promise<JsonObject> {
    if (this.#inFlight >= CALLS_MAX)
      throw new ActionNotExecutedError(`${CALLS_MAX} calls of ${this.name} are under way already`);
    this.#inFlight += 1;
    try {
      const link = await this.#prepare({ tool: call.tool, sha256, prepare_ms, idempotent });
      if (signal.aborted) throw new ActionNotExecutedError('the call was given up before it was sent');
      return await link.callTool(call, signal);
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Closes the connection and prevents new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#reading?.abort.abort();
    await this.#reading?.read.catch(() => undefined);
    await this.#link?.close();
  }

  /** A connection whose latest tool list contains the pinned definition. */
  async #prepare({ tool, sha256, prepare_ms, idempotent }: CallTarget): Promise<UpstreamLink> {
    const after = idempotent ? NO_READING : this.#readingsStarted;
    const until = this.#parts.clock.now() + prepare_ms;
    for (let attempt = 0; attempt < PREPARATIONS_MAX && !this.#isFresh(this.#read, after); attempt += 1) {
      await this.#withDeadline(until, this.#currentReading()).catch((error: unknown) => {
        throw new ActionNotExecutedError(`${this.name} cannot be asked: ${(error as Error).message}`);
      });
    }
    const read = this.#read;
    if (!this.#isFresh(read, after)) throw new ActionNotExecutedError(`${this.name} changes its tools all the time`);
    this.#checkDefinition(tool, sha256, read.listing.definitions);
    return read.link;
  }

  #checkDefinition(tool: string, sha256: string, definitions: readonly UpstreamToolDefinition[]): void {
    const found = definitions.find((definition) => definition.tool === tool);
    if (found !== undefined && found.sha256 !== sha256) this.#changed.add(tool);
    const label = quoteForMessage(`${this.name}.${tool}`);
    if (this.#changed.has(tool)) {
      throw new ActionNotExecutedError(`the definition of ${label} has changed since it was pinned`, {
        retryable: false,
      });
    }
    if (found === undefined) throw new ActionNotExecutedError(`${label} is not listed any more`);
  }

  /** Concurrent callers share one reading. */
  #currentReading(): Promise<ToolListReading> {
    if (this.#reading !== null) return this.#reading.read;
    const abort = new AbortController();
    const read = this.#readTools(abort).finally(() => {
      this.#reading = null;
    });
    this.#reading = { read, abort };
    return read;
  }

  async #readTools(abort: AbortController): Promise<ToolListReading> {
    const { clock } = this.#parts;
    this.#readingsStarted += 1;
    const number = this.#readingsStarted;
    const cancelTimer = clock.wake(clock.now() + PREPARE_MS, () => abort.abort(TOO_LONG));
    try {
      const link = await this.#connectedLink(abort.signal);
      const { toolListChanges: changes } = link;
      const listing = await listDefinitions(link, abort.signal);
      this.#read = { listing, link, changes, at: clock.now(), number };
      return this.#read;
    } catch (error) {
      throw abort.signal.reason === TOO_LONG ? new Error(TOO_LONG) : error;
    } finally {
      cancelTimer();
    }
  }

  async #connectedLink(signal: AbortSignal): Promise<UpstreamLink> {
    if (this.#closed) throw new Error('it is closed');
    if (this.#link?.isOpen === true) return this.#link;
    await this.#link?.close();
    // Imported here because most processes have no upstream servers.
    const { connectMcp } = await import('./mcp/mcp-client.js');
    this.#link = await connectMcp(this.#configured, { folder: this.#parts.folder, signal });
    return this.#link;
  }

  /** Whether the reading started after reading number `after` and is not stale. */
  #isFresh(read: ToolListReading | null, after: number): read is ToolListReading {
    return (
      read !== null &&
      read.number > after &&
      read.link.isOpen &&
      read.link.toolListChanges === read.changes &&
      this.#parts.clock.now() - read.at < LIST_FRESH_MS
    );
  }

  async #withDeadline<T>(until: number, work: Promise<T>): Promise<T> {
    let cancelTimer = (): void => undefined;
    const timeout = new Promise<never>((_resolve, reject) => {
      cancelTimer = this.#parts.clock.wake(until, () => reject(new Error(TOO_LONG)));
    });
    return Promise.race([work, timeout]).finally(cancelTimer);
  }
}

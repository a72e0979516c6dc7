// One upstream server as its tools reach it: a connection that is made when it is needed, and a list of its tools that
// is made again whenever it may be out of date.
//
//   U1. A call is sent at most once, and only while the definition of its tool is the one that was pinned.
//   U1a. Before a call that is not idempotent, the list is read again: one that was read before it is not enough.
//   U2. A definition that has once been another one stays refused until the Turnpike is opened again, with a new pin.
//   U3. Whatever fails before the call is sent is NotExecuted. After that, only the server can say what happened.

import { ActionNotExecutedError } from '../../errors.js';
import type { Clock } from '../../ports/clock.js';
import type { UpstreamConnector, UpstreamCall, UpstreamLink } from '../../ports/effects/upstream.js';
import { quoteForMessage } from '../../contract/finding-text.js';
import type { JsonObject } from '../../contract/json.js';
import type { UpstreamServer as Configured } from '../../contract/policy/upstreams.js';
import { scanJson } from '../../step/json-scanner.js';
import { listDefinitions, type UpstreamToolDefinition, type ToolListing } from './tool-definitions.js';

/** Connecting and listing together. */
export const PREPARE_MS = 20_000;
/** For idempotent calls a list counts for so long, unless the server itself says earlier that it has changed. */
export const LIST_FRESH_MS = 10_000;
const CALLS_MAX = 64;
/** A server whose list changes while it is read is not waited for. */
const PREPARATIONS_MAX = 3;
const MESSAGE_DEPTH_MAX = 64;
const TOO_LONG = 'it takes too long';

export interface ServerParts {
  readonly clock: Clock;
  /** From where relative folders are meant. */
  readonly folder: string;
  readonly connect: UpstreamConnector;
}

/** What was read of a server, over which connection, and when. */
interface ToolListReading {
  readonly listing: ToolListing;
  readonly link: UpstreamLink;
  readonly changes: number;
  readonly at: number;
  /** Readings are counted as they begin. */
  readonly number: number;
}

/** A call of a tool, with the definition that it is meant for. */
export interface PinnedCall extends UpstreamCall {
  readonly sha256: string;
  /** Whether it may be sent on the word of a list that was read before. */
  readonly idempotent: boolean;
  /** Within which the call must be sent, or it is not executed. */
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

  /** The tools that it lists now. @throws Error that says why they cannot be had, in a line for people */
  async list(): Promise<ToolListing> {
    return (await this.#currentReading()).listing;
  }

  /** @throws NotExecuted, Failed, or anything else where nobody can tell: as `UpstreamLink.callTool` */
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

  /** Ends the connection, and keeps another one from being made. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#reading?.abort.abort();
    await this.#reading?.read.catch(() => undefined);
    await this.#link?.close();
  }

  /** A connection over which the tool was just seen to be what was pinned. */
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

  /** One reading at a time, whoever asks for it. */
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
    const { folder, connect } = this.#parts;
    this.#link = await connect(this.#configured, { folder, parse, signal });
    return this.#link;
  }

  /** Whether the list was begun after that one, and can still be believed. */
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

function parse(text: string): ReturnType<Parameters<UpstreamConnector>[1]['parse']> {
  const scanned = scanJson(text, MESSAGE_DEPTH_MAX);
  return scanned.ok ? scanned.value : undefined;
}

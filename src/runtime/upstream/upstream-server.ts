// One upstream server as its tools reach it: a connection that is made when it is needed, and a list of its tools that
// is made again whenever it may be out of date.
//
//   U1. A call is sent at most once, and only while the definition of its tool is the one that was pinned.
//   U1a. Before a call that is not idempotent, the list is read again: one that was read before it is not enough.
//   U2. A definition that has once been another one stays refused until the Turnpike is opened again, with a new pin.
//   U3. Whatever fails before the call is sent is NotExecuted. After that, only the server can say what happened.

import { NotExecuted } from '../../errors.js';
import type { Clock } from '../../ports/clock.js';
import type { ConnectUpstream, UpstreamCall, UpstreamLink } from '../../ports/upstream.js';
import { inQuotes } from '../../contract/finding-text.js';
import type { JsonObject } from '../../contract/json.js';
import type { UpstreamServer as Configured } from '../../contract/upstreams.js';
import { scanJson } from '../../step/json-scanner.js';
import { listDefinitions, type Definition, type Listing } from './definitions.js';

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
  readonly connect: ConnectUpstream;
}

/** What was read of a server, over which connection, and when. */
interface Read {
  readonly listing: Listing;
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

type Wanted = Pick<PinnedCall, 'tool' | 'sha256' | 'prepare_ms' | 'idempotent'>;
const NO_READING = 0;

export class UpstreamServer {
  readonly #configured: Configured;
  readonly #parts: ServerParts;
  readonly #changed = new Set<string>();
  #link: UpstreamLink | null = null;
  #read: Read | null = null;
  #reading: { readonly read: Promise<Read>; readonly abort: AbortController } | null = null;
  #closed = false;
  #underWay = 0;
  #begun = NO_READING;

  constructor(configured: Configured, parts: ServerParts) {
    this.#configured = configured;
    this.#parts = parts;
  }

  get name(): string {
    return this.#configured.name;
  }

  /** The tools that it lists now. @throws Error that says why they cannot be had, in a line for people */
  async list(): Promise<Listing> {
    return (await this.#current()).listing;
  }

  /** @throws NotExecuted, Failed, or anything else where nobody can tell: as `UpstreamLink.callTool` */
  async call({ sha256, prepare_ms, idempotent, ...call }: PinnedCall, signal: AbortSignal): Promise<JsonObject> {
    if (this.#underWay >= CALLS_MAX) throw new NotExecuted(`${CALLS_MAX} calls of ${this.name} are under way already`);
    this.#underWay += 1;
    try {
      const link = await this.#ready({ tool: call.tool, sha256, prepare_ms, idempotent });
      if (signal.aborted) throw new NotExecuted('the call was given up before it was sent');
      return await link.callTool(call, signal);
    } finally {
      this.#underWay -= 1;
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
  async #ready({ tool, sha256, prepare_ms, idempotent }: Wanted): Promise<UpstreamLink> {
    const after = idempotent ? NO_READING : this.#begun;
    const until = this.#parts.clock.now() + prepare_ms;
    for (let attempt = 0; attempt < PREPARATIONS_MAX && !this.#isFresh(this.#read, after); attempt += 1) {
      await this.#before(until, this.#current()).catch((error: unknown) => {
        throw new NotExecuted(`${this.name} cannot be asked: ${(error as Error).message}`);
      });
    }
    const read = this.#read;
    if (!this.#isFresh(read, after)) throw new NotExecuted(`${this.name} changes its tools all the time`);
    this.#compare(tool, sha256, read.listing.definitions);
    return read.link;
  }

  #compare(tool: string, sha256: string, definitions: readonly Definition[]): void {
    const found = definitions.find((definition) => definition.tool === tool);
    if (found !== undefined && found.sha256 !== sha256) this.#changed.add(tool);
    const called = inQuotes(`${this.name}.${tool}`);
    if (this.#changed.has(tool)) {
      throw new NotExecuted(`the definition of ${called} has changed since it was pinned`, { retryable: false });
    }
    if (found === undefined) throw new NotExecuted(`${called} is not listed any more`);
  }

  /** One reading at a time, whoever asks for it. */
  #current(): Promise<Read> {
    if (this.#reading !== null) return this.#reading.read;
    const abort = new AbortController();
    const read = this.#readAnew(abort).finally(() => {
      this.#reading = null;
    });
    this.#reading = { read, abort };
    return read;
  }

  async #readAnew(abort: AbortController): Promise<Read> {
    const { clock } = this.#parts;
    this.#begun += 1;
    const number = this.#begun;
    const off = clock.wake(clock.now() + PREPARE_MS, () => abort.abort(TOO_LONG));
    try {
      const link = await this.#connected(abort.signal);
      const { changes } = link;
      const listing = await listDefinitions(link, abort.signal);
      this.#read = { listing, link, changes, at: clock.now(), number };
      return this.#read;
    } catch (error) {
      throw abort.signal.reason === TOO_LONG ? new Error(TOO_LONG) : error;
    } finally {
      off();
    }
  }

  async #connected(signal: AbortSignal): Promise<UpstreamLink> {
    if (this.#closed) throw new Error('it is closed');
    if (this.#link?.open === true) return this.#link;
    await this.#link?.close();
    const { folder, connect } = this.#parts;
    this.#link = await connect(this.#configured, { folder, parse, signal });
    return this.#link;
  }

  /** Whether the list was begun after that one, and can still be believed. */
  #isFresh(read: Read | null, after: number): read is Read {
    return (
      read !== null &&
      read.number > after &&
      read.link.open &&
      read.link.changes === read.changes &&
      this.#parts.clock.now() - read.at < LIST_FRESH_MS
    );
  }

  async #before<T>(until: number, work: Promise<T>): Promise<T> {
    let off = (): void => undefined;
    const late = new Promise<never>((_resolve, reject) => {
      off = this.#parts.clock.wake(until, () => reject(new Error(TOO_LONG)));
    });
    return Promise.race([work, late]).finally(off);
  }
}

function parse(text: string): ReturnType<Parameters<ConnectUpstream>[1]['parse']> {
  const scanned = scanJson(text, MESSAGE_DEPTH_MAX);
  return scanned.ok ? scanned.value : undefined;
}

// Upstream MCP servers, by the client of the MCP SDK: it agrees on a protocol, numbers requests and tells the server
// what was cancelled. The wires are our own (child-lines, http-messages), for what the SDK's leave open: who gets which
// environment, how much is read, how deep, and whether a request has left. Its `listTools` and `callTool` are not used:
// they compile the schemas that a server sends into code, before anybody has looked at them.

import { resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, JSONRPCMessageSchema, McpError, ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject } from '../contract/json.js';
import type { HttpServer, StdioServer } from '../contract/upstreams.js';
import { CodedError, Failed, InvariantError, NotExecuted } from '../errors.js';
import type { ConnectOptions, ConnectUpstream, UpstreamCall, UpstreamLink } from '../ports/upstream.js';
import { ChildLines, environmentFor } from './child-lines.js';
import { HttpMessages, serverAddress, tokenFrom } from './http-messages.js';
import { Unasked } from './unasked.js';

/** Where the key of a call stands in its `_meta`, under a prefix of our own. */
export const IDEMPOTENCY_KEY = 'turnpike/idempotency-key';

const MESSAGE_BYTES_MAX = 8_388_608;
/** What nobody asked for, in ten seconds: of one message that is longer, the time that reading it takes is enough. */
const UNASKED_CHARS_MAX = 1_048_576;
/** The time of a request is its caller's affair, who aborts it. This is as much as a timer can hold. */
const NO_TIMEOUT_MS = 2_147_483_647;
const CANCELLATION_MS = 5_000;
const LIST_CHANGED = 'notifications/tools/list_changed';

type RequestKey = string | number;

/** What carries messages to one server, and back. */
interface Wire {
  readonly open: boolean;
  /** For people, where connecting failed. */
  readonly lastWords: string;
  start(): Promise<void>;
  /** @returns whether what was said to it has been answered completely. @throws NotExecuted, as `UpstreamLink` does */
  send(text: string, signal: AbortSignal): Promise<'written' | 'answered'>;
  agreed(protocol: string): void;
  /** Ends it without a farewell. */
  abandon(): void;
  close(): Promise<void>;
}

interface Ear {
  take(text: string): void;
  ended(): void;
}

/** Connects to a server as its entry in upstreams.json says. */
export const connectMcp: ConnectUpstream = async (server, options) => {
  const transport = new GuardedTransport(options.parse, (ear) =>
    server.transport === 'stdio' ? childWire(server, options.folder, ear) : httpWire(server, ear),
  );
  const client = new Client(
    { name: 'turnpike', version: '1' },
    { capabilities: {}, jsonSchemaValidator: COMPILES_NOTHING },
  );
  try {
    await client.connect(transport, { signal: options.signal, timeout: NO_TIMEOUT_MS });
    if (client.getServerCapabilities()?.tools === undefined) throw new Error('the server offers no tools');
  } catch (error) {
    const { lastWords } = transport;
    await transport.close();
    const why = error instanceof McpError ? 'the server did not greet back' : (error as Error).message;
    throw new Error(lastWords === '' ? why : `${why}; its last words: ${lastWords}`);
  }
  return new McpLink(client, transport);
};

class McpLink implements UpstreamLink {
  readonly #client: Client;
  readonly #transport: GuardedTransport;

  constructor(client: Client, transport: GuardedTransport) {
    this.#client = client;
    this.#transport = transport;
  }

  get open(): boolean {
    return this.#transport.open;
  }

  get changes(): number {
    return this.#transport.changes;
  }

  listTools(cursor: string | null, signal: AbortSignal): Promise<JsonObject> {
    return this.#request({ method: 'tools/list', params: cursor === null ? {} : { cursor } }, signal);
  }

  callTool({ tool, input, idempotency_key }: UpstreamCall, signal: AbortSignal): Promise<JsonObject> {
    const _meta = { [IDEMPOTENCY_KEY]: idempotency_key };
    return this.#request({ method: 'tools/call', params: { name: tool, arguments: { ...input }, _meta } }, signal);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #request(request: Parameters<Client['request']>[0], signal: AbortSignal): Promise<JsonObject> {
    if (!this.open) throw new NotExecuted('the connection to the server is closed');
    if (signal.aborted) throw new NotExecuted('the request was given up before it was sent');
    // The SDK never lets go of a signal, and would cancel what has long been answered.
    const own = new AbortController();
    const giveUp = (): void => own.abort('given up');
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const options = { signal: own.signal, timeout: NO_TIMEOUT_MS };
      // Asked for as anything at all: the SDK's own schemas would drop members that the pin of a definition covers.
      // It has come out of `parse`, so it is JSON.
      return (await this.#client.request(request, ResultSchema, options)) as JsonObject;
    } catch (error) {
      throw whatItSays(error);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }
}

/** JSON-RPC's codes for a request that was not taken on. */
const NOT_TAKEN_ON: readonly number[] = [
  ErrorCode.ParseError,
  ErrorCode.InvalidRequest,
  ErrorCode.MethodNotFound,
  ErrorCode.InvalidParams,
];
/** The SDK's own, for a connection that broke and a call that was given up; servers use them too. */
const NOBODY_KNOWS: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout];

/** Errors without the words of the server: they go to the log. */
function whatItSays(error: unknown): Error {
  if (error instanceof CodedError) return error;
  if (!(error instanceof McpError)) return new Error('the server gave no answer that can be read');
  const message = `the server answered with the error ${error.code}`;
  if (NOT_TAKEN_ON.includes(error.code)) return new NotExecuted(message, { retryable: false });
  if (NOBODY_KNOWS.includes(error.code)) return new Error('the connection was lost, or the call was given up');
  return new Failed(message);
}

/** What the SDK sees of a wire: messages that are answers to what was asked, and not too many of any others. */
class GuardedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  changes = 0;
  readonly #parse: ConnectOptions['parse'];
  readonly #wireFor: (ear: Ear) => Wire;
  readonly #asked = new Map<RequestKey, AbortController>();
  readonly #unasked = new Unasked(UNASKED_CHARS_MAX);
  #wire: Wire | null = null;
  #ended = false;

  constructor(parse: ConnectOptions['parse'], wireFor: (ear: Ear) => Wire) {
    this.#parse = parse;
    this.#wireFor = wireFor;
  }

  get open(): boolean {
    return !this.#ended && this.#wire?.open === true;
  }

  get lastWords(): string {
    return this.#wire?.lastWords ?? '';
  }

  async start(): Promise<void> {
    this.#wire = this.#wireFor({ take: (text) => this.#take(text), ended: () => this.#end() });
    await this.#wire.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#wire === null || this.#ended) throw new NotExecuted('the connection to the server is closed');
    const text = JSON.stringify(message);
    if (!('method' in message) || !('id' in message)) {
      await this.#wire.send(text, AbortSignal.timeout(CANCELLATION_MS)).finally(() => this.#cancelled(message));
      return;
    }
    const abort = new AbortController();
    this.#asked.set(message.id, abort);
    const said = await this.#wire.send(text, abort.signal);
    if (said === 'answered' && this.#asked.delete(message.id)) throw new Error('the answer is missing');
  }

  setProtocolVersion(version: string): void {
    this.#wire?.agreed(version);
  }

  async close(): Promise<void> {
    await this.#wire?.close();
    this.#end();
  }

  #take(text: string): void {
    if (this.#ended) return;
    const message = this.#message(text);
    if (message === 'broken' || this.#unasked.tooMuch) {
      // What was asked has become unknown at once, instead of when its time is over.
      this.#wire?.abandon();
      this.#end();
      return;
    }
    if (message !== null) this.onmessage?.(message);
  }

  /** @returns null for what is of no interest */
  #message(text: string): JSONRPCMessage | 'broken' | null {
    // Programs that say hello on their stdout are no danger, as long as they do not go on about it.
    if (!text.startsWith('{')) return this.#heardUnasked(text, null);
    const checked = JSONRPCMessageSchema.safeParse(this.#parse(text));
    if (!checked.success) return 'broken';
    const message = checked.data;
    if ('method' in message) {
      if (message.method === LIST_CHANGED) this.changes += 1;
      return this.#heardUnasked(text, message);
    }
    const answered = message.id !== undefined && this.#asked.delete(message.id);
    return answered ? message : this.#heardUnasked(text, null);
  }

  #heardUnasked<T>(text: string, message: T): T {
    this.#unasked.heard(text);
    return message;
  }

  /** Nobody waits for the answer any more. */
  #cancelled(message: JSONRPCMessage): void {
    if (!('method' in message) || message.method !== 'notifications/cancelled') return;
    const requestId = message.params?.['requestId'] as RequestKey | undefined;
    if (requestId === undefined) return;
    this.#asked.get(requestId)?.abort();
    this.#asked.delete(requestId);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onclose?.();
  }
}

/** Answers come when they come. */
function childWire(server: StdioServer, folder: string, ear: Ear): Wire {
  const { command, cwd = '.', env = [] } = server;
  let child: ChildLines | null = null;
  return {
    get open() {
      return child?.open === true;
    },
    get lastWords() {
      return child?.lastWords ?? '';
    },
    async start() {
      const options = { argv: command, cwd: resolve(folder, cwd), env: environmentFor(env) };
      const listener = { line: (text: string) => ear.take(text), ended: () => ear.ended() };
      child = await ChildLines.start({ ...options, lineBytesMax: MESSAGE_BYTES_MAX }, listener);
    },
    async send(text) {
      if (child === null) throw new InvariantError('a wire is written to before it is there');
      await child.write(text);
      return 'written';
    },
    agreed: () => undefined,
    abandon: () => child?.abandon(),
    close: async () => child?.close(),
  };
}

/** An answer is part of what is sent. */
function httpWire(server: HttpServer, ear: Ear): Wire {
  const options = { url: serverAddress(server.url), token: tokenFrom(server.token_env) };
  const http = new HttpMessages({ ...options, messageBytesMax: MESSAGE_BYTES_MAX }, (text) => ear.take(text.trim()));
  return {
    get open() {
      return http.open;
    },
    lastWords: '',
    start: () => Promise.resolve(),
    async send(text, signal) {
      await http.post(text, signal);
      return 'answered';
    },
    agreed: (protocol) => http.agreed(protocol),
    abandon: () => void http.close(),
    close: () => http.close(),
  };
}

const COMPILES_NOTHING = {
  getValidator: (): never => {
    throw new InvariantError('the schema of a server was about to be compiled');
  },
};

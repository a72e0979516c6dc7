// Upstream MCP servers, by the client of the MCP SDK: it agrees on a protocol, numbers requests and tells the server
// what was cancelled. The wires are our own (child-lines, http-messages), for what the SDK's leave open: who gets which
// environment, how much is read, how deep, and whether a request has left. Its `listTools` and `callTool` are not used:
// they compile the schemas that a server sends into code, before anybody has looked at them.

import { resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, JSONRPCMessageSchema, McpError, ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject } from '../../contract/json.js';
import type { HttpUpstreamServer, StdioUpstreamServer } from '../../contract/policy/upstreams.js';
import { CodedError, ActionFailedError, InvariantError, ActionNotExecutedError } from '../../errors.js';
import type { ConnectOptions, UpstreamConnector, UpstreamCall, UpstreamLink } from '../../ports/effects/upstream.js';
import { ChildLines, childEnvironment } from './child-lines.js';
import { HttpMessages, parseServerUrl, readToken } from './http-messages.js';
import { UnsolicitedLimit } from './unsolicited-limit.js';

/** Where the key of a call stands in its `_meta`, under a prefix of our own. */
export const IDEMPOTENCY_KEY = 'turnpike/idempotency-key';

const MESSAGE_BYTES_MAX = 8_388_608;
/** What nobody asked for, in ten seconds: of one message that is longer, the time that reading it takes is enough. */
const UNSOLICITED_CHARS_MAX = 1_048_576;
/** The time of a request is its caller's affair, who aborts it. This is as much as a timer can hold. */
const NO_TIMEOUT_MS = 2_147_483_647;
const CANCELLATION_MS = 5_000;
const LIST_CHANGED = 'notifications/tools/list_changed';

type RequestKey = string | number;

/** What carries messages to one server, and back. */
interface Wire {
  readonly isOpen: boolean;
  /** For people, where connecting failed. */
  readonly stderrTail: string;
  start(): Promise<void>;
  /** @returns whether what was said to it has been answered completely. @throws NotExecuted, as `UpstreamLink` does */
  send(text: string, signal: AbortSignal): Promise<'written' | 'answered'>;
  setProtocol(protocol: string): void;
  /** Ends it without a farewell. */
  terminate(): void;
  close(): Promise<void>;
}

interface MessageListener {
  onMessage(text: string): void;
  onEnd(): void;
}

/** Connects to a server as its entry in upstreams.json says. */
export const connectMcp: UpstreamConnector = async (server, options) => {
  const transport = new GuardedTransport(options.parse, (receiver) =>
    server.transport === 'stdio' ? childWire(server, options.folder, receiver) : httpWire(server, receiver),
  );
  const client = new Client(
    { name: 'turnpike', version: '1' },
    { capabilities: {}, jsonSchemaValidator: NO_SCHEMA_COMPILER },
  );
  try {
    await client.connect(transport, { signal: options.signal, timeout: NO_TIMEOUT_MS });
    if (client.getServerCapabilities()?.tools === undefined) throw new Error('the server offers no tools');
  } catch (error) {
    const { stderrTail } = transport;
    await transport.close();
    const why = error instanceof McpError ? 'the server did not greet back' : (error as Error).message;
    throw new Error(stderrTail === '' ? why : `${why}; its last words: ${stderrTail}`);
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

  get isOpen(): boolean {
    return this.#transport.isOpen;
  }

  get toolListChanges(): number {
    return this.#transport.toolListChanges;
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
    if (!this.isOpen) throw new ActionNotExecutedError('the connection to the server is closed');
    if (signal.aborted) throw new ActionNotExecutedError('the request was given up before it was sent');
    // The SDK never lets go of a signal, and would cancel what has long been answered.
    const own = new AbortController();
    const cancel = (): void => own.abort('given up');
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const options = { signal: own.signal, timeout: NO_TIMEOUT_MS };
      // Asked for as anything at all: the SDK's own schemas would drop members that the pin of a definition covers.
      // It has come out of `parse`, so it is JSON.
      return (await this.#client.request(request, ResultSchema, options)) as JsonObject;
    } catch (error) {
      throw toUpstreamError(error);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

/** JSON-RPC's codes for a request that was not taken on. */
const REJECTED_CODES: readonly number[] = [
  ErrorCode.ParseError,
  ErrorCode.InvalidRequest,
  ErrorCode.MethodNotFound,
  ErrorCode.InvalidParams,
];
/** The SDK's own, for a connection that broke and a call that was given up; servers use them too. */
const UNKNOWN_OUTCOME_CODES: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout];

/** Errors without the words of the server: they go to the log. */
function toUpstreamError(error: unknown): Error {
  if (error instanceof CodedError) return error;
  if (!(error instanceof McpError)) return new Error('the server gave no answer that can be read');
  const message = `the server answered with the error ${error.code}`;
  if (REJECTED_CODES.includes(error.code)) return new ActionNotExecutedError(message, { retryable: false });
  if (UNKNOWN_OUTCOME_CODES.includes(error.code)) return new Error('the connection was lost, or the call was given up');
  return new ActionFailedError(message);
}

/** What the SDK sees of a wire: messages that are answers to what was asked, and not too many of any others. */
class GuardedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  toolListChanges = 0;
  readonly #parse: ConnectOptions['parse'];
  readonly #wireFor: (receiver: MessageListener) => Wire;
  readonly #outstanding = new Map<RequestKey, AbortController>();
  readonly #unsolicited = new UnsolicitedLimit(UNSOLICITED_CHARS_MAX);
  #wire: Wire | null = null;
  #ended = false;

  constructor(parse: ConnectOptions['parse'], wireFor: (receiver: MessageListener) => Wire) {
    this.#parse = parse;
    this.#wireFor = wireFor;
  }

  get isOpen(): boolean {
    return !this.#ended && this.#wire?.isOpen === true;
  }

  get stderrTail(): string {
    return this.#wire?.stderrTail ?? '';
  }

  async start(): Promise<void> {
    this.#wire = this.#wireFor({ onMessage: (text) => this.#receive(text), onEnd: () => this.#end() });
    await this.#wire.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#wire === null || this.#ended) throw new ActionNotExecutedError('the connection to the server is closed');
    const text = JSON.stringify(message);
    if (!('method' in message) || !('id' in message)) {
      await this.#wire.send(text, AbortSignal.timeout(CANCELLATION_MS)).finally(() => this.#releaseCancelled(message));
      return;
    }
    const abort = new AbortController();
    this.#outstanding.set(message.id, abort);
    const delivery = await this.#wire.send(text, abort.signal);
    if (delivery === 'answered' && this.#outstanding.delete(message.id)) throw new Error('the answer is missing');
  }

  setProtocolVersion(version: string): void {
    this.#wire?.setProtocol(version);
  }

  async close(): Promise<void> {
    await this.#wire?.close();
    this.#end();
  }

  #receive(text: string): void {
    if (this.#ended) return;
    const message = this.#parseMessage(text);
    if (message === 'broken' || this.#unsolicited.isExceeded) {
      // What was asked has become unknown at once, instead of when its time is over.
      this.#wire?.terminate();
      this.#end();
      return;
    }
    if (message !== null) this.onmessage?.(message);
  }

  /** @returns null for what is of no interest */
  #parseMessage(text: string): JSONRPCMessage | 'broken' | null {
    // Programs that say hello on their stdout are no danger, as long as they do not go on about it.
    if (!text.startsWith('{')) return this.#countUnsolicited(text, null);
    const checked = JSONRPCMessageSchema.safeParse(this.#parse(text));
    if (!checked.success) return 'broken';
    const message = checked.data;
    if ('method' in message) {
      if (message.method === LIST_CHANGED) this.toolListChanges += 1;
      return this.#countUnsolicited(text, message);
    }
    const isAnswer = message.id !== undefined && this.#outstanding.delete(message.id);
    return isAnswer ? message : this.#countUnsolicited(text, null);
  }

  #countUnsolicited<T>(text: string, message: T): T {
    this.#unsolicited.count(text);
    return message;
  }

  /** Nobody waits for the answer any more. */
  #releaseCancelled(message: JSONRPCMessage): void {
    if (!('method' in message) || message.method !== 'notifications/cancelled') return;
    const requestId = message.params?.['requestId'] as RequestKey | undefined;
    if (requestId === undefined) return;
    this.#outstanding.get(requestId)?.abort();
    this.#outstanding.delete(requestId);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onclose?.();
  }
}

/** Answers come when they come. */
function childWire(server: StdioUpstreamServer, folder: string, receiver: MessageListener): Wire {
  const { command, cwd = '.', env = [] } = server;
  let child: ChildLines | null = null;
  return {
    get isOpen() {
      return child?.isOpen === true;
    },
    get stderrTail() {
      return child?.stderrTail ?? '';
    },
    async start() {
      const options = { argv: command, cwd: resolve(folder, cwd), env: childEnvironment(env) };
      const listener = { onLine: (text: string) => receiver.onMessage(text), onEnd: () => receiver.onEnd() };
      child = await ChildLines.start({ ...options, lineBytesMax: MESSAGE_BYTES_MAX }, listener);
    },
    async send(text) {
      if (child === null) throw new InvariantError('a wire is written to before it is there');
      await child.write(text);
      return 'written';
    },
    setProtocol: () => undefined,
    terminate: () => child?.terminate(),
    close: async () => child?.close(),
  };
}

/** An answer is part of what is sent. */
function httpWire(server: HttpUpstreamServer, receiver: MessageListener): Wire {
  const options = { url: parseServerUrl(server.url), token: readToken(server.token_env) };
  const http = new HttpMessages({ ...options, messageBytesMax: MESSAGE_BYTES_MAX }, (text) =>
    receiver.onMessage(text.trim()),
  );
  return {
    get isOpen() {
      return http.isOpen;
    },
    stderrTail: '',
    start: () => Promise.resolve(),
    async send(text, signal) {
      await http.post(text, signal);
      return 'answered';
    },
    setProtocol: (protocol) => http.setProtocol(protocol),
    terminate: () => void http.close(),
    close: () => http.close(),
  };
}

const NO_SCHEMA_COMPILER = {
  getValidator: (): never => {
    throw new InvariantError('the schema of a server was about to be compiled');
  },
};

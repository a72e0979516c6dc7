// Connects to upstream MCP servers with the client of the MCP SDK, which negotiates the protocol, numbers requests and
// sends cancellations. The transports are ours (child-lines, http-messages), for what those of the SDK leave open: the
// environment of a child, limits of size and depth, and whether a request was sent. `listTools` and `callTool` of the
// SDK are not used: they compile a server's schemas into code before those were checked.

import { resolve } from 'node:path';
import {
  Client,
  parseJSONRPCMessage,
  ProtocolError,
  ProtocolErrorCode,
  SdkHttpError,
  type JSONRPCMessage,
  type PriorDiscovery,
  type StandardSchemaV1,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client';
import { isJsonObject, type JsonObject, scanJson } from '../../../core/contract/json.js';
import type {
  HttpUpstreamServer,
  StdioUpstreamServer,
  UpstreamServer,
} from '../../../core/contract/policy/upstreams.js';
import { CodedError, ActionFailedError, InvariantError, ActionNotExecutedError } from '../../../core/errors.js';
import type { UpstreamCall, UpstreamLink } from '../../../engine/ports/effects/upstream.js';
import { ChildLines, childEnvironment, type LineListener } from './child-lines.js';
import { readToken } from '../../../system/environment.js';
import { HttpMessages, parseServerUrl } from './http-messages.js';
import { IDEMPOTENCY_KEY } from '../../../core/contract/idempotency-key.js';

const MESSAGE_BYTES_MAX = 8_388_608;
/** Limit of unsolicited text in ten seconds; one message may be longer, because the time to read it limits it too. */
const UNSOLICITED_CHARS_MAX = 1_048_576;
/** The maximum of a timer: the caller limits the time of a request, by aborting it. */
const NO_TIMEOUT_MS = 2_147_483_647;
const CANCELLATION_MS = 5_000;
/** How long a server may take to say which versions it has, before it is treated as an old one over stdio. */
const PROBE_MS = 5_000;
const LIST_CHANGED = 'notifications/tools/list_changed';

/** The depth of JSON in a message. */
const MESSAGE_DEPTH_MAX = 64;

type RequestKey = string | number;

/** What carries messages to and from one server. */
type Wire = ChildLines | HttpMessages;

interface ConnectOptions {
  /** The base directory of relative paths. */
  readonly folder: string;
  /** Aborts the connection attempt. */
  readonly signal: AbortSignal;
}

/**
 * Connects to a server as configured in upstreams.json, with protocol 2026-07-28 if the server has it, else with an
 * older one. An old server over stdio may end when it is asked for its versions. It is started again, and not asked.
 */
export async function connectMcp(server: UpstreamServer, options: ConnectOptions): Promise<UpstreamLink> {
  const probed = await connectOnce(server, options);
  if (probed instanceof McpLink) return probed;
  const { error, isChildGone } = probed;
  if (!isChildGone || options.signal.aborted) throw error;
  const link = await connectOnce(server, options, { kind: 'legacy' });
  if (link instanceof McpLink) return link;
  throw link.error;
}

interface FailedConnection {
  /** Its message has no secret. */
  readonly error: Error;
  /** Whether the server has ended before it said which versions it has. */
  readonly isChildGone: boolean;
}

async function connectOnce(
  server: UpstreamServer,
  { folder, signal }: ConnectOptions,
  prior?: PriorDiscovery,
): Promise<McpLink | FailedConnection> {
  const transport =
    server.transport === 'stdio'
      ? new StdioTransport((listener) => startChild(server, folder, listener))
      : new HttpTransport((listener) => openHttp(server, listener));
  const client = new Client(
    { name: 'turnpike', version: '1' },
    {
      capabilities: {},
      jsonSchemaValidator: NO_SCHEMA_COMPILER,
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: PROBE_MS } },
      // A server that needs more input gets none: the outcome of its call is unknown.
      inputRequired: { autoFulfill: false },
    },
  );
  const abort = (): void => void transport.close();
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    await client.connect(transport, { signal, timeout: NO_TIMEOUT_MS, ...(prior === undefined ? {} : { prior }) });
    if (client.getServerCapabilities()?.tools === undefined) throw new Error('the server offers no tools');
    return new McpLink(client, transport);
  } catch (error) {
    const { stderrTail } = transport;
    const isChildGone = server.transport === 'stdio' && transport.hasEnded && !transport.isGreeted;
    await transport.close();
    const why = toConnectMessage(error);
    return { error: new Error(stderrTail === '' ? why : `${why}; its last words: ${stderrTail}`), isChildGone };
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function toConnectMessage(error: unknown): string {
  if (error instanceof ProtocolError) return 'the server did not greet back';
  if (error instanceof SdkHttpError) return `the server answered with the status ${error.data.status}`;
  return (error as Error).message;
}

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

  callTool({ tool, input, idempotency_key, trace }: UpstreamCall, signal: AbortSignal): Promise<JsonObject> {
    const _meta = { ...trace, [IDEMPOTENCY_KEY]: idempotency_key };
    return this.#request({ method: 'tools/call', params: { name: tool, arguments: { ...input }, _meta } }, signal);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #request(request: Parameters<Client['request']>[0], signal: AbortSignal): Promise<JsonObject> {
    if (!this.isOpen) throw new ActionNotExecutedError('the connection to the server is closed');
    if (signal.aborted) throw new ActionNotExecutedError('the request was given up before it was sent');
    // The SDK never releases a signal, and would send cancellations for completed requests.
    const own = new AbortController();
    const cancel = (): void => own.abort('given up');
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const options = { signal: own.signal, timeout: NO_TIMEOUT_MS };
      // The SDK's own schemas would drop members that the pin of a definition covers.
      return await this.#client.request(request, ANY_RESULT, options);
    } catch (error) {
      throw toUpstreamError(error);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

/** The headers of a request contradict its body. */
const HEADER_MISMATCH = -32_020;
/** JSON-RPC error codes of a request that was not executed. */
const REJECTED_CODES: readonly number[] = [
  ProtocolErrorCode.ParseError,
  ProtocolErrorCode.InvalidRequest,
  ProtocolErrorCode.MethodNotFound,
  ProtocolErrorCode.InvalidParams,
  ProtocolErrorCode.MissingRequiredClientCapability,
  ProtocolErrorCode.UnsupportedProtocolVersion,
  HEADER_MISMATCH,
];
/** The codes that older SDKs use for a lost connection and a cancelled request; servers send them too. */
const UNKNOWN_OUTCOME_CODES: readonly number[] = [-32_000, -32_001];

/** Maps errors without including the server's text, because the message is logged. */
function toUpstreamError(error: unknown): Error {
  if (error instanceof CodedError) return error;
  if (!(error instanceof ProtocolError))
    return new Error('the connection was lost, the call was given up, or the answer cannot be read');
  const message = `the server answered with the error ${error.code}`;
  if (REJECTED_CODES.includes(error.code)) return new ActionNotExecutedError(message, { retryable: false });
  if (UNKNOWN_OUTCOME_CODES.includes(error.code)) return new Error('the connection was lost, or the call was given up');
  return new ActionFailedError(message);
}

/** The transport that the SDK uses: passes on responses to outstanding requests, and limits all other messages. */
abstract class GuardedTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  toolListChanges = 0;
  /** Whether the server has answered a request. */
  isGreeted = false;
  readonly #openWire: (listener: LineListener) => Wire | Promise<Wire>;
  readonly #outstanding = new Map<RequestKey, AbortController>();
  readonly #unsolicited = new UnsolicitedLimit();
  #wire: Wire | null = null;
  #ended = false;

  constructor(openWire: (listener: LineListener) => Wire | Promise<Wire>) {
    this.#openWire = openWire;
  }

  get isOpen(): boolean {
    return !this.#ended && this.#wire?.isOpen === true;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  get stderrTail(): string {
    return this.#wire?.stderrTail ?? '';
  }

  async start(): Promise<void> {
    this.#wire = await this.#openWire({ onLine: (text) => this.#receive(text), onEnd: () => this.#end() });
  }

  async send(message: JSONRPCMessage, { requestSignal }: TransportSendOptions = {}): Promise<void> {
    if (this.#wire === null || this.#ended) throw new ActionNotExecutedError('the connection to the server is closed');
    if (!('method' in message) || !('id' in message)) {
      await this.#wire
        .send(message, AbortSignal.timeout(CANCELLATION_MS))
        .finally(() => this.#releaseCancelled(message));
      return;
    }
    const abort = new AbortController();
    this.#outstanding.set(message.id, abort);
    requestSignal?.addEventListener('abort', () => this.#release(message.id), { once: true });
    const delivery = await this.#wire.send(message, abort.signal);
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
    const message = this.#admit(text);
    if (message === 'broken' || this.#unsolicited.isExceeded) {
      // The outcome of outstanding requests becomes unknown at once, instead of at their timeouts.
      this.#wire?.terminate();
      this.#end();
      return;
    }
    if (message !== null) this.onmessage?.(message);
  }

  /** @returns null for a message that is ignored; `broken` for an invalid one */
  #admit(text: string): JSONRPCMessage | 'broken' | null {
    // Programs that print other lines on stdout are tolerated, within the limit.
    if (!text.startsWith('{')) return this.#countUnsolicited(text, null);
    const message = parseMessage(text);
    if (message === null) return 'broken';
    if ('method' in message) {
      if (message.method === LIST_CHANGED) this.toolListChanges += 1;
      return this.#countUnsolicited(text, message);
    }
    const isAnswer = message.id !== undefined && this.#outstanding.delete(message.id);
    this.isGreeted ||= isAnswer;
    return isAnswer ? message : this.#countUnsolicited(text, null);
  }

  #countUnsolicited<T>(text: string, message: T): T {
    this.#unsolicited.count(text);
    return message;
  }

  /** Forgets a cancelled request: no caller waits for its response. */
  #releaseCancelled(message: JSONRPCMessage): void {
    if (!('method' in message) || message.method !== 'notifications/cancelled') return;
    const requestId = message.params?.['requestId'] as RequestKey | undefined;
    if (requestId !== undefined) this.#release(requestId);
  }

  #release(id: RequestKey): void {
    this.#outstanding.get(id)?.abort();
    this.#outstanding.delete(id);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onclose?.();
  }
}

/** The SDK tells by these two members that a server which does not answer at first may be an old one. */
class StdioTransport extends GuardedTransport {
  readonly stderr = null;
  readonly pid = null;
}

/** Each request has its own stream: protocol 2026-07-28 cancels a request by the end of its stream. */
class HttpTransport extends GuardedTransport {
  readonly hasPerRequestStream = true;
}

/** @returns null for a text that is malformed, too deep, has a duplicate key, or is no message */
function parseMessage(text: string): JSONRPCMessage | null {
  const scanned = scanJson(text, MESSAGE_DEPTH_MAX);
  try {
    return scanned.ok ? parseJSONRPCMessage(scanned.value) : null;
  } catch {
    return null;
  }
}

/** A child process: responses arrive independently of requests. */
function startChild(
  { command, cwd = '.', env = [] }: StdioUpstreamServer,
  folder: string,
  listener: LineListener,
): Promise<ChildLines> {
  const options = { argv: command, cwd: resolve(folder, cwd), env: childEnvironment(env) };
  return ChildLines.start({ ...options, lineBytesMax: MESSAGE_BYTES_MAX }, listener);
}

/** HTTP: the response to a request is complete when it is sent. */
function openHttp({ url, token_env }: HttpUpstreamServer, listener: LineListener): HttpMessages {
  const options = { url: parseServerUrl(url), token: readToken(token_env), messageBytesMax: MESSAGE_BYTES_MAX };
  return new HttpMessages(options, (text) => listener.onLine(text.trim()));
}

const NO_SCHEMA_COMPILER = {
  getValidator: (): never => {
    throw new InvariantError('the schema of a server was about to be compiled');
  },
};

/** Accepts every object. It comes from `parseMessage`, so it is JSON. */
const ANY_RESULT: StandardSchemaV1<JsonObject> = {
  '~standard': {
    version: 1,
    vendor: 'turnpike',
    validate: (value) => (isJsonObject(value) ? { value: value } : { issues: [{ message: 'not an object' }] }),
  },
};

// Reading a message costs far more than sending it, and this process serves other runs too. So both the number and the
// size of unsolicited messages count.
const MESSAGES_MAX = 1_000;
const WITHIN_MS = 10_000;

/** Counts notifications, requests, stray responses and lines that are not messages, within a time window. */
class UnsolicitedLimit {
  #messages = 0;
  #chars = 0;
  #since = 0;

  get isExceeded(): boolean {
    return this.#messages > MESSAGES_MAX || this.#chars > UNSOLICITED_CHARS_MAX;
  }

  count(text: string): void {
    const now = performance.now();
    if (now - this.#since > WITHIN_MS) {
      this.#messages = 0;
      this.#chars = 0;
      this.#since = now;
    }
    this.#messages += 1;
    this.#chars += text.length;
  }
}

// Liveness, readiness and metrics on an address of their own, for programs that have no token and reach a process by
// its address: a kubelet, a scraper, a container's health check. Nothing else is served here. Every text is a constant
// or a number: no content, no name of a run, an agent or a file.

import { systemClock } from '../../../system/system-clock.js';
import { winstonLog } from '../../../system/winston-log.js';
import { listenHttp } from '../../../system/network/http-listener.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { Log } from '../../../engine/ports/log.js';
import { hostForUrl } from '../../mcp/serve-http.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ReadinessResult } from '../../../host/readiness/readiness.js';
import type { Readiness } from '../../../host/readiness/readiness.js';
import type { Metrics } from '../metrics.js';
import { pathOf } from '../../service/request-guard.js';

/** Where the listener is. Any address: the texts are for everyone who reaches it. */
export interface AdminAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export interface AdminOptions extends AdminAddress {
  /** Default: a log of warnings on stderr. */
  readonly log?: Log;
}

/** A listener for operators and platforms: liveness, readiness and metrics. */
export interface AdminServer {
  readonly url: string;
  readonly port: number;
  /** The process is ready as soon as its checks hold. Until then only the check `startup` is listed, as failed. */
  begin(process: MonitoredProcess): void;
  /** From now on the process is not ready: it finishes what is in flight. */
  end(): void;
  /** Stops listening. */
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 64;
const HEADER_BYTES_MAX = 8_192;
/** How long requests in flight may take when the listener closes, in ms. */
const CLOSE_MS = 1_000;

/**
 * Listens before the process is ready, so that a slow start is seen as one.
 * @throws UsageError if the address cannot be listened on
 */
export async function serveAdmin(
  { host, port, log = winstonLog('warn') }: AdminOptions,
  clock: Clock = systemClock(),
): Promise<AdminServer> {
  const handler = new AdminHandler(clock, log);
  const listener = await listenHttp({
    host,
    port,
    connections: CONNECTIONS_MAX,
    headerBytes: HEADER_BYTES_MAX,
    handle: (request, response) => handler.handle(request, response),
    onError: (error) => log.error('a request to the admin listener failed', { error }),
  });
  let unwatch = (): void => undefined;
  return {
    url: `http://${hostForUrl(host)}:${listener.port}`,
    port: listener.port,
    begin: (process) => {
      unwatch();
      unwatch = process.readiness.watch();
      handler.begin(process);
    },
    end: () => {
      unwatch();
      handler.end();
    },
    close: async () => {
      unwatch();
      await listener.close(CLOSE_MS);
    },
  };
}

const METHODS: readonly string[] = ['GET', 'HEAD'];
const TEXT = 'text/plain; charset=utf-8';
/** How long the last text is sent again, in ms: clients without a token must not cost more than one report. */
const REUSE_MS = 200;

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const NOT_FOUND: Answer = { status: 404, text: 'not found\n' };
const NOT_SERVED: Answer = { status: 405, text: 'method not served\n', headers: { Allow: METHODS.join(', ') } };
const TOO_LARGE: Answer = { status: 413, text: 'a request has no body here\n', headers: { Connection: 'close' } };
const UNAVAILABLE: Answer = { status: 503, text: 'not available: see the log\n' };
const STARTING: ReadinessResult = { name: 'startup', reason: 'the ledger is being opened' };
const STARTED: ReadinessResult = { name: 'startup', reason: null };
const ENDING: ReadinessResult = { name: 'shutdown', reason: 'the process is ending' };
const RUNNING: ReadinessResult = { name: 'shutdown', reason: null };
const LOOP: ReadinessResult = { name: 'event-loop', reason: null };

/** What the listener shows of a process that serves. */
export interface MonitoredProcess {
  readonly readiness: Readiness;
  readonly metrics: Pick<Metrics, 'text' | 'type'>;
}

/** Answers `/livez`, `/readyz` and `/metrics`. */
export class AdminHandler {
  readonly #log: Pick<Log, 'error'>;
  #process: MonitoredProcess | null = null;
  #isEnding = false;
  readonly #checks: Reused<readonly ReadinessResult[]>;
  readonly #metrics: Reused<string>;

  constructor(clock: Clock, log: Pick<Log, 'error'>) {
    this.#log = log;
    this.#checks = new Reused(clock, () => this.#runChecks());
    this.#metrics = new Reused(clock, async () => (await this.#process?.metrics.text()) ?? '');
  }

  begin(process: MonitoredProcess): void {
    this.#process = process;
    this.#forget();
  }

  end(): void {
    this.#isEnding = true;
    this.#forget();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, text, type = TEXT, headers } = await this.#answer(request);
    response.writeHead(status, {
      'Content-Type': type,
      'Content-Length': Buffer.byteLength(text),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...headers,
    });
    response.end(request.method === 'HEAD' ? undefined : text);
  }

  async #answer({ method = '', url = '', headers }: IncomingMessage): Promise<Answer> {
    const { 'content-length': length = '0', 'transfer-encoding': chunks } = headers;
    if (length !== '0' || chunks !== undefined) return TOO_LARGE;
    const answer = this.#answerOf(pathOf(url), isVerbose(url));
    if (answer === null) return NOT_FOUND;
    if (!METHODS.includes(method)) return NOT_SERVED;
    try {
      return await answer();
    } catch (error) {
      this.#log.error('a request to the admin listener failed', { error });
      return UNAVAILABLE;
    }
  }

  #answerOf(path: string, verbose: boolean): (() => Promise<Answer>) | null {
    switch (path) {
      case '/livez':
        // An event loop that does not run sends no answer at all.
        return () => Promise.resolve(answerOf('livez', [LOOP], verbose));
      case '/readyz':
        return async () => answerOf('readyz', await this.#checks.get(), verbose);
      case '/metrics':
        return () => this.#metricsAnswer();
      default:
        return null;
    }
  }

  async #metricsAnswer(): Promise<Answer> {
    if (this.#process === null) return UNAVAILABLE;
    return { status: 200, text: await this.#metrics.get(), type: this.#process.metrics.type };
  }

  async #runChecks(): Promise<readonly ReadinessResult[]> {
    if (this.#isEnding) return [ENDING];
    if (this.#process === null) return [STARTING];
    return [STARTED, RUNNING, ...(await this.#process.readiness.report()).checks];
  }

  #forget(): void {
    this.#checks.forget();
    this.#metrics.forget();
  }
}

/** The answer in the style of Kubernetes: the list of checks on request, and whenever one has failed. */
function answerOf(route: string, checks: readonly ReadinessResult[], verbose: boolean): Answer {
  if (checks.some(({ reason }) => reason !== null)) return { status: 503, text: failedText(route, checks) };
  return { status: 200, text: verbose ? passedText(route, checks) : 'ok' };
}

const isVerbose = (url: string): boolean => {
  const query = url.indexOf('?');
  return query >= 0 && new URLSearchParams(url.slice(query)).has('verbose');
};

/** A value that concurrent and quickly repeated requests share. */
class Reused<T> {
  readonly #clock: Clock;
  readonly #read: () => Promise<T>;
  #value: Promise<T> | null = null;

  constructor(clock: Clock, read: () => Promise<T>) {
    this.#clock = clock;
    this.#read = read;
  }

  get(): Promise<T> {
    if (this.#value !== null) return this.#value;
    const value = this.#read();
    this.#value = value;
    const forget = (): void => {
      if (this.#value === value) this.#value = null;
    };
    value.then(() => this.#clock.wake(this.#clock.now() + REUSE_MS, forget), forget);
    return value;
  }

  forget(): void {
    this.#value = null;
  }
}

const lineOf = ({ name, reason }: ReadinessResult): string =>
  reason === null ? `[+]${name} ok\n` : `[-]${name} failed: ${reason}\n`;

const passedText = (route: string, checks: readonly ReadinessResult[]): string =>
  `${checks.map(lineOf).join('')}${route} check passed\n`;

const failedText = (route: string, checks: readonly ReadinessResult[]): string =>
  `${checks.map(lineOf).join('')}${route} check failed\n`;

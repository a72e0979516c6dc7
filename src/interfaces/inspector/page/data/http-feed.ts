// The ledger of a service. Every request sends the token as a header; it is never part of an address.

import type { LedgerInfo, RowPage } from '../../../../core/contract/inspection/inspection.js';
import { FeedError, toAccessProblem, TOKEN_ABSENT, type Feed, type FeedListener } from './feed.js';
import { noteRefusal, readSession } from './page-session.js';
import { SseParser } from './sse.js';

const RETRY_MS = 1_500;
const RETRY_MS_MAX = 15_000;

export class HttpFeed implements Feed {
  readonly #base: string;
  readonly #token: string | null;
  readonly #online: EventTarget;
  readonly #onSession: () => void;
  #isLive = true;
  /** The difference between the clocks of service and reader, from the last response; in milliseconds. */
  #clockOffset: number | null = null;

  /**
   * @param online emits `online` when the network is available again
   * @param onSession called when the service has answered a request without a token: a person has signed in
   */
  constructor(
    base: string,
    token: string | null,
    online: EventTarget = new EventTarget(),
    onSession: () => void = () => undefined,
  ) {
    this.#onSession = onSession;
    this.#base = base;
    this.#token = token;
    this.#online = online;
  }

  async info(): Promise<LedgerInfo> {
    const info = await this.#json<LedgerInfo>('/inspector/ledger');
    this.#isLive = info.live;
    return info;
  }
  rows(from: number, to: number): Promise<RowPage> {
    return this.#json(`/inspector/rows?from=${from}&to=${to}`);
  }
  async entries(from: number, to: number): Promise<readonly string[]> {
    const answer = await this.request(`/inspector/entries?from=${from}&to=${to}`);
    const text = await answer.text();
    return text === '' ? [] : text.replace(/\n$/, '').split('\n');
  }
  event(at: number) {
    return this.#jsonOrNull<Awaited<ReturnType<Feed['event']>>>(`/events/${at}`);
  }
  async artifact(at: number, sha256: string): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      const answer = await this.request(`/events/${at}/artifacts/${sha256}`);
      return new Uint8Array(await answer.arrayBuffer());
    } catch (error) {
      return nullIfAbsent(error);
    }
  }
  course(run_id: string, after: number) {
    return this.#jsonOrNull<Awaited<ReturnType<Feed['course']>>>(
      `/inspector/courses/${encodeURIComponent(run_id)}?after=${after}`,
    );
  }
  chart(hash: string) {
    return this.#jsonOrNull<Awaited<ReturnType<Feed['chart']>>>(`/inspector/charts/${encodeURIComponent(hash)}`);
  }
  step(run_id: string, step: number) {
    return this.#jsonOrNull<Awaited<ReturnType<Feed['step']>>>(
      `/inspector/steps/${encodeURIComponent(run_id)}/${step}`,
    );
  }
  why(at: number) {
    return this.#jsonOrNull<Awaited<ReturnType<Feed['why']>>>(`/inspector/why/${at}`);
  }
  session(session_id: string, at: number | null) {
    const moment = at === null ? '' : `?at=${at}`;
    return this.#jsonOrNull<Awaited<ReturnType<Feed['session']>>>(
      `/inspector/sessions/${encodeURIComponent(session_id)}${moment}`,
    );
  }

  /** Any request below `/api/v1`. @throws FeedError for an unsuccessful response */
  async request(path: string, options: RequestInit = {}): Promise<Response> {
    const headers = new Headers(options.headers);
    if (this.#token !== null) headers.set('Authorization', `Bearer ${this.#token}`);
    else if (options.method !== undefined) headers.set('X-Turnpike-CSRF', (await readSession(this.#base))?.csrf ?? '');
    // Without a token, the person may have signed in: the browser then has a cookie.
    const credentials = this.#token === null ? 'same-origin' : 'omit';
    const answer = await fetch(`${this.#base}/api/v1${path}`, { ...options, headers, credentials });
    if (this.#token === null && answer.ok) this.#onSession();
    const date = Date.parse(answer.headers.get('Date') ?? '');
    // The header has whole seconds; the service's clock is on average half a second further.
    if (Number.isFinite(date)) this.#clockOffset = date + 500 - Date.now();
    if (!answer.ok) throw await readProblem(answer, this.#token !== null);
    return answer;
  }

  now(): number | null {
    return this.#clockOffset === null ? null : Date.now() + this.#clockOffset;
  }

  async follow(listener: FeedListener, until: AbortSignal): Promise<void> {
    if (!this.#isLive) {
      listener.onConnection('closed');
      return;
    }
    const isOver = (): boolean => until.aborted;
    let wait = RETRY_MS;
    listener.onConnection('connecting');
    for (;;) {
      const ended = await this.#streamOnce(listener, until);
      if (isOver()) return;
      if (ended === 'refused' || ended === 'other') {
        listener.onConnection(ended);
        return;
      }
      wait = ended ?? Math.min(wait * 1.6, RETRY_MS_MAX);
      listener.onConnection('lost');
      await pause(wait, until, this.#online);
      if (isOver()) return;
    }
  }

  /** @returns how long to wait before the next attempt; null if there was no connection */
  async #streamOnce(listener: FeedListener, until: AbortSignal): Promise<number | 'refused' | 'other' | null> {
    const once = { connected: false };
    const onBegin = (): void => {
      once.connected = true;
      listener.onConnection('live');
    };
    try {
      // Accept no rows before it is known which ledger they belong to.
      if (await this.#isOther(listener)) return 'other';
      return (await this.#stream(listener, until, onBegin)) ?? RETRY_MS;
    } catch (error) {
      if (toAccessProblem(error) !== null) return 'refused';
      return once.connected ? RETRY_MS : null;
    }
  }

  /** One connection, until it ends. @returns how long the server asks to wait before the next one */
  async #stream(listener: FeedListener, until: AbortSignal, onBegin: () => void): Promise<number | null> {
    const last = listener.from() - 1;
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (last >= 0) headers['Last-Event-ID'] = String(last);
    const answer = await this.request('/stream?format=rows', { headers, signal: until });
    if (answer.body === null) return null;
    onBegin();
    const parser = new SseParser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parser.retry;
      for (const { event, data } of parser.push(value)) {
        if (event === 'rows') await listener.onPage(JSON.parse(data) as RowPage);
      }
    }
  }

  /** Also handles a ledger that was restored to an earlier state: rows after that state are outdated. */
  async #isOther({ ledger, from }: FeedListener): Promise<boolean> {
    if (ledger === null) return false;
    const { ledger_id, size } = await this.info();
    return ledger_id !== ledger || size < from();
  }

  async #json<T>(path: string): Promise<T> {
    return (await (await this.request(path)).json()) as T;
  }
  async #jsonOrNull<T>(path: string): Promise<T | null> {
    try {
      return await this.#json<T>(path);
    } catch (error) {
      return nullIfAbsent(error);
    }
  }
}

/** Null for 404; any other failure is thrown. */
function nullIfAbsent(error: unknown): null {
  if (error instanceof FeedError && (error.status === 404 || error.status === 410)) return null;
  throw error;
}

async function readProblem(answer: Response, isKnown: boolean): Promise<FeedError> {
  noteRefusal(answer.headers);
  try {
    const { code = '', detail, title } = (await answer.json()) as { code?: string; detail?: string; title?: string };
    const own = answer.status === 401 && !isKnown ? TOKEN_ABSENT : code;
    return new FeedError(answer.status, own, detail ?? title ?? answer.statusText);
  } catch {
    return new FeedError(answer.status, '', answer.statusText || `HTTP ${answer.status}`);
  }
}

/** Waits, but at most until the network is available again. */
function pause(ms: number, until: AbortSignal, online: EventTarget): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const go = (): void => {
      clearTimeout(timer);
      resolve();
    };
    until.addEventListener('abort', go, { once: true });
    online.addEventListener('online', go, { once: true });
  });
}

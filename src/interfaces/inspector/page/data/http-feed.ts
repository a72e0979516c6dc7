// The ledger of a service. Every request sends the token as a header; it is never part of an address. The stream is
// read with fetch, because EventSource cannot send a header.

import type { LedgerInfo, RowPage } from '../../../../core/contract/inspection/inspection.js';
import { FeedError, toAccessProblem, TOKEN_ABSENT, type Feed, type FeedListener } from './feed.js';

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
  event(at: number): ReturnType<Feed['event']> {
    return this.#jsonOrNull(`/events/${at}`);
  }
  async artifact(at: number, sha256: string): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      const answer = await this.request(`/events/${at}/artifacts/${sha256}`);
      return new Uint8Array(await answer.arrayBuffer());
    } catch (error) {
      return nullIfAbsent(error);
    }
  }
  course(run_id: string, after: number): ReturnType<Feed['course']> {
    return this.#jsonOrNull(`/inspector/courses/${encodeURIComponent(run_id)}?after=${after}`);
  }
  chart(hash: string): ReturnType<Feed['chart']> {
    return this.#jsonOrNull(`/inspector/charts/${encodeURIComponent(hash)}`);
  }
  step(run_id: string, step: number): ReturnType<Feed['step']> {
    return this.#jsonOrNull(`/inspector/steps/${encodeURIComponent(run_id)}/${step}`);
  }
  why(at: number): ReturnType<Feed['why']> {
    return this.#jsonOrNull(`/inspector/why/${at}`);
  }
  session(session_id: string, at: number | null): ReturnType<Feed['session']> {
    const moment = at === null ? '' : `?at=${at}`;
    return this.#jsonOrNull(`/inspector/sessions/${encodeURIComponent(session_id)}${moment}`);
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

  /** One connection, until it ends. @returns how long to wait before the next one; null if there was none */
  async #streamOnce(listener: FeedListener, until: AbortSignal): Promise<number | 'refused' | 'other' | null> {
    const parser = new SseParser();
    let isConnected = false;
    try {
      // Accept no rows before it is known which ledger they belong to.
      if (await this.#isOther(listener)) return 'other';
      const last = listener.from() - 1;
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (last >= 0) headers['Last-Event-ID'] = String(last);
      const { body } = await this.request('/stream?format=rows', { headers, signal: until });
      if (body === null) return RETRY_MS;
      isConnected = true;
      listener.onConnection('live');
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return parser.retry ?? RETRY_MS;
        for (const { event, data } of parser.push(value))
          if (event === 'rows') await listener.onPage(JSON.parse(data) as RowPage);
      }
    } catch (error) {
      if (toAccessProblem(error) !== null) return 'refused';
      return isConnected ? RETRY_MS : null;
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
    const over = new AbortController();
    const go = (): void => {
      clearTimeout(timer);
      over.abort();
      resolve();
    };
    const timer = setTimeout(go, ms);
    until.addEventListener('abort', go, { signal: over.signal });
    online.addEventListener('online', go, { signal: over.signal });
  });
}

/**
 * The session of a person who has signed in on the page. Its cookie is out of reach here; the service says who the
 * person is, and the secret that a change must send.
 */
export interface PageSession {
  readonly actor: string;
  readonly role: string;
  readonly csrf: string;
}

const SIGN_IN_PATH = '/auth/login';
let canSignIn = false;

/** Remembers whether the service that refused a request lets people sign in. */
function noteRefusal(headers: Headers): void {
  if (headers.get('Turnpike-Sign-In') === SIGN_IN_PATH) canSignIn = true;
}

/** The address at which a person signs in and returns to a view; null if the service has none. */
export const signInAddress = (view: string): string | null =>
  canSignIn ? `${SIGN_IN_PATH}?return=${encodeURIComponent(view)}` : null;

/** The session of this browser; null without. */
export async function readSession(base = ''): Promise<PageSession | null> {
  const answer = await fetch(`${base}/auth/session`, { credentials: 'same-origin' });
  return answer.ok ? ((await answer.json()) as PageSession) : null;
}

export async function signOut({ csrf }: PageSession): Promise<void> {
  const headers = { 'X-Turnpike-CSRF': csrf };
  await fetch('/auth/logout', { method: 'POST', credentials: 'same-origin', headers });
}

interface SseMessage {
  readonly event: string;
  readonly data: string;
}

/** Parses server-sent events from decoded text, which has no byte order mark, as the HTML standard defines. */
export class SseParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  /** Milliseconds that the server asks to wait before the next attempt. */
  retry: number | null = null;

  /** The messages that this piece of the stream completes. */
  push(piece: string): readonly SseMessage[] {
    const text = this.#rest + piece;
    const found: SseMessage[] = [];
    let from = 0;
    for (;;) {
      const [end, next] = lineEnd(text, from);
      if (end < 0) break;
      const message = this.#line(text.slice(from, end));
      if (message !== null) found.push(message);
      from = next;
    }
    this.#rest = text.slice(from);
    return found;
  }

  #line(line: string): SseMessage | null {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.#event = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'retry' && /^\d{1,7}$/.test(value)) this.retry = Number(value);
    return null;
  }

  #dispatch(): SseMessage | null {
    const [event, data] = [this.#event, this.#data];
    this.#event = '';
    this.#data = [];
    return data.length === 0 ? null : { event: event || 'message', data: data.join('\n') };
  }
}

/** The end of the next line and the start of the one after it. A CR at the very end may be half of a CR LF. */
function lineEnd(text: string, from: number): readonly [end: number, next: number] {
  const lf = text.indexOf('\n', from);
  const cr = text.indexOf('\r', from);
  if (cr < 0 || (lf >= 0 && lf < cr)) return [lf, lf + 1];
  if (cr === text.length - 1) return [-1, -1];
  return [cr, text[cr + 1] === '\n' ? cr + 2 : cr + 1];
}

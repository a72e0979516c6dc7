// The ledger that is embedded in the page: a file that is opened without a service.

import type { InlineData } from '../../render-one-file.js';
import { fromBase64 } from '../worker/compact-range.js';
import type { Feed, FeedListener } from './feed.js';

export class InlineFeed implements Feed {
  readonly #data: InlineData;

  constructor(data: InlineData) {
    this.#data = data;
  }

  info(): ReturnType<Feed['info']> {
    return Promise.resolve({ ...this.#data.info, live: false, approvals: false });
  }
  rows(from: number, to: number): ReturnType<Feed['rows']> {
    const page = this.#data.pages.find((one) => one.from <= from && from < one.from + one.rows.length);
    if (page === undefined) return Promise.resolve({ from, texts: [], time_base: 0, rows: [] });
    return Promise.resolve({ ...page, from, rows: page.rows.slice(from - page.from, to - page.from) });
  }
  entries(from: number, to: number): ReturnType<Feed['entries']> {
    const { begin } = this.#data.info;
    return Promise.resolve(this.#data.entries.slice(from - begin, to - begin));
  }
  event(at: number): ReturnType<Feed['event']> {
    const text = this.#data.entries[at - this.#data.info.begin];
    const details = this.#data.events[at];
    return Promise.resolve(text === undefined || details === undefined ? null : { log_index: at, text, ...details });
  }
  artifact(_at: number, sha256: string): ReturnType<Feed['artifact']> {
    const text = this.#data.artifacts[sha256];
    return Promise.resolve(text === undefined ? null : fromBase64(text));
  }
  course(run_id: string): ReturnType<Feed['course']> {
    return Promise.resolve(this.#data.courses[run_id] ?? null);
  }
  chart(hash: string): ReturnType<Feed['chart']> {
    return Promise.resolve(this.#data.charts[hash] ?? null);
  }
  step(run_id: string, step: number): ReturnType<Feed['step']> {
    return Promise.resolve(this.#data.steps[`${run_id}/${step}`] ?? null);
  }
  why(at: number): ReturnType<Feed['why']> {
    return Promise.resolve(this.#data.whys[at] ?? null);
  }
  /** The session at the end of the file, whatever position is requested; it names its entry. */
  session(session_id: string): ReturnType<Feed['session']> {
    return Promise.resolve(this.#data.sessions[session_id] ?? null);
  }
  now(): null {
    return null;
  }
  follow(listener: FeedListener): Promise<void> {
    listener.onConnection('closed');
    return Promise.resolve();
  }
}

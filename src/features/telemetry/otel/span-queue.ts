import type { SpanOutcome, SpanStart } from '../../../engine/ports/telemetry.js';
import type { SpanBatch, SpanIds, SpanRequest } from './span-batch.js';

/** Sends spans to a collector. */
export interface SpanExporter {
  export(request: SpanRequest, done: (result: { readonly error?: Error }) => void): void;
  shutdown(): Promise<void>;
}

export interface SpanQueueOptions {
  readonly exporter: SpanExporter;
  /** The spans of the next export. */
  readonly batch: SpanBatch;
  /** Spans that wait for their export. One more is dropped. */
  readonly spansMax: number;
  readonly batchMax: number;
  readonly intervalMs: number;
  /** For how long a shutdown waits for the collector. */
  readonly shutdownMs: number;
}

/** Why spans were not exported. */
export type DropReason = 'queue_full' | 'export_failed';

/**
 * The spans that wait for the collector. A span that ends never waits: beyond the limit it is dropped and counted. One
 * export is in flight at a time. (`BatchSpanProcessor` of the SDK is the same without the counts.)
 */
export class SpanQueue {
  readonly dropped: Record<DropReason, number> = { queue_full: 0, export_failed: 0 };
  exported = 0;
  readonly #options: SpanQueueOptions;
  /** Full batches. */
  #requests: SpanRequest[] = [];
  /** Spans of the full batches and of the next one. */
  #waiting = 0;
  #timer: NodeJS.Timeout | null = null;
  /** The export in flight. It never rejects. */
  #exporting: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  /** Takes a span that is over. */
  add(start: SpanStart, end: SpanOutcome, ids: SpanIds): void {
    const { batch, batchMax, spansMax } = this.#options;
    if (this.#isClosed || this.#waiting >= spansMax) {
      this.dropped.queue_full += 1;
      return;
    }
    batch.add(start, end, ids);
    this.#waiting += 1;
    if (batch.count >= batchMax) this.#requests.push(batch.take());
    if (this.#exporting !== null) return;
    if (this.#requests.length > 0) this.#export();
    else this.#timer ??= setTimeout(() => this.#export(), this.#options.intervalMs).unref();
  }

  /** Exports what waits now. */
  async forceFlush(): Promise<void> {
    await this.#exporting;
    while (this.#waiting > 0) {
      if (this.#exporting === null) this.#export();
      await this.#exporting;
    }
  }

  async shutdown(): Promise<void> {
    if (this.#isClosed) return;
    const { exporter, shutdownMs } = this.#options;
    let cancel = (): void => undefined;
    const timeout = new Promise<void>((done) => {
      const timer = setTimeout(done, shutdownMs);
      cancel = () => clearTimeout(timer);
    });
    await Promise.race([this.forceFlush(), timeout]);
    cancel();
    this.#isClosed = true;
    this.dropped.export_failed += this.#waiting;
    this.#waiting = 0;
    this.#requests = [];
    this.#options.batch.clear();
    if (this.#timer !== null) clearTimeout(this.#timer);
    // An export that hangs must not keep the process: its requests have their own timeout.
    if (this.#exporting === null) await exporter.shutdown().catch(() => undefined);
    else void exporter.shutdown().catch(() => undefined);
  }

  #export(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#waiting === 0) return;
    const request = this.#requests.shift() ?? this.#options.batch.take();
    this.#waiting -= request.count;
    this.#exporting = this.#send(request).then((isExported) => {
      this.#exporting = null;
      if (isExported) this.exported += request.count;
      else this.dropped.export_failed += request.count;
      // A collector that fails gets the next batch after the interval, as if it had begun now.
      if (this.#isClosed || this.#waiting === 0) return;
      if (isExported && this.#requests.length > 0) this.#export();
      else this.#timer ??= setTimeout(() => this.#export(), this.#options.intervalMs).unref();
    });
  }

  #send(request: SpanRequest): Promise<boolean> {
    return new Promise((resolve) => {
      try {
        this.#options.exporter.export(request, ({ error }) => resolve(error === undefined));
      } catch {
        resolve(false);
      }
    });
  }
}

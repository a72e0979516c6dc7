import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';

export interface SpanQueueOptions {
  readonly exporter: SpanExporter;
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
  #spans: ReadableSpan[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** The export in flight. It never rejects. */
  #exporting: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  /** Takes a span that is over. */
  add(span: ReadableSpan): void {
    if (this.#isClosed || this.#spans.length >= this.#options.spansMax) {
      this.dropped.queue_full += 1;
      return;
    }
    this.#spans.push(span);
    if (this.#exporting !== null) return;
    if (this.#spans.length >= this.#options.batchMax) this.#export();
    else this.#timer ??= setTimeout(() => this.#export(), this.#options.intervalMs).unref();
  }

  /** Exports what waits now. */
  async forceFlush(): Promise<void> {
    await this.#exporting;
    while (this.#spans.length > 0) {
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
    this.dropped.export_failed += this.#spans.length;
    this.#spans = [];
    if (this.#timer !== null) clearTimeout(this.#timer);
    // An export that hangs must not keep the process: its requests have their own timeout.
    if (this.#exporting === null) await exporter.shutdown().catch(() => undefined);
    else void exporter.shutdown().catch(() => undefined);
  }

  #export(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const batch = this.#spans.splice(0, this.#options.batchMax);
    if (batch.length === 0) return;
    this.#exporting = this.#send(batch).then((isExported) => {
      this.#exporting = null;
      if (isExported) this.exported += batch.length;
      else this.dropped.export_failed += batch.length;
      // A collector that fails gets the next batch after the interval, as if it had begun now.
      if (this.#isClosed || this.#spans.length === 0) return;
      if (isExported && this.#spans.length >= this.#options.batchMax) this.#export();
      else this.#timer ??= setTimeout(() => this.#export(), this.#options.intervalMs).unref();
    });
  }

  #send(batch: ReadableSpan[]): Promise<boolean> {
    return new Promise((resolve) => {
      try {
        this.#options.exporter.export(batch, ({ error }) => resolve(error === undefined));
      } catch {
        resolve(false);
      }
    });
  }
}

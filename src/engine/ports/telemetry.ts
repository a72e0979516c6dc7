// Traces and metrics of this process, for operators. They contain ids, names of the catalogue and the policy, codes and
// times; never content. Nothing here may throw, block or change what is decided or recorded.

import type { TracePoint } from '../../core/contract/trace-context.js';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span that begins. */
export interface SpanStart {
  readonly name: string;
  readonly kind: 'internal' | 'server';
  /** Null: the span begins its trace. */
  readonly parent: TracePoint | null;
  /** In ms since the epoch. */
  readonly startMs: number;
  readonly attributes: Attributes;
  /** The ids of the span, where the tracer lets its callers choose them. */
  readonly ids?: Pick<TracePoint, 'traceId' | 'spanId'>;
  /** Another span that caused this one. */
  readonly link?: TracePoint;
}

/** How a span ended. */
export interface SpanOutcome {
  readonly endMs: number;
  readonly attributes?: Attributes;
  /** Set if the span failed; the value of `error.type`. */
  readonly error?: string | null;
}

export interface OpenSpan {
  readonly point: TracePoint;
  /** Only the first call counts. */
  end(end: SpanOutcome): void;
}

/** Records spans. */
export interface Tracer {
  /** The share of run trees that are traced without a request of their caller. */
  readonly ratio: number;
  /** Whether a caller's trace that is recorded is recorded here too, whatever the share. */
  readonly followsCallers: boolean;
  /** Begins a span, which its caller ends. */
  start(span: SpanStart): OpenSpan;
  /** Records a span that is over. */
  record(span: SpanStart, end: SpanOutcome): void;
  /** The place in the trace of the code that calls this; null outside of one. */
  active(): TracePoint | null;
  /** Runs code at a place in a trace: spans that it starts with the same library continue there. */
  runAt<T>(point: TracePoint, work: () => T): T;
}

export interface MetricOptions {
  readonly description: string;
  /** As UCUM: `s`, `By`. Absent: a number of things. */
  readonly unit?: string;
  /** Upper limits of the buckets of a histogram. */
  readonly boundaries?: readonly number[];
}

/** The value of one series now. */
export interface Observation {
  readonly value: number;
  readonly attributes?: Attributes;
}

export type Measure = (value: number, attributes?: Attributes) => void;
export type Observe = () => readonly Observation[] | Promise<readonly Observation[]>;

/** Creates metrics. The names are those of Prometheus; a counter's ends with `_total`. */
export interface Meter {
  /** A sum that only grows. */
  counter(name: string, options: MetricOptions): Measure;
  /** A distribution of values. */
  histogram(name: string, options: MetricOptions): Measure;
  /** A counter or a gauge whose values are read when the metrics are collected. */
  observe(kind: 'counter' | 'gauge', name: string, options: MetricOptions, read: Observe): void;
}

/** Where traces and metrics go. */
export interface Telemetry {
  /** The time in ms since the epoch, with fractions. */
  now(): number;
  /** Null: no traces. */
  readonly tracer: Tracer | null;
  readonly meter: Meter;
}

/** Telemetry of a service: metrics that can be collected, and traces if there is a collector. */
export interface ServiceTelemetry extends Telemetry {
  /** All metrics now, in the text format of Prometheus. */
  collect(): Promise<{ readonly text: string }>;
  /** Sends what waits, for a limited time. */
  close(): Promise<void>;
}

// Telemetry over the OpenTelemetry API, for embedding services that have an SDK of their own and for the SDK of the
// command. The API is loaded only with this file.

import {
  context,
  createTraceState,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  ValueType,
  type Attributes as OtelAttributes,
  type Context,
  type Link,
  type Meter as OtelMeter,
  type MeterProvider,
  type ObservableResult,
  type Span,
  type SpanContext,
  type Tracer as OtelTracer,
  type TracerProvider,
} from '@opentelemetry/api';
import type { TracePoint } from '../../../core/contract/trace-context.js';
import type {
  Attributes,
  Meter,
  OpenSpan,
  SpanOutcome,
  SpanStart,
  Telemetry,
  Tracer,
} from '../../../engine/ports/telemetry.js';

export { SpanKind, SpanStatusCode, ValueType };

/** The name of the instrumentation. */
export const SCOPE = 'turnpike';

/** Options of `otelTelemetry`. */
export interface OtelTelemetryOptions {
  /** Default: the global one of the OpenTelemetry API. Null: no traces. */
  readonly tracerProvider?: TracerProvider | null;
  /** Default: the global one of the OpenTelemetry API. */
  readonly meterProvider?: MeterProvider;
  /** The share of run trees that are traced although no caller traces them, from 0 to 1. Default: 1. */
  readonly ratio?: number;
  /** Whether what a caller traces is traced whatever the share. Default: true. */
  readonly followsCallers?: boolean;
}

/** Reports to the SDK that the service has registered with the OpenTelemetry API, or to the given providers. */
export function otelTelemetry(options: OtelTelemetryOptions = {}): Telemetry {
  const { tracerProvider = trace.getTracerProvider(), meterProvider = metrics.getMeterProvider() } = options;
  const { ratio = 1, followsCallers = true } = options;
  return {
    now,
    tracer: tracerProvider === null ? null : new ApiTracer(tracerProvider.getTracer(SCOPE), { ratio, followsCallers }),
    meter: new ApiMeter(meterProvider.getMeter(SCOPE)),
  };
}

const { timeOrigin } = performance;

/** The time in ms since the epoch, with fractions. */
export const now = (): number => timeOrigin + performance.now();

class ApiTracer implements Tracer {
  readonly ratio: number;
  readonly followsCallers: boolean;
  readonly #tracer: OtelTracer;
  /** The parent of the last span: the spans of a step have the same one. */
  #parent: { readonly point: TracePoint; readonly context: Context } | null = null;

  constructor(tracer: OtelTracer, { ratio, followsCallers }: Pick<Tracer, 'ratio' | 'followsCallers'>) {
    this.#tracer = tracer;
    this.ratio = ratio;
    this.followsCallers = followsCallers;
  }

  start(start: SpanStart): OpenSpan {
    const span = this.#start(start);
    const { traceId, spanId, traceFlags } = span.spanContext();
    const { tracestate, baggage } = start.parent ?? {};
    const point: TracePoint = {
      traceId,
      spanId,
      sampled: (traceFlags & TraceFlags.SAMPLED) !== 0,
      ...(tracestate === undefined ? {} : { tracestate }),
      ...(baggage === undefined ? {} : { baggage }),
    };
    return { point, end: (end) => endSpan(span, end) };
  }

  record(start: SpanStart, end: SpanOutcome): void {
    endSpan(this.#start(start), end);
  }

  active = activePoint;
  runAt = runAtPoint;

  #start({ name, kind, parent, startMs, attributes, ids, link }: SpanStart): Span {
    const options = {
      kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL,
      startTime: startMs,
      attributes: attributes as OtelAttributes,
      ...(link === undefined ? {} : { links: [toLink(link)] }),
    };
    return this.#tracer.startSpan(name, options, this.#contextOf(parent, ids));
  }

  #contextOf(parent: TracePoint | null, ids: SpanStart['ids']): Context {
    if (parent === null) {
      // A provider that chooses all ids gets the trace by a parent that is never reported.
      return ids === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, toSpanContext({ ...ids, sampled: true, remote: true }));
    }
    if (this.#parent?.point !== parent) {
      this.#parent = { point: parent, context: trace.setSpanContext(ROOT_CONTEXT, toSpanContext(parent)) };
    }
    return this.#parent.context;
  }
}

/** The place in the trace of the code that calls this; null outside of one. */
export function activePoint(): TracePoint | null {
  const current = context.active();
  const active = trace.getSpanContext(current);
  if (active === undefined || !trace.getSpan(current)) return null;
  const carrier: { baggage?: string } = {};
  propagation.inject(current, carrier);
  const tracestate = active.traceState?.serialize();
  return {
    traceId: active.traceId,
    spanId: active.spanId,
    sampled: (active.traceFlags & TraceFlags.SAMPLED) !== 0,
    ...(tracestate === undefined || tracestate === '' ? {} : { tracestate }),
    ...(carrier.baggage === undefined ? {} : { baggage: carrier.baggage }),
  };
}

/** Runs code at a place in a trace. */
export const runAtPoint = <T>(point: TracePoint, work: () => T): T =>
  context.with(trace.setSpanContext(context.active(), toSpanContext(point)), work);

const toLink = (point: TracePoint): Link => ({ context: toSpanContext(point) });

export const toSpanContext = ({ traceId, spanId, sampled, remote, tracestate }: TracePoint): SpanContext => ({
  traceId,
  spanId,
  traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  ...(remote === true ? { isRemote: true } : {}),
  ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
});

function endSpan(span: Span, { endMs, attributes, error }: SpanOutcome): void {
  if (!span.isRecording()) return;
  if (attributes !== undefined) span.setAttributes(attributes);
  if (error !== undefined && error !== null) {
    span.setAttribute('error.type', error);
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(endMs);
}

class ApiMeter implements Meter {
  readonly #meter: OtelMeter;

  constructor(meter: OtelMeter) {
    this.#meter = meter;
  }

  counter: Meter['counter'] = (name, options) => {
    const counter = this.#meter.createCounter(name, options);
    return (value, attributes) => counter.add(value, attributes);
  };

  histogram: Meter['histogram'] = (name, { boundaries, ...options }) => {
    const advice = boundaries === undefined ? {} : { advice: { explicitBucketBoundaries: [...boundaries] } };
    const histogram = this.#meter.createHistogram(name, { ...options, ...advice });
    return (value, attributes) => histogram.record(value, attributes);
  };

  observe: Meter['observe'] = (kind, name, options, read) => {
    const instrument =
      kind === 'counter'
        ? this.#meter.createObservableCounter(name, options)
        : this.#meter.createObservableGauge(name, options);
    instrument.addCallback(async (result: ObservableResult) => {
      for (const { value, attributes } of await read()) result.observe(value, toPlain(attributes));
    });
  };
}

const toPlain = (attributes: Attributes | undefined): OtelAttributes | undefined =>
  attributes === undefined ? undefined : { ...attributes };

// The OpenTelemetry SDK of the command and of the HTTP service: metrics for Prometheus, and with a collector also
// traces and metrics over OTLP/HTTP. The build puts it and its packages into one file, so that they are not installed
// with this package (decision 0049).

import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { detectResources, envDetector, resourceFromAttributes, type Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  InstrumentType,
  MeterProvider,
  MetricReader,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import type { Log } from '../../../engine/ports/log.js';
import type { ServiceTelemetry, Telemetry } from '../../../engine/ports/telemetry.js';
import { HistogramMeter } from './histogram-meter.js';
import { now, otelTelemetry, SCOPE } from './otel-telemetry.js';
import type { OtlpSettings } from './otlp-settings.js';
import { SpanBatch, type SpanRequest } from './span-batch.js';
import { SpanQueue, type SpanExporter } from './span-queue.js';
import { SpanRecorder } from './span-recorder.js';

/** How long the end of the process waits for the collector, in ms. */
const SHUTDOWN_MS = 2_000;
/** Series of one metric. Further ones are counted together: labels are bounded, and this is the last bound. */
const SERIES_MAX = 1_000;

export interface SdkTelemetryOptions {
  readonly version: string;
  /** Null: nothing is sent anywhere. */
  readonly otlp: OtlpSettings | null;
  readonly log: Pick<Log, 'warn'>;
}

/** Reads metrics when it is asked to. */
class ScrapeReader extends MetricReader {
  protected override onShutdown(): Promise<void> {
    return Promise.resolve();
  }

  protected override onForceFlush(): Promise<void> {
    return Promise.resolve();
  }
}

export function sdkTelemetry({ version, otlp, log }: SdkTelemetryOptions): ServiceTelemetry {
  const resource = createResource(version);
  const histograms = new HistogramMeter({ scope: SCOPE, resource, seriesMax: SERIES_MAX, now });
  const scrape = new ScrapeReader({
    cardinalitySelector: () => SERIES_MAX,
    metricProducers: [histograms.producer(AggregationTemporality.CUMULATIVE)],
  });
  const pushed = otlp === null || otlp.metrics === null ? [] : [createMetricPush(otlp, otlp.metrics, histograms)];
  const meterProvider = new MeterProvider({ resource, readers: [scrape, ...pushed] });
  const traces = otlp === null || otlp.traces === null ? null : createTraces(resource, otlp, otlp.traces);
  const { meter } = otelTelemetry({ meterProvider, tracerProvider: null });
  const telemetry: Telemetry = {
    now,
    tracer: traces?.recorder ?? null,
    meter: {
      counter: (name, options) => meter.counter(name, options),
      observe: (kind, name, options, read) => meter.observe(kind, name, options, read),
      histogram: (name, options) => histograms.histogram(name, options),
    },
  };
  if (traces !== null) observeSpans(telemetry, traces.queue);
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  return {
    ...telemetry,
    async collect() {
      const { resourceMetrics, errors } = await scrape.collect();
      if (errors.length > 0) log.warn('some metrics cannot be read', { errors: errors.length, error: errors[0] });
      return { text: serializer.serialize(resourceMetrics) };
    },
    async close() {
      await traces?.queue.shutdown();
      await meterProvider.shutdown({ timeoutMillis: SHUTDOWN_MS }).catch(() => undefined);
    },
  };
}

/** The environment may name the service and add attributes; the version is that of this package. */
const createResource = (version: string): Resource =>
  resourceFromAttributes({ 'service.name': process.env['OTEL_SERVICE_NAME'] ?? 'turnpike' }).merge(
    detectResources({ detectors: [envDetector] }).merge(resourceFromAttributes({ 'service.version': version })),
  );

function createTraces({ attributes }: Resource, settings: OtlpSettings, url: string) {
  const { queue: limits, timeoutMs, ratio, followsCallers } = settings;
  const batch = new SpanBatch({ scope: SCOPE, resource: attributes });
  const exporter = createSpanExporter(url, timeoutMs);
  const queue = new SpanQueue({ exporter, batch, ...limits, shutdownMs: SHUTDOWN_MS });
  return { queue, recorder: new SpanRecorder({ ratio, followsCallers, onEnd: queue.add.bind(queue) }) };
}

/** The exporter of the SDK, for bytes. It reads headers, certificates and timeouts from the standard variables. */
export function createSpanExporter(url: string, timeoutMillis: number): SpanExporter {
  const headers = { 'Content-Type': 'application/x-protobuf' };
  // The exporters of the SDK use it too: nothing else reads the standard variables.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const options = convertLegacyHttpOptions({ url, timeoutMillis }, 'TRACES', 'v1/traces', headers);
  const serializer = {
    serializeRequest: ({ bytes }: SpanRequest) => bytes,
    deserializeResponse: (bytes: Uint8Array) => ProtobufTraceSerializer.deserializeResponse(bytes),
  };
  const items = { name: 'span' as const, countItems: ({ count }: SpanRequest) => count };
  return createOtlpHttpExportDelegate(options, serializer, 'otlp_http_span_exporter', items, undefined);
}

function createMetricPush(
  { metricIntervalMs, timeoutMs }: OtlpSettings,
  url: string,
  histograms: HistogramMeter,
): PeriodicExportingMetricReader {
  const exporter = new OTLPMetricExporter({ url, timeoutMillis: timeoutMs });
  return new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: metricIntervalMs,
    exportTimeoutMillis: Math.min(metricIntervalMs, timeoutMs),
    cardinalityLimits: { default: SERIES_MAX },
    metricProducers: [histograms.producer(exporter.selectAggregationTemporality(InstrumentType.HISTOGRAM))],
  });
}

function observeSpans({ meter }: Telemetry, queue: SpanQueue): void {
  meter.observe(
    'counter',
    'turnpike_telemetry_spans_dropped_total',
    { description: 'Spans that the collector did not get, by reason' },
    () => Object.entries(queue.dropped).map(([reason, value]) => ({ value, attributes: { reason } })),
  );
  meter.observe(
    'counter',
    'turnpike_telemetry_spans_exported_total',
    { description: 'Spans that the collector got' },
    () => [{ value: queue.exported }],
  );
}

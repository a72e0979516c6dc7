// A span of ours is what the tracer of the OpenTelemetry SDK makes of the same calls.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { otelTelemetry } from '../../../src/adapters/telemetry/otel-telemetry.js';
import { SpanRecorder } from '../../../src/adapters/telemetry/span-recorder.js';
import type { TracePoint } from '../../../src/contract/trace-context.js';
import type { SpanOutcome, SpanStart, Tracer } from '../../../src/ports/telemetry.js';
import { startCollector, type Collector } from '../../fixtures/otlp-collector.js';

const resource = resourceFromAttributes({ 'service.name': 'test' });
const PARENT: TracePoint = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true };
const IDS = { traceId: 'a'.repeat(32), spanId: 'c'.repeat(16) };
const LINK: TracePoint = { traceId: 'd'.repeat(32), spanId: 'e'.repeat(16), sampled: false, remote: true };
const START: SpanStart = {
  name: 'turnpike.step',
  kind: 'internal',
  parent: PARENT,
  startMs: 1_700_000_000_999.999_9,
  attributes: { text: 'a', number: 3, isTrue: true },
};
const END: SpanOutcome = { endMs: 1_700_000_001_002.25 };

type Call = readonly [start: SpanStart, end: SpanOutcome];
const CALLS: Readonly<Record<string, Call>> = {
  'a plain span': [START, END],
  'a span of a request of another process': [{ ...START, kind: 'server', parent: { ...PARENT, remote: true } }, END],
  'a span with a link': [{ ...START, link: LINK }, END],
  'a span that failed': [START, { ...END, attributes: { text: 'b', more: 1.5 }, error: 'POLICY_VIOLATION' }],
  'a span that begins its trace': [{ ...START, parent: null }, END],
};

function spanOf(call: Call, open: (onEnd: (span: ReadableSpan) => void) => Tracer | null): ReadableSpan {
  const spans: ReadableSpan[] = [];
  open((span) => spans.push(span))?.record(...call);
  const [span, ...more] = spans;
  if (span === undefined || more.length > 0) throw new Error(`${spans.length} spans`);
  return span;
}

const own = (onEnd: (span: ReadableSpan) => void): SpanRecorder =>
  new SpanRecorder({ ratio: 1, followsCallers: true, scope: 'turnpike', resource, onEnd });

function sdk(onEnd: (span: ReadableSpan) => void): Tracer | null {
  const done = (): Promise<void> => Promise.resolve();
  const spanProcessors = [{ onStart: () => undefined, onEnd, forceFlush: done, shutdown: done }];
  const idGenerator = { generateTraceId: () => IDS.traceId, generateSpanId: () => IDS.spanId };
  return otelTelemetry({ tracerProvider: new TracerProvider({ resource, spanProcessors, idGenerator }) }).tracer;
}

let collector: Collector;
beforeAll(async () => {
  collector = await startCollector();
});
afterAll(() => collector.close());

/** What the exporter sends to a collector. */
async function bytesOf(span: ReadableSpan): Promise<string | undefined> {
  const exporter = new OTLPTraceExporter({ url: `${collector.url}/v1/traces` });
  await new Promise<void>((done) => exporter.export([span], () => done()));
  await exporter.shutdown();
  return collector.bodies.at(-1)?.toString('hex');
}

test.each(Object.entries(CALLS))('%s has the same bytes for a collector', async (_name, [start, end]) => {
  const ours = spanOf([{ ...start, ids: IDS }, end], own);
  const theirs = spanOf([start, end], sdk);
  const bytes = await bytesOf(ours);
  expect(bytes?.length).toBeGreaterThan(200);
  expect(bytes).toBe(await bytesOf(theirs));
  expect(collector.spans.slice(-2)).toEqual([expect.objectContaining({ spanId: IDS.spanId }), collector.spans.at(-1)]);
  expect(ours.duration).toEqual(theirs.duration);
  expect(ours.ended).toBe(true);
});

test('a span ends once, and passes on the state of its caller without exporting it', () => {
  const spans: ReadableSpan[] = [];
  const span = own((ended) => spans.push(ended)).start({
    ...START,
    parent: { ...PARENT, tracestate: 'k=v', baggage: 'b=1' },
  });
  span.end(END);
  span.end({ ...END, error: 'LATER' });
  expect(spans).toHaveLength(1);
  expect(spans[0]?.status).toEqual({ code: 0 });
  expect(span.point).toMatchObject({ traceId: PARENT.traceId, sampled: true, tracestate: 'k=v', baggage: 'b=1' });
  expect(span.point.spanId).toMatch(/^(?!0{16})[\da-f]{16}$/);
  expect(spans[0]?.spanContext().traceState).toBeUndefined();
  expect(spans[0]?.parentSpanContext?.traceState).toBeUndefined();
});

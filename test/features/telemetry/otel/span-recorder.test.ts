// A span of ours has the bytes that the tracer and the exporter of the OpenTelemetry SDK make of the same calls.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { otelTelemetry } from '../../../../src/features/telemetry/otel/otel-telemetry.js';
import { createSpanExporter } from '../../../../src/features/telemetry/otel/sdk-telemetry.js';
import { SpanBatch, type SpanRequest } from '../../../../src/features/telemetry/otel/span-batch.js';
import { SpanRecorder } from '../../../../src/features/telemetry/otel/span-recorder.js';
import type { TracePoint } from '../../../../src/core/contract/trace-context.js';
import type { Attributes, SpanOutcome, SpanStart } from '../../../../src/engine/ports/telemetry.js';
import { startCollector, type Collector } from '../../../fixtures/otlp-collector.js';

const resource = resourceFromAttributes({ 'service.name': 'test', 'service.version': '1', zone: 'é' });
const PARENT: TracePoint = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true };
const IDS = { traceId: 'a'.repeat(32), spanId: '0123456789abcdef' };
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
const withText = (text: string): Call => [{ ...START, name: `execute_tool ${text}`, attributes: { text } }, END];
const at = (startMs: number): Call => [
  { ...START, startMs },
  { ...END, endMs: startMs + 0.001 },
];
const CALLS: Readonly<Record<string, Call>> = {
  'a plain span': [START, END],
  'a span of a request of another process': [{ ...START, kind: 'server', parent: { ...PARENT, remote: true } }, END],
  'a span with a link': [{ ...START, link: LINK }, END],
  'a span with a link to a recorded span': [{ ...START, link: PARENT }, END],
  'a span that failed': [START, { ...END, attributes: { text: 'b', more: 1.5 }, error: 'POLICY_VIOLATION' }],
  'a span whose beginning names an error': [
    { ...START, attributes: { 'error.type': 'A' } },
    { ...END, error: 'B' },
  ],
  'a span whose end names an error': [START, { ...END, attributes: { 'error.type': 'A', z: 1 }, error: 'B' }],
  'a span that begins its trace': [{ ...START, parent: null }, END],
  'a span without attributes': [{ ...START, attributes: {} }, END],
  'a span with an empty text': withText(''),
  'a span with a text of 127 characters': withText('x'.repeat(127)),
  'a span with a text of 128 characters': withText('x'.repeat(128)),
  'a span with a text of 16,383 characters': withText('x'.repeat(16_383)),
  'a span with a text of 16,384 characters': withText('x'.repeat(16_384)),
  'a span that is larger than the first buffer': withText('x'.repeat(200_000)),
  'a span with other letters': withText('Übermäßig 漢字 😀'),
  'a span with half of a letter': withText(`a${'😀'.slice(0, 1)}b`),
  'a span with other letters and a length of two bytes': withText('ß'.repeat(100)),
  'a span with numbers': [{ ...START, attributes: numbers() }, END],
  'a span of 2001': at(1_000_000_000_000),
  'a span at the end of a second': at(1_700_000_000_999.999_999),
  'a span after 2038': at(4_102_444_800_000.5),
};

function numbers(): Attributes {
  const values = [0, 1, 127, 128, 2 ** 31, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER, -1, -0, 0.5, 1e300];
  return Object.fromEntries([...values.entries()].map(([place, value]) => [`n${place}`, value]));
}

const createBatch = (): SpanBatch => new SpanBatch({ scope: 'turnpike', resource: resource.attributes });

const recorderOf = (batch: SpanBatch): SpanRecorder =>
  new SpanRecorder({ ratio: 1, followsCallers: true, onEnd: batch.add.bind(batch) });

/** @returns the request with these spans, of ours */
function requestOf(...calls: readonly Call[]): SpanRequest {
  const batch = createBatch();
  const recorder = recorderOf(batch);
  for (const [start, end] of calls) recorder.record({ ...start, ids: IDS }, end);
  return batch.take();
}

/** @returns the same spans, made by the SDK */
function sdkSpansOf(...calls: readonly Call[]): ReadableSpan[] {
  const spans: ReadableSpan[] = [];
  const done = (): Promise<void> => Promise.resolve();
  const onEnd = (span: ReadableSpan): void => void spans.push(span);
  const spanProcessors = [{ onStart: () => undefined, onEnd, forceFlush: done, shutdown: done }];
  const idGenerator = { generateTraceId: () => IDS.traceId, generateSpanId: () => IDS.spanId };
  const { tracer } = otelTelemetry({ tracerProvider: new TracerProvider({ resource, spanProcessors, idGenerator }) });
  for (const call of calls) tracer?.record(...call);
  return spans;
}

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('hex');

describe('spans have the bytes of the SDK', () => {
  test.each(Object.entries(CALLS))('%s', (_name, call) => {
    const bytes = hex(requestOf(call).bytes);
    expect(bytes.length).toBeGreaterThan(200);
    expect(bytes).toBe(hex(ProtobufTraceSerializer.serializeRequest(sdkSpansOf(call))));
  });

  test('all of them in one request, twice', () => {
    const calls = Object.values(CALLS);
    const batch = createBatch();
    const recorder = recorderOf(batch);
    const theirs = hex(ProtobufTraceSerializer.serializeRequest(sdkSpansOf(...calls)));
    for (let time = 0; time < 2; time += 1) {
      for (const [start, end] of calls) recorder.record({ ...start, ids: IDS }, end);
      const { count, bytes } = batch.take();
      expect(count).toBe(calls.length);
      expect(hex(bytes) === theirs).toBe(true);
    }
    expect(batch.count).toBe(0);
  });
});

describe('with a collector', () => {
  let collector: Collector;
  beforeAll(async () => {
    collector = await startCollector();
  });
  afterAll(() => collector.close());

  test('the exporter sends what that of the SDK sends', async () => {
    const call = CALLS['a span that failed'] ?? [START, END];
    const url = `${collector.url}/v1/traces`;
    const ours = createSpanExporter(url, 1_000);
    const result = await new Promise((done) => ours.export(requestOf(call), done));
    expect(result).toEqual({ code: 0 });
    await ours.shutdown();
    const theirs = new OTLPTraceExporter({ url });
    await new Promise<void>((done) => theirs.export(sdkSpansOf(call), () => done()));
    await theirs.shutdown();
    expect(collector.paths).toEqual(['/v1/traces', '/v1/traces']);
    expect(hex(collector.bodies[0])).toBe(hex(collector.bodies[1]));
    expect(collector.spans[0]).toMatchObject({ spanId: IDS.spanId, name: 'turnpike.step' });
    expect(collector.spans[1]).toEqual(collector.spans[0]);
  });

  test('random ids are different and never zero', async () => {
    const batch = createBatch();
    const recorder = recorderOf(batch);
    for (let span = 0; span < 100; span += 1) recorder.record({ ...START, parent: null }, END);
    const exporter = createSpanExporter(`${collector.url}/v1/traces`, 1_000);
    const before = collector.spans.length;
    await new Promise((done) => exporter.export(batch.take(), done));
    await exporter.shutdown();
    const spans = collector.spans.slice(before);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(100);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(100);
    for (const { traceId, spanId } of spans) {
      expect(traceId).toMatch(/^(?!0{32})[\da-f]{32}$/);
      expect(spanId).toMatch(/^(?!0{16})[\da-f]{16}$/);
    }
  });
});

test('a span ends once, and passes on the state of its caller without exporting it', () => {
  const batch = createBatch();
  const parent = { ...PARENT, tracestate: 'k=v', baggage: 'b=1' };
  const span = recorderOf(batch).start({ ...START, parent, ids: IDS });
  span.end(END);
  span.end({ ...END, error: 'LATER' });
  expect(span.point).toEqual({ ...IDS, sampled: true, tracestate: 'k=v', baggage: 'b=1' });
  const { count, bytes } = batch.take();
  expect(count).toBe(1);
  expect(hex(bytes)).toBe(hex(requestOf([START, END]).bytes));
});

test('a span that begins has an id of its own', () => {
  const { point } = recorderOf(createBatch()).start({ ...START, parent: null });
  expect(point.spanId).toMatch(/^(?!0{16})[\da-f]{16}$/);
  expect(point.traceId).toMatch(/^(?!0{32})[\da-f]{32}$/);
});

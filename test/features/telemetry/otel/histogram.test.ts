// A histogram of ours has what one of the OpenTelemetry SDK has, for the same values.

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { Histogram } from '../../../../src/features/telemetry/otel/histogram-meter.js';
import type { Attributes } from '../../../../src/engine/ports/telemetry.js';

const BOUNDARIES = [0.0005, 0.001, 0.01, 1, 30];

class Reader extends MetricReader {
  protected override onShutdown = (): Promise<void> => Promise.resolve();
  protected override onForceFlush = (): Promise<void> => Promise.resolve();
}

/** The series of the SDK after these values. */
async function sdkSeries(values: readonly (readonly [number, Attributes])[]) {
  const reader = new Reader();
  const provider = new MeterProvider({ readers: [reader] });
  const advice = { explicitBucketBoundaries: BOUNDARIES };
  const histogram = provider.getMeter('test').createHistogram('h', { advice });
  for (const [value, attributes] of values) histogram.record(value, { ...attributes });
  const { resourceMetrics } = await reader.collect();
  const points = resourceMetrics.scopeMetrics[0]?.metrics[0]?.dataPoints ?? [];
  return points.map(({ attributes, value }) => ({ attributes, value }));
}

const attributes = fc.constantFrom<Attributes>({}, { a: 'x' }, { a: 'y', b: 1 }, { b: 1, a: 'y' });
const value = fc.oneof(fc.constantFrom(0, -1, 31, ...BOUNDARIES), fc.double({ min: 0, max: 40, noNaN: true }));

test('has the buckets, sums and extremes that the SDK has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(value, attributes), { maxLength: 30 }), async (values) => {
      const histogram = new Histogram({ boundaries: BOUNDARIES, seriesMax: 10 });
      for (const [number, labels] of values) histogram.record(number, labels);
      const own = [...histogram.series()].map(({ attributes: labels, counts, ...rest }) => ({
        attributes: labels,
        value: { buckets: { boundaries: BOUNDARIES, counts: [...counts] }, ...rest },
      }));
      expect(own).toEqual(await sdkSeries(values));
    }),
    { numRuns: 60 },
  );
});

test('counts all series beyond the limit together, and none is lost', () => {
  const histogram = new Histogram({ boundaries: BOUNDARIES, seriesMax: 10 });
  for (let index = 0; index < 5_000; index += 1) histogram.record(1, { name: `n${index % 100}` });
  const series = [...histogram.series()];
  expect(series).toHaveLength(10);
  expect(series.reduce((sum, { count }) => sum + count, 0)).toBe(5_000);
  expect(series.at(-1)?.attributes).toEqual({ 'otel.metric.overflow': true });
  expect(series.at(-1)?.count).toBe(5_000 - 9 * 50);
});

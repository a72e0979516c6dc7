// The histograms of a process, as its readers get them.

import { expect, test } from '@jest/globals';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AggregationTemporality } from '@opentelemetry/sdk-metrics';
import { winstonLog } from '../../../../src/system/winston-log.js';
import { HistogramMeter } from '../../../../src/features/telemetry/otel/histogram-meter.js';
import { sdkTelemetry } from '../../../../src/features/telemetry/otel/sdk-telemetry.js';

const OPTIONS = { description: 'A time', unit: 's', boundaries: [1, 2] };

test('readers get all values, or those since their last collection, each for itself', async () => {
  let time = 0;
  const resource = resourceFromAttributes({});
  const meter = new HistogramMeter({ scope: 'test', resource, seriesMax: 10, now: () => (time += 1_000) });
  const record = meter.histogram('h', OPTIONS);
  const cumulative = meter.producer(AggregationTemporality.CUMULATIVE);
  const delta = meter.producer(AggregationTemporality.DELTA);
  const points = async (producer: typeof delta) => {
    const { resourceMetrics } = await producer.collect();
    const [metric] = resourceMetrics.scopeMetrics[0]?.metrics ?? [];
    return (metric?.dataPoints ?? []).map(({ startTime, endTime, value }) => ({ startTime, endTime, value }));
  };
  expect(await points(cumulative)).toEqual([]);
  record(0.5);
  record(3);
  const buckets = (...counts: number[]) => ({ boundaries: [1, 2], counts });
  const first = { buckets: buckets(1, 0, 1), count: 2, sum: 3.5 };
  expect(await points(delta)).toEqual([{ startTime: [1, 0], endTime: [3, 0], value: first }]);
  expect(await points(cumulative)).toEqual([
    { startTime: [1, 0], endTime: [4, 0], value: { ...first, min: 0.5, max: 3 } },
  ]);
  record(2);
  expect(await points(delta)).toEqual([
    { startTime: [3, 0], endTime: [5, 0], value: { buckets: buckets(0, 1, 0), count: 1, sum: 2 } },
  ]);
  expect(await points(delta)).toEqual([]);
  expect(await points(cumulative)).toEqual([
    { startTime: [1, 0], endTime: [7, 0], value: { buckets: buckets(1, 1, 1), count: 3, sum: 5.5, min: 0.5, max: 3 } },
  ]);
});

test('two engines with one telemetry share a histogram, which has the form of Prometheus', async () => {
  const telemetry = sdkTelemetry({ version: '1', otlp: null, log: winstonLog('silent') });
  for (const action of ['A', 'A', 'B']) telemetry.meter.histogram('turnpike_x_seconds', OPTIONS)(1, { action });
  const { text } = await telemetry.collect();
  await telemetry.close();
  expect(text.split('\n').filter((line) => line.includes('turnpike_x_seconds'))).toEqual([
    '# HELP turnpike_x_seconds A time',
    '# UNIT turnpike_x_seconds s',
    '# TYPE turnpike_x_seconds histogram',
    ...['A', 'B'].flatMap((action, index) => [
      `turnpike_x_seconds_count{action="${action}"} ${2 - index}`,
      `turnpike_x_seconds_sum{action="${action}"} ${2 - index}`,
      ...['1', '2', '+Inf'].map((le) => `turnpike_x_seconds_bucket{action="${action}",le="${le}"} ${2 - index}`),
    ]),
  ]);
});

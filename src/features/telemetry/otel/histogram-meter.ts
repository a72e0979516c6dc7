// The histograms of the command, summed up here: the SDK takes a multiple of the time for a value, and that for each
// reader. The readers of the SDK get them with its other metrics when they collect.

import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type DataPoint,
  type Histogram as HistogramValue,
  type HistogramMetricData,
  type MetricProducer,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import type { Measure, MetricOptions } from '../../../engine/ports/telemetry.js';
import { Histogram, type HistogramSeries } from './histogram.js';
import { toHrTime, type HrTime } from './hr-time.js';
import { ValueType } from './otel-telemetry.js';

export interface HistogramMeterOptions {
  /** The name of the instrumentation. */
  readonly scope: string;
  readonly resource: ResourceMetrics['resource'];
  /** Series of one histogram. */
  readonly seriesMax: number;
  /** In ms since the epoch. */
  readonly now: () => number;
}

interface NamedHistogram {
  readonly descriptor: HistogramMetricData['descriptor'];
  readonly boundaries: number[];
  readonly histogram: Histogram;
}

export class HistogramMeter {
  readonly #options: HistogramMeterOptions;
  readonly #histograms = new Map<string, NamedHistogram>();
  readonly #startTime: HrTime;

  constructor(options: HistogramMeterOptions) {
    this.#options = options;
    this.#startTime = toHrTime(options.now());
  }

  /** Engines that share the telemetry share its histograms. */
  histogram(name: string, { description, unit = '', boundaries = [] }: MetricOptions): Measure {
    const known = this.#histograms.get(name);
    if (known !== undefined) return known.histogram.record;
    const histogram = new Histogram({ boundaries, seriesMax: this.#options.seriesMax });
    const descriptor = { name, description, unit, valueType: ValueType.DOUBLE };
    this.#histograms.set(name, { descriptor, boundaries: [...boundaries], histogram });
    return histogram.record;
  }

  /** For one reader, which gets all values at each collection or those since the last one. */
  producer(temporality: AggregationTemporality): MetricProducer {
    const { scope, resource, now } = this.#options;
    const aggregationTemporality = temporality;
    const since = temporality === AggregationTemporality.DELTA ? new Differences(this.#startTime) : null;
    const collect = (): CollectionResult => {
      const endTime = toHrTime(now());
      const metrics = [...this.#histograms.values()].flatMap(({ descriptor, boundaries, histogram }) => {
        const dataPoints = [...histogram.series()].flatMap((series) =>
          since === null
            ? [toDataPoint(series, boundaries, { startTime: this.#startTime, endTime })]
            : since.dataPoints(series, boundaries, endTime),
        );
        const dataPointType = DataPointType.HISTOGRAM as const;
        return dataPoints.length === 0 ? [] : [{ descriptor, aggregationTemporality, dataPointType, dataPoints }];
      });
      since?.end(endTime);
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: { name: scope }, metrics }] }, errors: [] };
    };
    return { collect: () => Promise.resolve(collect()) };
  }
}

type Interval = Pick<DataPoint<HistogramValue>, 'startTime' | 'endTime'>;

const toDataPoint = (
  { attributes, counts, count, sum, min, max }: HistogramSeries,
  boundaries: number[],
  interval: Interval,
): DataPoint<HistogramValue> => ({
  ...interval,
  attributes: { ...attributes },
  value: { buckets: { boundaries, counts: [...counts] }, count, sum, min, max },
});

/** What one reader has collected. */
class Differences {
  readonly #collected = new Map<HistogramSeries, { counts: Float64Array; count: number; sum: number }>();
  #startTime: HrTime;

  constructor(startTime: HrTime) {
    this.#startTime = startTime;
  }

  /** The values since the last collection; none, no data point. Their minimum and maximum are not known. */
  dataPoints(series: HistogramSeries, boundaries: number[], endTime: HrTime): DataPoint<HistogramValue>[] {
    const { counts, count, sum, attributes } = series;
    const before = this.#collected.get(series);
    if (count === before?.count) return [];
    this.#collected.set(series, { counts: counts.slice(), count, sum });
    const value = {
      buckets: { boundaries, counts: [...counts].map((now, bucket) => now - (before?.counts[bucket] ?? 0)) },
      count: count - (before?.count ?? 0),
      sum: sum - (before?.sum ?? 0),
    };
    return [{ startTime: this.#startTime, endTime, attributes: { ...attributes }, value }];
  }

  end(endTime: HrTime): void {
    this.#startTime = endTime;
  }
}

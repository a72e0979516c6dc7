// The histograms of the command, summed up here: the SDK takes a multiple of the time for a value, and that for each
// reader. The readers of the SDK get them with its other metrics when they collect.

import type { Attributes, Measure, MetricOptions } from '../../../engine/ports/telemetry.js';
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
import { ValueType } from './otel-telemetry.js';

/** The values of one series so far. */
interface HistogramSeries {
  readonly attributes: Attributes;
  /** Values in each bucket; the last one has those above all boundaries. */
  readonly counts: Float64Array;
  count: number;
  sum: number;
  min: number;
  max: number;
}

/** The series that has the values of all further ones, as OpenTelemetry names it. */
const OVERFLOW: Attributes = { 'otel.metric.overflow': true };
const NONE: Attributes = {};

export interface HistogramOptions {
  /** Upper limits of the buckets, which belong to them. */
  readonly boundaries: readonly number[];
  /** Further series are counted together. */
  readonly seriesMax: number;
}

/** A distribution of values. To record one allocates nothing, once its attributes are known. */
export class Histogram {
  readonly #options: HistogramOptions;
  readonly #series = new Map<string, HistogramSeries>();
  /** By the object: a caller passes the same one for the same attributes. */
  readonly #known = new WeakMap<Attributes, HistogramSeries>();
  /** The attributes of the last value, and their series: most values follow one with the same. */
  #lastAttributes: Attributes | null = null;
  #lastSeries: HistogramSeries | null = null;

  constructor(options: HistogramOptions) {
    this.#options = options;
  }

  record: Measure = (value, attributes = NONE) => {
    if (!(value >= 0)) return;
    const last = this.#lastAttributes === attributes ? this.#lastSeries : null;
    const series = last ?? this.#find(attributes);
    const { boundaries } = this.#options;
    let bucket = 0;
    while (bucket < boundaries.length && value > (boundaries[bucket] ?? 0)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.count += 1;
    series.sum += value;
    if (value < series.min) series.min = value;
    if (value > series.max) series.max = value;
  };

  /** All series now. They change with the next value. */
  series(): Iterable<HistogramSeries> {
    return this.#series.values();
  }

  #find(attributes: Attributes): HistogramSeries {
    const series = this.#known.get(attributes) ?? this.#create(attributes);
    this.#lastAttributes = attributes;
    this.#lastSeries = series;
    return series;
  }

  #create(attributes: Attributes): HistogramSeries {
    const key = keyOf(attributes);
    const known = this.#series.get(key);
    const isFull = known === undefined && this.#series.size >= this.#options.seriesMax - 1;
    const series = known ?? (isFull ? this.#seriesOf(OVERFLOW) : this.#seriesOf({ ...attributes }, key));
    this.#known.set(attributes, series);
    return series;
  }

  #seriesOf(attributes: Attributes, key = keyOf(attributes)): HistogramSeries {
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const counts = new Float64Array(this.#options.boundaries.length + 1);
    const series = { attributes, counts, count: 0, sum: 0, min: Infinity, max: -Infinity };
    this.#series.set(key, series);
    return series;
  }
}

const keyOf = (attributes: Attributes): string =>
  JSON.stringify(Object.entries(attributes).sort(([one], [other]) => (one < other ? -1 : 1)));

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

/** A time as OpenTelemetry has it: seconds since the epoch, and nanoseconds. */
type HrTime = [seconds: number, nanoseconds: number];

const MS_PER_SECOND = 1_000;
const NS_PER_MS = 1_000_000;
const NS_PER_SECOND = MS_PER_SECOND * NS_PER_MS;

function toHrTime(ms: number): HrTime {
  const seconds = Math.trunc(ms / MS_PER_SECOND);
  const nanoseconds = Math.round((ms - seconds * MS_PER_SECOND) * NS_PER_MS);
  return nanoseconds < NS_PER_SECOND ? [seconds, nanoseconds] : [seconds + 1, nanoseconds - NS_PER_SECOND];
}

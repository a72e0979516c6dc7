import type { Attributes, Measure } from '../../../engine/ports/telemetry.js';

/** The values of one series so far. */
export interface HistogramSeries {
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

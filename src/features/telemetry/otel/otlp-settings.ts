// Where traces and metrics are sent, from options of a command and the standard variables of OpenTelemetry.

import { usageError } from '../../../core/errors.js';

/** Null for a signal that is not sent. */
export interface OtlpSettings {
  readonly traces: string | null;
  readonly metrics: string | null;
  /** See `Tracer`. */
  readonly ratio: number;
  readonly followsCallers: boolean;
  readonly queue: { readonly spansMax: number; readonly batchMax: number; readonly intervalMs: number };
  readonly metricIntervalMs: number;
  /** How long one export may take, with its retries. */
  readonly timeoutMs: number;
}

/** The options of a command, as they were given. */
export interface OtlpOptions {
  readonly url: string | undefined;
  readonly ratio: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The share of run trees that are traced by default: to trace every step costs many times as much as to measure it
 * (docs/performance.md).
 */
const RATIO = 0.1;
const QUEUE_MAX = 8_192;
const BATCH_MAX = 512;
const INTERVAL_MS = 1_000;
const METRIC_INTERVAL_MS = 60_000;
const TIMEOUT_MS = 10_000;
/** Larger values of a variable are a mistake. */
const VALUE_MAX = 3_600_000;

/**
 * Options come before variables.
 * @returns null if neither names a collector, or `OTEL_SDK_DISABLED` is true
 * @throws UsageError
 */
export function readOtlpSettings(
  { url, ratio }: OtlpOptions,
  environment: Environment = process.env,
): OtlpSettings | null {
  const base = url ?? nonEmpty(environment['OTEL_EXPORTER_OTLP_ENDPOINT']);
  const traces = endpointOf('TRACES', 'v1/traces', base, url !== undefined, environment);
  const metrics = endpointOf('METRICS', 'v1/metrics', base, url !== undefined, environment);
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || (traces === null && metrics === null)) return null;
  const number = (name: string, otherwise: number): number => readNumber(name, environment[name], otherwise);
  const spansMax = number('OTEL_BSP_MAX_QUEUE_SIZE', QUEUE_MAX);
  return {
    traces,
    metrics,
    ...samplingOf(ratio, environment),
    queue: {
      spansMax,
      batchMax: Math.min(spansMax, number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', BATCH_MAX)),
      intervalMs: number('OTEL_BSP_SCHEDULE_DELAY', INTERVAL_MS),
    },
    metricIntervalMs: number('OTEL_METRIC_EXPORT_INTERVAL', METRIC_INTERVAL_MS),
    timeoutMs: number('OTEL_EXPORTER_OTLP_TIMEOUT', TIMEOUT_MS),
  };
}

/** The option is the base of both addresses. A variable of one signal is its whole address. */
function endpointOf(
  signal: 'TRACES' | 'METRICS',
  path: string,
  base: string | undefined,
  isOption: boolean,
  environment: Environment,
): string | null {
  if (environment[`OTEL_${signal}_EXPORTER`] === 'none') return null;
  const own = isOption ? undefined : nonEmpty(environment[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]);
  const address = own ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/${path}`);
  if (address === undefined) return null;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return address;
  throw usageError('the address of the collector is not a URL of http or https (--otlp, OTEL_EXPORTER_OTLP_ENDPOINT)');
}

function samplingOf(option: string | undefined, environment: Environment) {
  const sampler = nonEmpty(environment['OTEL_TRACES_SAMPLER']);
  if (option !== undefined) return { ratio: toRatio(option, '--trace-ratio'), followsCallers: true };
  if (sampler === undefined) return { ratio: RATIO, followsCallers: true };
  const followsCallers = sampler.startsWith('parentbased_');
  const kind = sampler.replace('parentbased_', '');
  if (kind === 'always_on') return { ratio: 1, followsCallers };
  if (kind === 'always_off') return { ratio: 0, followsCallers };
  if (kind !== 'traceidratio') throw usageError(`OTEL_TRACES_SAMPLER: this sampler is not supported`);
  return { ratio: toRatio(environment['OTEL_TRACES_SAMPLER_ARG'] ?? '1', 'OTEL_TRACES_SAMPLER_ARG'), followsCallers };
}

function toRatio(text: string, name: string): number {
  const ratio = /^(?:0|1|[01]?\.\d{1,12})$/.test(text) ? Number(text) : NaN;
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw usageError(`${name}: the share is a number from 0 to 1`);
}

function readNumber(name: string, text: string | undefined, otherwise: number): number {
  if (nonEmpty(text) === undefined) return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value <= VALUE_MAX) return value;
  throw usageError(`${name}: the value is a whole number from 1 to ${VALUE_MAX}`);
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

import type { CreateMetricRegistry } from '../../../interfaces/http/metrics.js';
import { sdkTelemetry } from '../otel/sdk-telemetry.js';

/** Metrics that are only collected: nothing is sent. */
export const createCollectedMetrics: CreateMetricRegistry = (version, log) =>
  sdkTelemetry({ version, otlp: null, log });

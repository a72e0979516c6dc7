// `turnpike/telemetry`: traces and metrics over the OpenTelemetry API, which the embedding service installs.

export type { TraceCarrier } from '../../../core/contract/trace-context.js';
export type { Meter, Telemetry, Tracer } from '../../../engine/ports/telemetry.js';
export { otelTelemetry, type OtelTelemetryOptions } from './otel-telemetry.js';

// The options of the services that report traces and metrics to operators, for a collector.

import { valuesOf, type CommandOption, type TelemetryOptions } from '../../../interfaces/cli/command.js';
import { readPackageVersion } from '../../../system/package-version.js';
import { readOtlpSettings } from '../otel/otlp-settings.js';

const OPTIONS = [
  { name: 'otlp', value: 'URL', help: 'send traces and metrics to this collector (OTLP over HTTP)' },
  { name: 'trace-ratio', value: 'SHARE', help: 'the share of run trees to trace, 0 to 1 (default 0.1)' },
] as const satisfies readonly CommandOption[];

export const TELEMETRY_OPTIONS: TelemetryOptions = {
  options: OPTIONS,
  open: async (args, log, servesMetrics) => {
    const { otlp: url, traceRatio: ratio } = valuesOf(OPTIONS, args);
    const otlp = readOtlpSettings({ url, ratio });
    if (otlp === null && !servesMetrics) return null;
    // Loaded here, because no other command needs it.
    const { sdkTelemetry } = await import('../otel/sdk-telemetry.js');
    return sdkTelemetry({ version: readPackageVersion(), otlp, log });
  },
};

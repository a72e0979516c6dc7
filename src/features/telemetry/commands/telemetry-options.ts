// The options of the services that report traces and metrics to operators, for a collector.

import type { TelemetryOptions } from '../../../interfaces/cli/command.js';
import { readPackageVersion } from '../../../system/package-version.js';
import { readOtlpSettings } from '../otel/otlp-settings.js';

export const TELEMETRY_OPTIONS: TelemetryOptions = {
  options: [
    { name: 'otlp', value: 'URL', help: 'send traces and metrics to this collector (OTLP over HTTP)' },
    { name: 'trace-ratio', value: 'SHARE', help: 'the share of run trees to trace, 0 to 1 (default 0.1)' },
  ],
  open: async (args, log, servesMetrics) => {
    const otlp = readOtlpSettings({ url: args.text('otlp'), ratio: args.text('trace-ratio') });
    if (otlp === null && !servesMetrics) return null;
    // Loaded here, because no other command needs it.
    const { sdkTelemetry } = await import('../otel/sdk-telemetry.js');
    return sdkTelemetry({ version: readPackageVersion(), otlp, log });
  },
};

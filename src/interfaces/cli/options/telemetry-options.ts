// The options of the services that report to operators: traces and metrics for a collector, and the level of the log.

import { readOtlpSettings } from '../../../features/telemetry/otel/otlp-settings.js';
import type { SdkTelemetry } from '../../../features/telemetry/otel/sdk-telemetry.js';
import { winstonLog } from '../../../system/winston-log.js';
import { usageError } from '../../../core/errors.js';
import { readPackageVersion } from '../../../system/package-version.js';
import type { CommandArguments, CommandOption } from '../command.js';
import type { Io } from '../io.js';

const LEVELS = ['error', 'warn', 'info'] as const;

export const TELEMETRY_OPTIONS: readonly CommandOption[] = [
  { name: 'otlp', value: 'URL', help: 'send traces and metrics to this collector (OTLP over HTTP)' },
  { name: 'trace-ratio', value: 'SHARE', help: 'the share of run trees to trace, 0 to 1 (default 0.1)' },
  {
    name: 'log-level',
    value: 'LEVEL',
    help: `the least severe log lines: ${LEVELS.join(', ')} (default error)`,
  },
];

/** What a service uses to report. */
export interface ServiceReports {
  /** The environment of the command, with the log of the option. */
  readonly io: Io;
  /** Null without a collector, unless metrics are served. */
  readonly telemetry: SdkTelemetry | null;
}

/**
 * Opens the telemetry of a service while `work` runs.
 * @param servesMetrics whether metrics can be collected without a collector
 * @throws UsageError
 */
export async function withReports<T>(
  args: CommandArguments,
  io: Io,
  servesMetrics: boolean,
  work: (reports: ServiceReports) => Promise<T>,
): Promise<T> {
  const log = logOf(args, io);
  const otlp = readOtlpSettings({ url: args.text('otlp'), ratio: args.text('trace-ratio') });
  if (otlp === null && !servesMetrics) return work({ io: withLog(io, log), telemetry: null });
  // Loaded here, because no other command needs it.
  const { sdkTelemetry } = await import('../../../features/telemetry/otel/sdk-telemetry.js');
  const telemetry = sdkTelemetry({ version: readPackageVersion(), otlp, log });
  try {
    return await work({ io: withLog(io, log), telemetry });
  } finally {
    await telemetry.close();
  }
}

/** The streams of `io` are opened on first use, so they are not copied. */
const withLog = (io: Io, log: Io['log']): Io => Object.create(io, { log: { value: log, enumerable: true } }) as Io;

function logOf(args: CommandArguments, io: Io): Io['log'] {
  const name = args.text('log-level');
  if (name === undefined) return io.log;
  const level = LEVELS.find((known) => known === name);
  if (level === undefined) throw usageError(`--log-level takes ${LEVELS.join(', ')}`);
  return winstonLog(level);
}

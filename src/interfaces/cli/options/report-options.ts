// The options of the services that report to operators: those of telemetry, and the level of the log.

import type { ServiceTelemetry } from '../../../engine/ports/telemetry.js';
import { winstonLog } from '../../../system/winston-log.js';
import { usageError } from '../../../core/errors.js';
import type { CommandArguments, CommandOption } from '../command.js';
import type { Io } from '../io.js';
import { TELEMETRY_OPTIONS } from './added-options.js';

const LEVELS = ['error', 'warn', 'info'] as const;

export const REPORT_OPTIONS: readonly CommandOption[] = [
  ...(TELEMETRY_OPTIONS?.options ?? []),
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
  /** Null without a collector, unless metrics are served, and without the feature. */
  readonly telemetry: ServiceTelemetry | null;
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
  const telemetry = (await TELEMETRY_OPTIONS?.open(args, log, servesMetrics)) ?? null;
  try {
    return await work({ io: withLog(io, log), telemetry });
  } finally {
    await telemetry?.close();
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

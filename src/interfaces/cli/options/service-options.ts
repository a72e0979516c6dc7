// What the commands that serve have in common: their network, the runs of their agents, the admin listener, what they
// report to operators, and what follows a failed write to the ledger.

import type { ServiceTelemetry } from '../../../engine/ports/telemetry.js';
import type { TurnpikeOptions } from '../../../host/turnpike-options.js';
import type { TlsFiles } from '../../../system/network/tls-certificate.js';
import { winstonLog } from '../../../system/winston-log.js';
import type { AdminServer } from '../../http/admin/serve-admin.js';
import { parseHostPort, quoteArgument } from '../arguments.js';
import type { CommandArguments, CommandOption, ExitCode, OptionValues } from '../command.js';
import type { Io } from '../io.js';
import { integerType, PATH_TYPE, wordType } from '../option-types.js';
import { TELEMETRY_OPTIONS } from './added-options.js';

/** How other machines and pages reach a service safely: by which names, with a certificate of its own, or a proxy. */
export const NETWORK_OPTIONS = [
  { name: 'allow-host', value: 'HOST', multiple: true, help: 'accept this Host header too; may be repeated' },
  {
    name: 'allow-origin',
    value: 'URL',
    multiple: true,
    help: 'accept requests of pages from this origin; may be repeated',
  },
  {
    name: 'tls-cert',
    value: 'FILE',
    type: PATH_TYPE,
    needs: 'tls-key',
    help: 'serve HTTPS with this PEM certificate; read again when the file changes',
  },
  { name: 'tls-key', value: 'FILE', type: PATH_TYPE, needs: 'tls-cert', help: 'the PEM key of the certificate' },
  {
    name: 'trusted-proxy',
    value: 'ADDRESS',
    multiple: true,
    help: 'believe X-Forwarded-For of this address or network (10.0.0.0/8); may be repeated',
  },
] as const satisfies readonly CommandOption[];

interface ServiceNetwork {
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly tls: TlsFiles | null;
  readonly trustedProxies: readonly string[];
}

export function networkOf({
  allowHost: hosts,
  allowOrigin: origins,
  tlsCert: cert,
  tlsKey: key,
  trustedProxy: trustedProxies,
}: OptionValues<typeof NETWORK_OPTIONS>): ServiceNetwork {
  // Each of the two options needs the other one.
  const tls = cert === undefined || key === undefined ? null : { cert, key };
  return { hosts, origins, tls, trustedProxies };
}

/** Limits the runs that an agent may begin over MCP after its runs were denied, failed or were cancelled. */
export const NEW_RUNS_OPTION = {
  name: 'new-runs-max',
  value: 'N',
  type: integerType({ takes: 'a whole number' }),
  help: 'runs that an agent may begin after denied, failed and cancelled ones (default: any number)',
} as const satisfies CommandOption;

export const ADMIN_OPTION = {
  name: 'admin',
  value: 'HOST:PORT',
  help: 'also serve /livez, /readyz and /metrics there, without a token (port 0: any free port)',
} as const satisfies CommandOption;

export const LEDGER_FAILURE_OPTION = {
  name: 'on-ledger-failure',
  value: 'HOW',
  type: wordType(['restart', 'exit'], ' or '),
  default: 'restart',
  help: 'after a failed write: restart (default) opens the ledger again, exit ends with exit code 3',
} as const satisfies CommandOption;

const LEVELS = ['error', 'warn', 'info'] as const;

const LOG_OPTION = {
  name: 'log-level',
  value: 'LEVEL',
  type: { ...wordType(LEVELS), quotes: false },
  help: `the least severe log lines: ${LEVELS.join(', ')} (default error)`,
} as const satisfies CommandOption;

/** The options of the services that report to operators: those of telemetry, and the level of the log. */
export const REPORT_OPTIONS = [
  ...(TELEMETRY_OPTIONS?.options ?? []),
  LOG_OPTION,
] as const satisfies readonly CommandOption[];

type ServiceArguments = CommandArguments<
  OptionValues<readonly [typeof LEDGER_FAILURE_OPTION, typeof LOG_OPTION]> &
    Partial<OptionValues<readonly [typeof ADMIN_OPTION]>>
>;

/** A command that serves until it is stopped. */
export interface ServiceLife {
  /** The environment of the command, with the log of the option. */
  readonly io: Io;
  /** Null without a collector, unless metrics are served, and without the feature. */
  readonly telemetry: ServiceTelemetry | null;
  /** How its Turnpike reacts to a failed write. */
  readonly reaction: Pick<TurnpikeOptions, 'restarts' | 'onLedgerFailed'>;
  /** Null without the option. */
  readonly admin: AdminServer | null;
  /**
   * Aborted when the command has to end. From the first call on, a signal no longer ends the process: an opening that
   * takes long can be interrupted before.
   */
  readonly stop: () => AbortSignal;
  /** Resolves when the command has to end. */
  readonly waitForEnd: () => Promise<void>;
}

type ServiceReports = Pick<ServiceLife, 'io' | 'telemetry'>;

/**
 * Runs a command that serves. The admin listener is there before the ledger is opened, and until it is closed.
 * @param servesMetrics whether metrics can be collected without a collector
 * @returns 3 if the ledger has failed and the command was to end then
 * @throws UsageError for invalid options, and for an address that cannot be listened on
 */
export async function withServiceLife(
  args: ServiceArguments,
  given: Io,
  work: (life: ServiceLife) => Promise<ExitCode>,
  servesMetrics = args.values.admin !== undefined,
): Promise<ExitCode> {
  const { logLevel } = args.values;
  const io = logLevel === undefined ? given : withLog(given, winstonLog(logLevel));
  const telemetry = (await TELEMETRY_OPTIONS?.open(args, io.log, servesMetrics)) ?? null;
  try {
    return await live(args, { io, telemetry }, work);
  } finally {
    await telemetry?.close();
  }
}

/** The streams of `io` are opened on first use, so they are not copied. */
const withLog = (io: Io, log: Io['log']): Io => Object.create(io, { log: { value: log, enumerable: true } }) as Io;

async function live(
  args: ServiceArguments,
  reports: ServiceReports,
  work: (life: ServiceLife) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { io } = reports;
  const failed = new AbortController();
  const admin = await openAdmin(args, io);
  let stopping: AbortSignal | null = null;
  const stop = (): AbortSignal => {
    if (stopping !== null) return stopping;
    stopping = AbortSignal.any([io.stop(), failed.signal]);
    stopping.addEventListener('abort', () => admin?.end(), { once: true });
    return stopping;
  };
  const waitForEnd = async (): Promise<void> => {
    if (!stop().aborted) await new Promise((end) => stop().addEventListener('abort', end, { once: true }));
  };
  const onLedgerFailed = (): void => failed.abort();
  const reaction = args.values.onLedgerFailure === 'exit' ? { onLedgerFailed } : ({ restarts: 'automatic' } as const);
  try {
    const code = await work({ ...reports, reaction, admin, stop, waitForEnd });
    if (!failed.signal.aborted) return code;
    await io.stderr.writeLine('the process ends, because the ledger cannot be written (--on-ledger-failure exit)');
    return 3;
  } finally {
    await admin?.close();
  }
}

async function openAdmin(args: ServiceArguments, io: Io): Promise<AdminServer | null> {
  const text = args.values.admin;
  if (text === undefined) return null;
  const address = parseHostPort(text);
  if (address === null) throw args.usageError(`${quoteArgument(text)} is not a valid HOST:PORT`);
  // Loaded here, because most commands do not need it.
  const { serveAdmin } = await import('../../http/admin/serve-admin.js');
  const admin = await serveAdmin({ ...address, log: io.log });
  await io.stderr.writeLine(`livez, readyz and metrics: ${admin.url}`);
  return admin;
}

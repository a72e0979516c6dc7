// What the commands that serve have in common: the admin listener, and what follows a failed write to the ledger.

import type { TurnpikeOptions } from '../../../host/turnpike-options.js';
import type { AdminServer } from '../../http/admin/serve-admin.js';
import { commandUsageError, parseHostPort, quoteArgument } from '../arguments.js';
import type { CliCommand, CommandArguments, CommandOption, ExitCode } from '../command.js';
import type { Io } from '../io.js';
import { withReports, type ServiceReports } from './report-options.js';

export const ADMIN_OPTION: CommandOption = {
  name: 'admin',
  value: 'HOST:PORT',
  help: 'also serve /livez, /readyz and /metrics there, without a token (port 0: any free port)',
};

const REACTIONS = ['restart', 'exit'] as const;

export const LEDGER_FAILURE_OPTION: CommandOption = {
  name: 'on-ledger-failure',
  value: 'HOW',
  help: 'after a failed write: restart (default) opens the ledger again, exit ends with exit code 3',
};

/** A command that serves until it is stopped. */
export interface ServiceLife extends ServiceReports {
  /** How its Turnpike reacts to a failed write. */
  readonly reaction: Pick<TurnpikeOptions, 'restarts' | 'onLedgerFailed'>;
  /** Null without the option. */
  readonly admin: AdminServer | null;
  /**
   * Aborted when the command has to end. From the first call on, a signal no longer ends the process: an opening that
   * takes long can be interrupted before.
   */
  stop(): AbortSignal;
  /** Resolves when the command has to end. */
  waitForEnd(): Promise<void>;
}

/**
 * Runs a command that serves. The admin listener is there before the ledger is opened, and until it is closed.
 * @returns 3 if the ledger has failed and the command was to end then
 * @throws UsageError for invalid options, and for an address that cannot be listened on
 */
export function withServiceLife(
  command: CliCommand,
  args: CommandArguments,
  io: Io,
  work: (life: ServiceLife) => Promise<ExitCode>,
): Promise<ExitCode> {
  const servesMetrics = command.name === 'serve' || args.text('admin') !== undefined;
  return withReports(args, io, servesMetrics, (reports) => live(command, args, reports, work));
}

async function live(
  command: CliCommand,
  args: CommandArguments,
  reports: ServiceReports,
  work: (life: ServiceLife) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { io } = reports;
  const exits = parseReaction(command, args) === 'exit';
  const failed = new AbortController();
  const admin = await openAdmin(command, args, io);
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
  const reaction = exits ? { onLedgerFailed } : ({ restarts: 'automatic' } as const);
  try {
    const code = await work({ ...reports, reaction, admin, stop, waitForEnd });
    if (!failed.signal.aborted) return code;
    await io.stderr.writeLine('the process ends, because the ledger cannot be written (--on-ledger-failure exit)');
    return 3;
  } finally {
    await admin?.close();
  }
}

async function openAdmin(command: CliCommand, args: CommandArguments, io: Io): Promise<AdminServer | null> {
  const text = args.text('admin');
  if (text === undefined) return null;
  const address = parseHostPort(text);
  if (address === null) throw commandUsageError(command, `${quoteArgument(text)} is not a valid HOST:PORT`);
  // Loaded here, because most commands do not need it.
  const { serveAdmin } = await import('../../http/admin/serve-admin.js');
  const admin = await serveAdmin({ ...address, log: io.log });
  await io.stderr.writeLine(`livez, readyz and metrics: ${admin.url}`);
  return admin;
}

function parseReaction(command: CliCommand, args: CommandArguments): (typeof REACTIONS)[number] {
  const text = args.text('on-ledger-failure') ?? 'restart';
  const reaction = REACTIONS.find((one) => one === text);
  if (reaction !== undefined) return reaction;
  throw commandUsageError(command, `--on-ledger-failure takes ${REACTIONS.join(' or ')}, not ${quoteArgument(text)}`);
}

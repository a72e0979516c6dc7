import type { ConfiguredOptions } from '../../host/configuration/turnpike-configuration.js';
import type { Log } from '../../engine/ports/log.js';
import type { ServiceTelemetry } from '../../engine/ports/telemetry.js';
import type { AddedToolOptions } from '../../runtime/host-feature.js';
import type { IdentityOptions } from '../service/identity-service.js';
import type { LedgerState } from '../../kernel/replay/ledger-state.js';
import type { Io } from './io.js';

/**
 * 0: done. 1: the check failed or the run did not complete. 2: wrong usage. 3: the system is broken (ledger,
 * sandbox or a bug). 4: nothing is wrong, but not everything could be checked.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4;

/** An option as the user types it: `--name`, or `--name VALUE` if it takes a value. */
export interface CommandOption {
  readonly name: string;
  readonly value?: string;
  /** May be given more than once. */
  readonly multiple?: true;
  /** The command does not run without it. */
  readonly required?: boolean;
  readonly help: string;
}

/** The arguments after the name of the command. */
export interface CommandArguments {
  readonly operands: readonly string[];
  /** The value of an option, or undefined if it was not given. */
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  flag(name: string): boolean;
  /** Whether the option is on the command line. `text`, `list` and `flag` also return configured values. */
  isGiven(name: string): boolean;
  /** The configured options of `openTurnpike`. */
  readonly openOptions: ConfiguredOptions;
}

/**
 * What a command does with the home directory of `--home`. A command that reads changes no byte and no time of it, and
 * works on a read-only file system. `none`: the command does not open it.
 */
export type HomeUse = 'none' | 'read' | 'write';

/** Another use of the home directory in one form of a command. */
export interface FormOfUse {
  /** The name of an option, or `operands` if there are any. */
  readonly given: string;
  readonly access: HomeUse;
}

/** One command of `turnpike`. Its usage is data; the help and the argument check are made from it. */
export interface CliCommand {
  /** As the user types it, in one or more words. */
  readonly name: string;
  readonly access: HomeUse;
  /** The first form that applies counts, in place of `access`. */
  readonly accessWith?: readonly FormOfUse[];
  readonly summary: string;
  /** The arguments after the options: their text in the usage line, and their number. */
  readonly operands: { readonly usage: string; readonly min: number; readonly max: number };
  readonly options: readonly CommandOption[];
  /** The section of turnpike.yaml with the options of this command. Default: none. */
  readonly section?: string;
  /** The key in that section that gives the operand. */
  readonly operandKey?: string;
  /** Further lines of the help. */
  readonly notes?: readonly string[];
  /** @throws CodedError, which becomes one line and an exit code; OutputClosedError */
  run(args: CommandArguments, io: Io): Promise<ExitCode>;
}

/** Commands that belong together, under one title of the help. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly CliCommand[];
}

/** Options of `turnpike serve` with which it accepts callers who are not in the token book. */
export interface CallerOptions {
  readonly options: readonly CommandOption[];
  /** Undefined if none of the options is given. @throws UsageError */
  readonly parse: (command: CliCommand, args: CommandArguments, io: Io) => IdentityOptions | undefined;
}

/** Options of the commands that serve with which they report traces and metrics. */
export interface TelemetryOptions {
  readonly options: readonly CommandOption[];
  /**
   * Null without a collector, unless metrics are served.
   * @param servesMetrics whether metrics can be collected without a collector
   * @throws UsageError
   */
  readonly open: (args: CommandArguments, log: Log, servesMetrics: boolean) => Promise<ServiceTelemetry | null>;
}

/** A table of `turnpike replay --until`: the state of what a feature has opened. */
export interface StateTable {
  readonly head: readonly string[];
  readonly rows: (state: LedgerState) => readonly (readonly string[])[];
}

/** Options of the commands that serve agents, which the tools of a feature read. */
export interface ToolCommandOptions {
  /** Those of `turnpike mcp`, in their two places in its help: after its own options, and at the end. */
  readonly mcp: { readonly middle: readonly CommandOption[]; readonly end: readonly CommandOption[] };
  /** Those of `turnpike serve`. */
  readonly serve: readonly CommandOption[];
  /** @throws UsageError */
  readonly parse: (command: CliCommand, args: CommandArguments, io: Io) => AddedToolOptions;
}

/** What this call of a command does with the home directory. */
export function homeUseOf({ access, accessWith = [] }: CliCommand, args: CommandArguments): HomeUse {
  const isGiven = (given: string): boolean =>
    given === 'operands' ? args.operands.length > 0 : args.flag(given) || args.text(given) !== undefined;
  return accessWith.find(({ given }) => isGiven(given))?.access ?? access;
}

export const NO_OPERANDS = { usage: '', min: 0, max: 0 } as const;

/** The options of every command. */
export const COMMON_OPTIONS: readonly CommandOption[] = [
  { name: 'home', value: 'DIR', help: 'the home directory: ledger, artifacts, sandbox (default ./.turnpike)' },
  { name: 'contract', value: 'DIR', help: 'the contract folder (default ./contract, else the shipped policy)' },
  { name: 'config', value: 'FILE', help: 'the configuration file (default ./turnpike.yaml, if it exists)' },
  { name: 'json', help: 'print JSON lines instead of text' },
  { name: 'help', help: 'show this help and exit' },
];

import type { ConfiguredOptions } from '../../host/configuration/turnpike-configuration.js';
import type { Log } from '../../engine/ports/log.js';
import type { ServiceTelemetry } from '../../engine/ports/telemetry.js';
import type { AddedToolOptions } from '../../runtime/host-feature.js';
import type { IdentityOptions } from '../service/identity-service.js';
import type { LedgerState } from '../../kernel/replay/ledger-state.js';
import type { Io } from './io.js';
import type { OptionType } from './option-types.js';

/**
 * 0: done. 1: the check failed or the run did not complete. 2: wrong usage. 3: the system is broken (ledger,
 * sandbox or a bug). 4: nothing is wrong, but not everything could be checked.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4;

/** An option as the user types it: `--name`, or `--name VALUE` if it takes a value. */
export interface CommandOption {
  readonly name: string;
  readonly value?: string;
  /** What the value is. Default: any text. */
  readonly type?: OptionType<unknown>;
  /** The text that applies without the option. */
  readonly default?: string;
  /** May be given more than once. */
  readonly multiple?: true;
  /** The command does not run without it. */
  readonly required?: boolean;
  /** The name of another option, without which this one is refused. */
  readonly needs?: string;
  readonly help: string;
}

/** `tls-cert` is `tlsCert`. */
type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name;

type ParsedText<Option> = Option extends { readonly type: OptionType<infer Value> } ? Value : string;

type OptionValue<Option extends CommandOption> = Option extends { readonly value: string }
  ? Option extends { readonly multiple: true }
    ? readonly ParsedText<Option>[]
    : Option extends { readonly required: true } | { readonly default: string }
      ? ParsedText<Option>
      : ParsedText<Option> | undefined
  : boolean;

/**
 * The values of declared options, by their names in camel case. An option without a value is a boolean, a repeated one
 * is a list. Options that are declared at run time are left out.
 */
export type OptionValues<Options extends readonly CommandOption[]> = {
  readonly [
    Option in Options[number] as string extends Option['name'] ? never : CamelCase<Option['name']>
  ]: OptionValue<Option>;
};

/** `tlsCert` of `tls-cert`. */
export const toCamelCase = <Name extends string>(name: Name): CamelCase<Name> =>
  name.replace(/-(.)/gu, (_, letter: string) => letter.toUpperCase()) as CamelCase<Name>;

/** The values of `COMMON_OPTIONS`, and those that every command has from the configuration. */
interface CommonValues {
  readonly home: string | undefined;
  readonly contract: string | undefined;
  readonly config: string | undefined;
  readonly json: boolean;
  readonly store: string | undefined;
  readonly heads: string | undefined;
  readonly registrations: string | undefined;
}

/** The arguments after the name of the command. */
export interface CommandArguments<Values = object> {
  readonly operands: readonly string[];
  /** The checked values of the options, from the command line or the configuration. */
  readonly values: Values & CommonValues;
  /** Whether the option is on the command line. All other members also return configured values. */
  isGiven(name: string): boolean;
  /** A usage error that refers to the help of this command. */
  readonly usageError: (message: string) => Error;
  /** The configured options of `openTurnpike`. */
  readonly openOptions: ConfiguredOptions;
}

/** The arguments of a command that declares these options. */
export type ArgumentsOf<Options extends readonly CommandOption[]> = CommandArguments<OptionValues<Options>>;

/** The values of options that are declared at run time, for the module that has declared them. */
export const valuesOf = <const Options extends readonly CommandOption[]>(
  _options: Options,
  { values }: CommandArguments,
): OptionValues<Options> => values as unknown as OptionValues<Options>;

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
export interface CliCommand<Options extends readonly CommandOption[] = readonly CommandOption[]> {
  /** As the user types it, in one or more words. */
  readonly name: string;
  readonly access: HomeUse;
  /** The first form that applies counts, in place of `access`. */
  readonly accessWith?: readonly FormOfUse[];
  readonly summary: string;
  /** The arguments after the options: their text in the usage line, and their number. */
  readonly operands: { readonly usage: string; readonly min: number; readonly max: number };
  readonly options: Options;
  /** The section of turnpike.yaml with the options of this command. Default: none. */
  readonly section?: string;
  /** The key in that section that gives the operand. */
  readonly operandKey?: string;
  /** Further lines of the help. */
  readonly notes?: readonly string[];
  /** @throws CodedError, which becomes one line and an exit code; OutputClosedError */
  run(args: ArgumentsOf<Options>, io: Io): Promise<ExitCode>;
}

/** Declares a command whose `run` gets the values of its options in their types. */
export const defineCommand = <const Options extends readonly CommandOption[]>(
  command: CliCommand<Options>,
): CliCommand => command;

/** Commands that belong together, under one title of the help. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly CliCommand[];
}

/** Options of `turnpike serve` with which it accepts callers who are not in the token book. */
export interface CallerOptions {
  readonly options: readonly CommandOption[];
  /** Undefined if none of the options is given. @throws UsageError */
  parse(args: CommandArguments, io: Io): IdentityOptions | undefined;
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
  readonly parse: (args: CommandArguments) => AddedToolOptions;
}

/** What this call of a command does with the home directory. */
export function homeUseOf(
  { access, accessWith = [] }: CliCommand,
  { operands, values }: Pick<CommandArguments, 'operands' | 'values'>,
): HomeUse {
  const isGiven = (given: string): boolean => {
    if (given === 'operands') return operands.length > 0;
    const value = (values as Readonly<Record<string, unknown>>)[toCamelCase(given)];
    return value !== undefined && value !== false;
  };
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

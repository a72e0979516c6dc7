import type { Io } from './io.js';

/**
 * 0 done, 1 the check failed or the run did not complete, 2 wrong usage, 3 the system is broken, 4 nothing is wrong
 * with
 * what could be checked, and not everything could be.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4;

/** An option as it is written: `--name`, or `--name VALUE` where it has a value. */
export interface CommandOption {
  readonly name: string;
  readonly value?: string;
  /** May be given more than once. */
  readonly multiple?: true;
  readonly help: string;
}

/** What stands on the command line behind the name of the command. */
export interface CommandArguments {
  readonly operands: readonly string[];
  /** The value of an option, or undefined where it was not given. */
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  flag(name: string): boolean;
}

/** One command of `turnpike`. Its usage is data, from which help and the check of the arguments are made. */
export interface CliCommand {
  /** As it is typed; may be two words. */
  readonly name: string;
  readonly summary: string;
  /** What follows the options: how it is called in the usage, and how many there may be. */
  readonly operands: { readonly usage: string; readonly min: number; readonly max: number };
  readonly options: readonly CommandOption[];
  /** What else there is to say about it, line by line. */
  readonly notes?: readonly string[];
  /** @throws CodedError, which becomes one line and an exit code; OutputClosed */
  run(args: CommandArguments, io: Io): Promise<ExitCode>;
}

export const NO_OPERANDS = { usage: '', min: 0, max: 0 } as const;

/** The options that every command has. */
export const COMMON_OPTIONS: readonly CommandOption[] = [
  { name: 'home', value: 'DIR', help: 'the home: ledger, artifacts, sandbox (default ./.turnpike)' },
  { name: 'contract', value: 'DIR', help: 'the contract folder (default ./contract, else the shipped policy)' },
  { name: 'json', help: 'JSON lines instead of text' },
  { name: 'help', help: 'show this and do nothing' },
];

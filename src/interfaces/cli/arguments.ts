import { usageError } from '../../core/errors.js';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { errorCode } from '../../system/error-code.js';
import { nearestName } from '../../host/configuration/nearest-name.js';
import type { ConfigurationValue } from '../../host/configuration/configuration-key.js';
import type { ConfiguredOptions } from '../../host/configuration/turnpike-configuration.js';
import { COMMON_OPTIONS, toCamelCase, type CommandArguments, type CliCommand, type CommandOption } from './command.js';

/** The configured values of a command, by the names of its options, and those of every command. */
export interface ConfiguredArguments {
  readonly options: ReadonlyMap<string, ConfigurationValue>;
  /** The operand, if none is on the command line. */
  readonly operand: string | null;
  readonly openOptions: ConfiguredOptions;
}

export const NOTHING_CONFIGURED: ConfiguredArguments = { options: new Map(), operand: null, openOptions: {} };

/** Where a command runs, and what is configured for it. */
export interface ArgumentsContext {
  readonly cwd: string;
  /** Called if the command line is valid, with the value of `--config`. Default: nothing is configured. */
  readonly configure?: (file: string | undefined) => ConfiguredArguments;
}

/**
 * The arguments of a command. An option on the command line wins over its configured value.
 * @throws UsageError that says what is wrong and which help to read
 */
export function parseArguments(
  command: CliCommand,
  argv: readonly string[],
  { cwd, configure = () => NOTHING_CONFIGURED }: ArgumentsContext,
): CommandArguments {
  const { values: given, positionals } = parseRawArguments(command, argv);
  checkOperandCount(command, positionals);
  const { config } = given;
  const { options, operand, openOptions } = configure(typeof config === 'string' ? config : undefined);
  return {
    operands: positionals.length === 0 && operand !== null ? [operand] : positionals,
    values: checkValues(command, (name) => given[name] ?? options.get(name), cwd),
    isGiven: (name) => given[name] !== undefined,
    usageError: (message) => commandUsageError(command, message),
    openOptions,
  };
}

/** What every command has from the configuration, whether it declares the option or not. */
const CONFIGURED_OPTIONS: readonly CommandOption[] = ['store', 'heads', 'registrations'].map((name) => ({
  name,
  value: 'TEXT',
  help: '',
}));

/**
 * The value of every option by its name in camel case.
 * @param find the value of an option on the command line, or in the configuration
 * @throws UsageError for a missing option, and for a text that its option does not take
 */
function checkValues(command: CliCommand, find: (name: string) => unknown, cwd: string): CommandArguments['values'] {
  const hasValue = (name: string): boolean => {
    const found = find(name);
    return found !== undefined && found !== false && !(Array.isArray(found) && found.length === 0);
  };
  for (const { name, required } of command.options) {
    if (required === true && !hasValue(name)) throw commandUsageError(command, `--${name} is missing`);
  }
  for (const { name, needs } of command.options) {
    if (needs !== undefined && hasValue(name) && !hasValue(needs))
      throw commandUsageError(command, `--${name} needs --${needs}`);
  }
  const valueOf = (option: CommandOption): unknown => {
    const { name, value, multiple } = option;
    const found = find(name) ?? option.default;
    if (value === undefined) return found === true;
    if (multiple === true)
      return (Array.isArray(found) ? found : []).map((one) => parseText(command, option, String(one), cwd));
    if (typeof found !== 'string' && typeof found !== 'number') return undefined;
    // A configured number is a text on the command line.
    return parseText(command, option, String(found), cwd);
  };
  const options = [...CONFIGURED_OPTIONS, ...COMMON_OPTIONS, ...command.options];
  const values: unknown = Object.fromEntries(options.map((option) => [toCamelCase(option.name), valueOf(option)]));
  return values as CommandArguments['values'];
}

/** @throws UsageError for a text that the option does not take */
function parseText(command: CliCommand, { name, type }: CommandOption, text: string, cwd: string): unknown {
  if (type === undefined) return text;
  const value = type.parse(text, cwd);
  if (value !== undefined) return value;
  const given = type.quotes === true ? `, not ${quoteArgument(text)}` : '';
  throw commandUsageError(command, `--${name} takes ${type.takes}${given}`);
}

function checkOperandCount(command: CliCommand, operands: readonly string[]): void {
  const { min, max, usage } = command.operands;
  if (operands.length < min) throw commandUsageError(command, `${usage.trim()} is missing`);
  if (operands.length > max)
    throw commandUsageError(command, `${quoteArgument(operands[max] ?? '')} is an unexpected extra argument`);
}

/** A usage error that refers to the help of its command. */
const commandUsageError = ({ name }: CliCommand, message: string): ReturnType<typeof usageError> =>
  usageError(`${message}: see \`turnpike help ${name}\``);

/** An address as `127.0.0.1:7390` or `[::1]:7390`; null for any other text. */
export function parseHostPort(text: string): { readonly host: string; readonly port: number } | null {
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? null : { host, port };
}

export const quoteArgument = (text: string): string =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

function parseRawArguments(command: CliCommand, argv: readonly string[]): ReturnType<typeof parseArgs> {
  const options: NonNullable<ParseArgsConfig['options']> = {};
  for (const { name, value, multiple } of [...COMMON_OPTIONS, ...command.options]) {
    options[name] = value === undefined ? { type: 'boolean' } : { type: 'string', multiple: multiple === true };
  }
  try {
    // `--no-NAME` overrides a configured `true`.
    const allowNegative = command.section !== undefined;
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true, allowNegative });
  } catch (error) {
    if (!errorCode(error).startsWith('ERR_PARSE_ARGS')) throw error;
    // The first sentence of Node's message says what is wrong; the rest is advice for programmers.
    const message = (error as Error).message.split(/\. |\n/u, 1).join('');
    throw commandUsageError(command, `${message}${suggestOption(message, Object.keys(options))}`);
  }
}

/** The option that an unknown one most probably means, as the end of a message. */
function suggestOption(message: string, known: readonly string[]): string {
  const [, unknown] = /^Unknown option '--([^']+)'/u.exec(message) ?? [];
  const nearest = unknown === undefined ? null : nearestName(unknown, known);
  return nearest === null ? '' : `; did you mean --${nearest}?`;
}

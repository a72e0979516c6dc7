import { usageError } from '../../core/errors.js';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { errorCode } from '../../system/error-code.js';
import { nearestName } from '../../host/configuration/nearest-name.js';
import type { ConfigurationValue } from '../../host/configuration/configuration-key.js';
import type { ConfiguredOptions } from '../../host/configuration/turnpike-configuration.js';
import { COMMON_OPTIONS, type CommandArguments, type CliCommand, type CommandOption } from './command.js';

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
  const { values, positionals } = parseRawArguments(command, argv);
  checkOperandCount(command, positionals);
  const { options, operand, openOptions } = configure(textOf(values['config']));
  const valueOf = (name: string): unknown => values[name] ?? options.get(name);
  const found: FoundValues = {
    text: (name) => textOf(valueOf(name)),
    list: (name) => {
      const value = valueOf(name);
      return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
    },
    flag: (name) => valueOf(name) === true,
  };
  return {
    ...found,
    operands: positionals.length === 0 && operand !== null ? [operand] : positionals,
    values: checkValues(command, found, cwd),
    isGiven: (name) => values[name] !== undefined,
    usageError: (message) => commandUsageError(command, message),
    openOptions,
  };
}

/** The values of options as texts, from the command line or the configuration. */
type FoundValues = Pick<CommandArguments, 'text' | 'list' | 'flag'>;

const hasValue = ({ text, list, flag }: FoundValues, name: string): boolean =>
  text(name) !== undefined || list(name).length > 0 || flag(name);

/** A configured number is a text on the command line. */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined;

/**
 * The value of every option by its name in camel case.
 * @throws UsageError for a missing option, and for a text that its option does not take
 */
function checkValues(command: CliCommand, found: FoundValues, cwd: string): CommandArguments['values'] {
  for (const { name, required } of command.options) {
    if (required === true && !hasValue(found, name)) throw commandUsageError(command, `--${name} is missing`);
  }
  for (const { name, needs } of command.options) {
    if (needs !== undefined && hasValue(found, name) && !hasValue(found, needs))
      throw commandUsageError(command, `--${name} needs --${needs}`);
  }
  const valueOf = (option: CommandOption): unknown => {
    const { name, value, multiple } = option;
    if (value === undefined) return found.flag(name);
    if (multiple === true) return found.list(name).map((one) => parseText(command, option, one, cwd));
    const given = found.text(name) ?? option.default;
    return given === undefined ? undefined : parseText(command, option, given, cwd);
  };
  const options = [...COMMON_OPTIONS, ...command.options];
  const values: unknown = Object.fromEntries(options.map((option) => [toCamelCase(option.name), valueOf(option)]));
  return values as CommandArguments['values'];
}

const toCamelCase = (name: string): string => name.replace(/-(.)/gu, (_, letter: string) => letter.toUpperCase());

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
export const commandUsageError = ({ name }: CliCommand, message: string): ReturnType<typeof usageError> =>
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

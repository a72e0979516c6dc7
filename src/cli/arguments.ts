import { usageError } from '../errors.js';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { errorCode } from '../adapters/system/error-code.js';
import { COMMON_OPTIONS, type CommandArguments, type CliCommand } from './command.js';

/**
 * The arguments of a command.
 * @throws UsageError that says what is wrong and which help to read
 */
export function parseArguments(command: CliCommand, argv: readonly string[]): CommandArguments {
  const { values, positionals } = parseRawArguments(command, argv);
  const { min, max } = command.operands;
  if (positionals.length < min) throw commandUsageError(command, `${command.operands.usage.trim()} is missing`);
  if (positionals.length > max)
    throw commandUsageError(command, `${quoteArgument(positionals[max] ?? '')} is an unexpected extra argument`);
  return {
    operands: positionals,
    text: (name) => {
      const value = values[name];
      return typeof value === 'string' ? value : undefined;
    },
    list: (name) => {
      const value = values[name];
      return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
    },
    flag: (name) => values[name] === true,
  };
}

/** A usage error that refers to the help of its command. */
export const commandUsageError = ({ name }: CliCommand, message: string): ReturnType<typeof usageError> =>
  usageError(`${message}: see \`turnpike help ${name}\``);

/**
 * The port in an option, or `fallback` if it was not given.
 * @throws UsageError for an invalid port
 */
export function parsePort(command: CliCommand, args: CommandArguments, option: string, fallback: string): number {
  const text = args.text(option) ?? fallback;
  if (/^\d{1,5}$/u.test(text) && Number(text) <= 65_535) return Number(text);
  throw commandUsageError(command, `--${option} takes a number up to 65535`);
}

export const quoteArgument = (text: string): string =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

function parseRawArguments(command: CliCommand, argv: readonly string[]): ReturnType<typeof parseArgs> {
  const options: NonNullable<ParseArgsConfig['options']> = {};
  for (const { name, value, multiple } of [...COMMON_OPTIONS, ...command.options]) {
    options[name] = value === undefined ? { type: 'boolean' } : { type: 'string', multiple: multiple === true };
  }
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    if (!errorCode(error).startsWith('ERR_PARSE_ARGS')) throw error;
    // The first sentence of Node's message says what is wrong; the rest is advice for programmers.
    throw commandUsageError(command, (error as Error).message.split(/\. |\n/u, 1).join(''));
  }
}

import { createLogger, format, transports } from 'winston';
import { parseOwnJson } from '../core/contract/json.js';
import type { Log } from '../engine/ports/log.js';

// winston's JSON does not escape controls from U+0080, bidirectional overrides and line separators, which terminals
// interpret.
const UNSAFE = /[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu;
const FIELD_CHARS_MAX = 2_000;
/** Maximum depth of logged causes: an error can be its own cause. */
const CAUSES_MAX = 8;
const UNREADABLE = '[a value that JSON cannot hold]';

const escapeUnsafe = (text: string): string =>
  text.replace(UNSAFE, (char) =>
    Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );

/**
 * The service log: one JSON object per line on stderr, errors with their stack, no control characters.
 * @param level `silent` writes nothing
 */
export function winstonLog(
  level: 'error' | 'warn' | 'info' | 'silent' = 'info',
  stream: NodeJS.WritableStream = process.stderr,
): Log {
  const line = format.printf((info) => escapeUnsafe(JSON.stringify(info)));
  const logger = createLogger({
    level: level === 'silent' ? 'error' : level,
    silent: level === 'silent',
    format: format.combine(format.timestamp(), line),
  });
  // winston's own types describe its transports twice, and the two types differ.
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
  logger.add(new transports.Stream({ stream }));
  return {
    info: (message, fields) => void logger.info(message, toPlainFields(fields)),
    warn: (message, fields) => void logger.warn(message, toPlainFields(fields)),
    error: (message, fields) => void logger.error(message, toPlainFields(fields)),
  };
}

/** winston drops the message of an Error in a field, and throws on a value that JSON cannot encode. */
function toPlainFields(fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, toEncodable(value)]));
}

/** A JSON-encodable copy of a value that may come from a caller's code: nothing in it may make a log call throw. */
function toEncodable(value: unknown): unknown {
  try {
    const text = JSON.stringify(
      value instanceof Error ? errorFields(value) : truncateText(value),
      jsonMember,
    ) as unknown;
    return typeof text === 'string' ? parseOwnJson(text) : undefined;
  } catch {
    return UNREADABLE;
  }
}

const jsonMember = (_key: string, member: unknown): unknown => (typeof member === 'bigint' ? String(member) : member);

const errorFields = (error: Error, causesMax = CAUSES_MAX): Record<string, unknown> => ({
  name: toEncodable(error.name),
  code: toEncodable((error as { code?: unknown }).code),
  message: toEncodable(error.message),
  stack: toEncodable(error.stack),
  ...(error.cause instanceof Error && causesMax > 0 ? { cause: errorFields(error.cause, causesMax - 1) } : {}),
});

const truncateText = (value: unknown): unknown =>
  typeof value === 'string' && value.length > FIELD_CHARS_MAX ? `${value.slice(0, FIELD_CHARS_MAX)}…` : value;

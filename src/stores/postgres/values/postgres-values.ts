// Reads values from rows. Stored rows are not trusted: a malformed value is LEDGER_TAMPERED.

import { tamperedError } from '../../ledger/store-errors.js';
import type { Row } from '../postgres-connection.js';

/** @param what names the row in the message */
export function textOf(row: Row, column: string, what: string): string {
  const value = row[column];
  if (typeof value === 'string') return value;
  throw tamperedError(`${what} has no ${column}`);
}

export function integerOf(row: Row, column: string, what: string): number {
  const number = Number(row[column] ?? NaN);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw tamperedError(`${what} has an invalid ${column}: ${String(row[column])}`);
}

const BYTES = /^\\x((?:[0-9a-f]{2})*)$/;

/** Bytes as lower-case hex. */
export function hexOf(row: Row, column: string, what: string): string {
  const [, hex] = BYTES.exec(row[column] ?? '') ?? [];
  if (hex !== undefined) return hex;
  throw tamperedError(`${what} has no ${column}`);
}

/** @returns null for a null */
export function bytesOf(row: Row, column: string): Buffer | null {
  const value = row[column];
  return typeof value === 'string' ? Buffer.from(value.slice(2), 'hex') : null;
}

/** An array of integers, as the server writes it; empty for a null. */
export function integersOf(row: Row, column: string, what: string): readonly number[] {
  const value = row[column] ?? '{}';
  const numbers = value === '{}' ? [] : value.slice(1, -1).split(',').map(Number);
  if (numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) return numbers;
  throw tamperedError(`${what} has invalid ${column}: ${value}`);
}

/** An id as a parameter: PostgreSQL refuses U+0000, which no stored id contains. */
export const idParameter = (id: string): string => id.replaceAll('\0', '\ufffd');

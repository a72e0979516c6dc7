// Converts values to columns and back. A value that would not come back unchanged is refused in both directions.

import { type Json, readJson, canonicalJson } from '../../core/contract/json.js';
import { RecordRefusedError } from './sql-errors.js';
import type { SqlDialect, SqlValue } from './sql-kysely.js';
import type { Column } from './sql-table.js';

const INTEGER = /^-?\d{1,40}$/;

/** Converts a member of a record for its column; a missing member becomes NULL. @throws RecordRefusedError */
export function toColumn(column: Column, value: Json | undefined, dialect: SqlDialect): SqlValue {
  const { name, kind, nullable, required } = column;
  if (value === undefined && required) throw new RecordRefusedError(`${name} is missing`, 'INVALID_RECORD');
  if (value === undefined) return null;
  if (kind === 'json') return jsonText(name, value);
  if (value !== null) return toScalar(column, value, dialect);
  if (nullable) return null;
  throw new RecordRefusedError(`${name} is null`, 'INVALID_RECORD');
}

function toScalar({ name, kind }: Column, value: Json, dialect: SqlDialect): SqlValue {
  const inSqlite = dialect === 'sqlite';
  if (kind === 'string' && typeof value === 'string' && value.isWellFormed()) return value;
  if (kind === 'boolean' && typeof value === 'boolean') return inSqlite ? BigInt(value) : value;
  // better-sqlite3 would bind a number as a float.
  if (kind === 'integer' && Number.isSafeInteger(value)) return inSqlite ? BigInt(value as number) : (value as number);
  if (kind === 'number' && typeof value === 'number' && Number.isFinite(value)) return value;
  throw new RecordRefusedError(`${name} is no ${kind} that can be kept`, 'INVALID_RECORD');
}

/** Converts the value of a column to a member, or undefined if the record has none. @throws RecordRefusedError */
export function fromColumn({ name, kind, nullable, required }: Column, value: unknown): Json | undefined {
  if (value === null || value === undefined) {
    if (nullable && (required || kind !== 'json')) return null;
    if (!required) return undefined;
    throw new RecordRefusedError(`a stored ${name} is null`);
  }
  const member = memberReaders[kind](value);
  if (member !== undefined) return member;
  throw new RecordRefusedError(`a stored ${name} is no ${kind} that JSON can say`);
}

/** SQLite returns integers as bigint, PostgreSQL returns everything as text. Undefined: the value has another kind. */
const memberReaders: Readonly<Record<Column['kind'], (value: unknown) => Json | undefined>> = {
  string: (value) => (typeof value === 'string' ? value : undefined),
  boolean: (value) => {
    if (value === 1n || value === 't') return true;
    return value === 0n || value === 'f' ? false : undefined;
  },
  integer: (value) => {
    const number = numberOf(value);
    return Number.isSafeInteger(number) ? number : undefined;
  },
  number: numberOf,
  json: (value) => {
    if (typeof value !== 'string') return undefined;
    const read = readJson(value);
    return read !== undefined && hasExactNumbers(read) ? read : undefined;
  },
};

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'bigint' && typeof value !== 'string') return undefined;
  const number = value === '' ? NaN : Number(value);
  // A float keeps its value beyond 2^53, an integer may not.
  if (typeof value === 'bigint' || INTEGER.test(value)) return Number.isSafeInteger(number) ? number : undefined;
  return Number.isFinite(number) ? number : undefined;
}

function jsonText(name: string, value: Json): string {
  try {
    if (hasExactNumbers(value)) return canonicalJson(value);
  } catch {
    // Too deep, or not encodable as UTF-8.
  }
  throw new RecordRefusedError(`${name} is no JSON that can be kept`, 'INVALID_RECORD');
}

/** Parsed JSON does not show whether a large number was an integer beyond 2^53 or a float, so it is refused. */
function hasExactNumbers(value: Json): boolean {
  const pending: Json[] = [value];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === 'number' && Number.isInteger(next) && !Number.isSafeInteger(next)) return false;
    if (typeof next === 'object' && next !== null) for (const member of Object.values(next)) pending.push(member);
  }
  return true;
}

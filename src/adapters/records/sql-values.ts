// Values on their way into columns and out of them. What would come back as something else is refused, either way.

import { canonicalJson } from '../../contract/canonical-json.js';
import type { Json } from '../../contract/json.js';
import { RecordRefusedError } from './sql-errors.js';
import type { SqlDialect, SqlValue } from './sql-kysely.js';
import type { Column } from './sql-table.js';

const INTEGER = /^-?\d{1,40}$/;

/** A member of a record as its column holds it; what the record does not have is NULL. @throws Refused */
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
  // A number bound as it is would be a float to SQLite.
  if (kind === 'integer' && Number.isSafeInteger(value)) return inSqlite ? BigInt(value as number) : (value as number);
  if (kind === 'number' && typeof value === 'number' && Number.isFinite(value)) return value;
  throw new RecordRefusedError(`${name} is no ${kind} that can be kept`, 'INVALID_RECORD');
}

/** A column's value as the member that it was, or undefined where the record has none. @throws Refused */
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

/** SQLite gives integers as bigint, PostgreSQL everything as text. Undefined: the value is not of the kind. */
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
    try {
      const parsed = JSON.parse(value) as Json;
      return hasExactNumbers(parsed) ? parsed : undefined;
    } catch {
      return undefined;
    }
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
    // Too deep, or no text that UTF-8 can say.
  }
  throw new RecordRefusedError(`${name} is no JSON that can be kept`, 'INVALID_RECORD');
}

/** In JSON that came back nobody can tell an integer that was too large for us from a float. */
function hasExactNumbers(value: Json): boolean {
  const pending: Json[] = [value];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === 'number' && Number.isInteger(next) && !Number.isSafeInteger(next)) return false;
    if (typeof next === 'object' && next !== null) for (const member of Object.values(next)) pending.push(member);
  }
  return true;
}

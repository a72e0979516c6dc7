// Reads and writes rows of targets, as steps for any of the databases.

import { type Json, type JsonObject, canonicalJson, readJson } from '../../core/contract/json.js';
import type { EffectResult } from '../../core/contract/run/effect.js';
import type { RecordRead, RecordWrite } from '../../engine/ports/effects/records.js';
import type { SqlDialect, SqlResult, SqlSteps, SqlValue } from './sql-kysely.js';
import { doneRecordResult, failedRecordResult, RecordRefusedError } from './sql-errors.js';
import { PAGE_BYTES_COLUMN, PAGE_ROWS_COLUMN, type ColumnValue, type SqlStatements } from './sql-statements.js';
import { CASE_ID, tableOf, type Column, type Table, type TablePlace } from './sql-table.js';

/** Limit of the result of one read, both as rows and as JSON. */
const RESULT_BYTES_MAX = 16 * 1_024 * 1_024;
const LIMIT_MAX = 10_000;

/** The result of a successful write. */
export const WRITTEN_RESULT: JsonObject = { written: 1 };

/** The statements and the table names of one database. */
export interface RecordStorage {
  readonly place: TablePlace;
  readonly statements: SqlStatements;
}

/**
 * Writes a row. An upsert updates the row of its own case, or inserts one and lets the database reject a conflict. It
 * never uses `ON CONFLICT DO UPDATE`, which would update the row of another case if only the key is unique (S4-84).
 * @throws RecordRefusedError, or the error of the database
 */
export function* putRecord({ place, statements }: RecordStorage, write: RecordWrite): SqlSteps<void> {
  const table = tableOf(write.target, place);
  if (!write.target.modes.includes(write.mode)) throw new RecordRefusedError(`the target has no mode ${write.mode}`);
  const scope = scopeOf(table, write.case_id);
  const cells = cellsOf(table, write.record, statements);
  if (write.mode === 'upsert') {
    const isKey = ([column]: ColumnValue): boolean => table.key.includes(column);
    const rest = cells.filter((cell) => !isKey(cell));
    // A table may consist of its key only.
    const changed: SqlResult = yield statements.update(table, rest.length > 0 ? rest : cells, [
      ...scope,
      ...cells.filter(isKey),
    ]);
    if (changed.changes === 1) return;
    if (changed.changes > 1) throw new RecordRefusedError('more than one row has this key');
  }
  const inserted: SqlResult = yield statements.insert(table, [...scope, ...cells]);
  if (inserted.changes !== 1) throw new RecordRefusedError(`${inserted.changes} rows were inserted for one record`);
}

/** Reads a page of rows. @throws RecordRefusedError, or the error of the database */
export function* readRecords({ place, statements }: RecordStorage, read: RecordRead): SqlSteps<EffectResult> {
  const table = tableOf(read.target, place);
  if (!Number.isInteger(read.limit) || read.limit < 1 || read.limit > LIMIT_MAX) {
    throw new RecordRefusedError(`a limit of ${read.limit}`);
  }
  const where = Object.entries(read.where).map(([name, value]) => cellOf(columnOf(table, name), value, statements));
  const { rows }: SqlResult = yield statements.page(table, {
    equal: [...scopeOf(table, read.case_id), ...where],
    after: read.after === null ? null : keyValues(table, read.after, statements),
    // One more, to see whether more rows follow.
    limit: read.limit + 1,
    bytes_max: RESULT_BYTES_MAX,
  });
  const [first] = rows;
  if (first === undefined) throw new RecordRefusedError('the database gave no answer');
  if (Number(first[PAGE_BYTES_COLUMN]) > RESULT_BYTES_MAX) return TOO_LARGE_RESULT;
  const count = Number(first[PAGE_ROWS_COLUMN]);
  const records = (count === 0 ? [] : rows).map((row) => recordOf(table, row));
  if (records.length !== count) throw new RecordRefusedError('the database gave other rows than it counted');
  return resultOf(table, records, read.limit);
}

const TOO_LARGE_RESULT = failedRecordResult('TOO_LARGE', `more than ${RESULT_BYTES_MAX} bytes: ask for fewer records`);

function resultOf({ key }: Table, records: readonly JsonObject[], limit: number): EffectResult {
  const page = records.slice(0, limit);
  const last = records.length > limit ? page.at(-1) : undefined;
  const next = last === undefined ? null : Object.fromEntries(key.map(({ name }) => [name, last[name] ?? null]));
  const result = { records: page, next };
  let bytes: number;
  try {
    bytes = Buffer.byteLength(canonicalJson(result));
  } catch (error) {
    throw new RecordRefusedError(`what is stored has no canonical JSON: ${String(error)}`);
  }
  return bytes > RESULT_BYTES_MAX ? TOO_LARGE_RESULT : doneRecordResult(result);
}

function recordOf({ columns }: Table, row: SqlResult['rows'][number]): JsonObject {
  return Object.fromEntries(
    columns.flatMap((column): (readonly [string, Json])[] => {
      const member = fromColumn(column, row[column.name]);
      return member === undefined ? [] : [[column.name, member]];
    }),
  );
}

/** All columns, also those that the record lacks: an upsert replaces the whole record. */
function cellsOf(table: Table, record: JsonObject, { dialect }: SqlStatements): readonly ColumnValue[] {
  for (const name of Object.keys(record)) columnOf(table, name);
  return table.columns.map((column) => {
    const value = Object.hasOwn(record, column.name) ? record[column.name] : undefined;
    return [column, toColumn(column, value, dialect)];
  });
}

/** The condition that restricts a query to one case. */
function scopeOf({ scoped }: Table, case_id: string | null): readonly ColumnValue[] {
  if (scoped !== (case_id !== null))
    throw new RecordRefusedError('a case for a shared target, or none for a case-scoped one');
  return case_id === null ? [] : [[CASE_ID, toColumn(CASE_ID, case_id, 'postgres')]];
}

function keyValues(table: Table, after: RecordRead['after'] & object, statements: SqlStatements): readonly SqlValue[] {
  if (Object.keys(after).length !== table.key.length) throw new RecordRefusedError('this is no key');
  return table.key.map((column) => {
    const value = Object.hasOwn(after, column.name) ? after[column.name] : undefined;
    return toColumn(column, value, statements.dialect);
  });
}

function cellOf(column: Column, value: Json, { dialect }: SqlStatements): ColumnValue {
  if (column.kind === 'json') throw new RecordRefusedError(`${column.name} is JSON and cannot be asked for`);
  // A value that the column cannot store is refused, but null can be queried in every optional column.
  return [column, toColumn(column.required ? column : { ...column, nullable: true }, value, dialect)];
}

function columnOf({ columns }: Table, name: string): Column {
  const column = columns.find((one) => one.name === name);
  if (column === undefined)
    throw new RecordRefusedError(`there is no column ${JSON.stringify(name)}`, 'INVALID_RECORD');
  return column;
}

// Values become columns and come back. A value that would not come back unchanged is refused in both directions.

const INTEGER = /^-?\d{1,40}$/;

/** Converts a member of a record for its column; a missing member becomes NULL. @throws RecordRefusedError */
function toColumn(column: Column, value: Json | undefined, dialect: SqlDialect): SqlValue {
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
function fromColumn({ name, kind, nullable, required }: Column, value: unknown): Json | undefined {
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

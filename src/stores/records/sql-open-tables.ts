// Reads the catalog of a database: which tables exist, and whether they can store the records of their targets.

import type { CompiledQuery } from 'kysely';
import { RecordsError } from '../../core/errors.js';
import { builderFor, kysely, type SqlResult, type SqlDialect, type SqlSteps } from './sql-kysely.js';
import type { SqlStatements } from './sql-statements.js';
import { CASE_ID, type Column, type ColumnKind, type Table } from './sql-table.js';

/** An existing table. */
interface FoundTable {
  /** By name: the kinds of values that each column stores without changing them. */
  readonly columns: ReadonlyMap<string, ColumnTraits>;
  /** Groups of columns with a unique constraint. */
  readonly unique: readonly (readonly string[])[];
}

export interface ColumnTraits {
  /** The type name in the database. */
  readonly type: string;
  readonly kinds: readonly ColumnKind[];
  /** Whether two values are equal only if their texts are. */
  readonly exact: boolean;
}

/** Looks up a table. @returns null if the name does not exist; a view has no unique columns */
function* lookUpTable(dialect: SqlDialect, name: string): SqlSteps<FoundTable | null> {
  const queries = dialect === 'sqlite' ? sqliteQueries(name) : postgresQueries(name);
  const existing: SqlResult = yield queries.exists;
  if (existing.rows.length === 0) return null;
  const columns: SqlResult = yield queries.columns;
  const unique: SqlResult = yield queries.unique;
  const key: SqlResult = yield queries.key;
  return {
    columns: new Map(columns.rows.map((row) => [toLowerCase(row['name']), traitsOf(dialect, row)])),
    unique: [...groupColumns(unique.rows).values(), key.rows.map(({ name }) => toLowerCase(name))].filter(
      ({ length }) => length > 0,
    ),
  };
}

interface CatalogQueries {
  readonly exists: CompiledQuery;
  readonly columns: CompiledQuery;
  readonly unique: CompiledQuery;
  /** The primary key, if it has no index of its own. */
  readonly key: CompiledQuery;
}

function sqliteQueries(name: string): CatalogQueries {
  const { sql } = kysely();
  const to = builderFor('sqlite');
  return {
    exists:
      sql`select 1 as there from pragma_table_list where schema = 'main' and name = ${name} collate nocase`.compile(to),
    columns: sql`select name, type from pragma_table_xinfo(${name})`.compile(to),
    unique: sql`select l.name as "index", x.name as name from pragma_index_list(${name}) as l
      join pragma_index_xinfo(l.name) as x where l."unique" = 1 and l.partial = 0 and x.key = 1`.compile(to),
    key: sql`select name from pragma_table_xinfo(${name}) where pk > 0`.compile(to),
  };
}

function postgresQueries(name: string): CatalogQueries {
  const { sql } = kysely();
  const to = builderFor('postgres');
  // As in the text of a statement; the name was checked to need no quotes.
  const table = sql`to_regclass(${name
    .split('.')
    .map((part) => `"${part}"`)
    .join('.')})`;
  return {
    exists: sql`select 1 as there where ${table} is not null`.compile(to),
    columns: sql`select a.attname as name, a.attgenerated <> '' as generated, c.collisdeterministic as exact,
        case when t.typtype = 'e' then 'enum' when t.typnamespace = 'pg_catalog'::regnamespace then t.typname
          else 'another' end as type
      from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
        left join pg_catalog.pg_collation c on c.oid = a.attcollation
      where a.attrelid = ${table} and a.attnum > 0 and not a.attisdropped`.compile(to),
    unique: sql`select i.indexrelid::text as "index", a.attname as name
      from pg_catalog.pg_index i cross join lateral unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
        left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
      where i.indrelid = ${table} and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
        and k.place <= i.indnkeyatts`.compile(to),
    key: sql`select null as name where false`.compile(to),
  };
}

/** The columns of each index. An expression in an index has no name, and such an index is ignored. */
function groupColumns(rows: SqlResult['rows']): ReadonlyMap<unknown, readonly string[]> {
  const found = new Map<unknown, string[]>();
  for (const { index, name } of rows) {
    const names = found.get(index) ?? [];
    names.push(toLowerCase(name));
    found.set(index, names);
  }
  for (const [index, names] of found) if (names.includes('')) found.delete(index);
  return found;
}

/** SQLite names are case-insensitive. The names that are looked up are lower-case. */
const toLowerCase = (name: unknown): string => (typeof name === 'string' ? name.toLowerCase() : '');

const POSTGRES_KINDS: Readonly<Record<string, readonly ColumnKind[]>> = {
  text: ['string', 'json'],
  varchar: ['string'],
  uuid: ['string'],
  date: ['string'],
  enum: ['string'],
  int2: ['integer', 'number'],
  int4: ['integer', 'number'],
  int8: ['integer', 'number'],
  float8: ['number'],
  numeric: ['integer', 'number'],
  bool: ['boolean'],
  json: ['json'],
  jsonb: ['json'],
};

function traitsOf(dialect: SqlDialect, { type, exact, generated }: SqlResult['rows'][number]): ColumnTraits {
  const name = typeof type === 'string' ? type : '';
  if (dialect === 'sqlite') return { type: name, kinds: affinityOf(name), exact: true };
  const kinds = generated === 't' ? [] : Object.hasOwn(POSTGRES_KINDS, name) ? POSTGRES_KINDS[name] : [];
  // A type without a collation (a uuid) is compared by value.
  return { type: name, kinds: kinds ?? [], exact: exact !== 'f' };
}

/** SQLite's rules for type names, in order: which kinds a column stores without converting them. */
function affinityOf(type: string): readonly ColumnKind[] {
  if (/int/i.test(type)) return ['integer', 'boolean', 'number'];
  if (/char|clob|text/i.test(type)) return ['string', 'json'];
  if (type === '' || /blob/i.test(type)) return ['string', 'integer', 'number', 'boolean', 'json'];
  if (/real|floa|doub/i.test(type)) return ['number'];
  return ['integer', 'number', 'boolean'];
}

/** The missing tables. @throws RecordsError RECORDS_MISMATCH if an existing one cannot store its records */
export function* missingTables(statements: SqlStatements, tables: readonly Table[]): SqlSteps<readonly Table[]> {
  const missing: Table[] = [];
  for (const table of tables) {
    const found = yield* lookUpTable(statements.dialect, table.name);
    if (found === null) missing.push(table);
    else refuseTable(statements, table, problemOf(table, found));
  }
  return missing;
}

/** Creates missing tables if `create` is set. @throws RecordsError RECORDS_MISMATCH before anything is created */
export function* openTables(statements: SqlStatements, tables: readonly Table[], create: boolean): SqlSteps<void> {
  const missing = yield* missingTables(statements, tables);
  for (const table of missing) {
    if (create) yield statements.createTable(table);
    else refuseTable(statements, table, 'it is not there');
  }
}

function refuseTable(statements: SqlStatements, table: Table, problem: string | null): void {
  if (problem === null) return;
  const message = `the table ${table.name}: ${problem}; this would do: ${statements.createTable(table).sql}`;
  throw new RecordsError({ code: 'RECORDS_MISMATCH', message });
}

function problemOf(table: Table, { columns, unique }: FoundTable): string | null {
  const needed = table.scoped ? [CASE_ID, ...table.columns] : table.columns;
  const identity = table.scoped ? [CASE_ID, ...table.key] : table.key;
  for (const column of needed) {
    const problem = findColumnProblem(column, columns.get(column.name), identity.includes(column));
    if (problem !== null) return problem;
  }
  const names = identity.map(({ name }) => name);
  // If a subset of the columns is unique, all of them together are.
  if (unique.some((group) => group.every((name) => names.includes(name)))) return null;
  return `it has no unique constraint over (${names.join(', ')})`;
}

/** Columns that identify rows must compare byte by byte. */
function findColumnProblem({ name, kind }: Column, found: FoundColumn, identifies: boolean): string | null {
  if (found === undefined) return `it has no column ${name}`;
  if (!found.kinds.includes(kind)) return `its column ${name} of type ${found.type} does not hold a ${kind} as it is`;
  if (name === CASE_ID.name && !PLAIN_TEXT.test(found.type)) return 'its column case_id is no text';
  return identifies && !found.exact ? `its column ${name} takes different texts for the same` : null;
}

type FoundColumn = ReturnType<FoundTable['columns']['get']>;

const PLAIN_TEXT = /text|char|clob|blob|^$/i;

// All SQL statements for records. Names and values go through the builder: no byte of an agent becomes part of the SQL.

import type { CompiledQuery, RawBuilder, SqlBool } from 'kysely';
import { builderFor, kysely, type SqlBuilder, type SqlDialect, type SqlRow, type SqlValue } from './sql-kysely.js';
import { CASE_ID, type Column, type ColumnKind, type Table } from './sql-table.js';

/** The table of effects that were executed in a database, and of those that must not be executed any more. */
export const EFFECTS_TABLE: Table = {
  name: 'turnpike_effects',
  columns: ['idempotency_key', 'request_hash', 'state', 'result'].map((name) => ({ ...CASE_ID, name })),
  key: [{ ...CASE_ID, name: 'idempotency_key' }],
  scoped: false,
};

/** Additional columns in the result of `page`. */
export const PAGE_BYTES_COLUMN = 'turnpike_bytes';
export const PAGE_ROWS_COLUMN = 'turnpike_rows';

/** Types of created columns. Text is compared by its bytes on every database. */
const TYPES: Readonly<Record<SqlDialect, Readonly<Record<ColumnKind, string>>>> = {
  sqlite: { string: 'text', integer: 'integer', number: 'real', boolean: 'integer', json: 'text' },
  postgres: {
    string: 'text collate "C"',
    integer: 'bigint',
    number: 'double precision',
    boolean: 'boolean',
    json: 'jsonb',
  },
};

/** Selects rows of a table. */
export interface PageQuery {
  readonly equal: readonly ColumnValue[];
  /** Key values after which the page begins. */
  readonly after: readonly SqlValue[] | null;
  readonly limit: number;
  /** If the rows have more bytes than this in total, no row is returned. */
  readonly bytes_max: number;
}

export type ColumnValue = readonly [column: Column, value: SqlValue];

/** The statements in the dialect of one database. */
export class SqlStatements {
  readonly dialect: SqlDialect;
  readonly #builder: SqlBuilder;

  constructor(dialect: SqlDialect) {
    this.dialect = dialect;
    this.#builder = builderFor(dialect);
  }

  insert(table: Table, cells: readonly ColumnValue[]): CompiledQuery {
    return this.#builder.insertInto(table.name).values(rowOf(cells)).compile();
  }

  update(table: Table, cells: readonly ColumnValue[], equal: readonly ColumnValue[]): CompiledQuery {
    return this.#builder.updateTable(table.name).set(rowOf(cells)).where(this.#allEqual(equal)).compile();
  }

  /** Inserts an effect; nothing if its key exists. Waits while another transaction inserts the same key. */
  noteEffect(effect: SqlRow): CompiledQuery {
    const insert = this.#builder.insertInto(EFFECTS_TABLE.name).values(effect);
    return insert.onConflict((conflict) => conflict.column('idempotency_key').doNothing()).compile();
  }

  effect(idempotency_key: string): CompiledQuery {
    const columns = EFFECTS_TABLE.columns.map(({ name }) => name);
    const effects = this.#builder.selectFrom(EFFECTS_TABLE.name).select(columns);
    return effects.where('idempotency_key', '=', idempotency_key).compile();
  }

  /** Rows in key order. Without rows, or if they are too large: a single row that only contains count and size. */
  page(table: Table, { equal, after, limit, bytes_max }: PageQuery): CompiledQuery {
    const { sql } = kysely();
    const names = table.columns.map(({ name }) => name);
    const order = sql.join(table.key.map((column) => this.#comparedColumn(column)));
    const sizes = names.map((name) => sql`coalesce(octet_length(cast(${sql.ref(name)} as text)), 0)`);
    const size = sql<number>`coalesce(sum(${sql.join(sizes, sql` + `)}), 0)`;
    const last = after === null ? [] : [sql<SqlBool>`(${order}) > (${sql.join(after)})`];
    return this.#builder
      .with('turnpike_page', (with_) => {
        let rows = with_.selectFrom(table.name).select(names);
        for (const condition of [...equal.map((cell) => this.#isEqual(cell)), ...last]) rows = rows.where(condition);
        for (const column of table.key) rows = rows.orderBy(this.#comparedColumn(column));
        return rows.limit(limit);
      })
      .with('turnpike_size', (with_) =>
        with_
          .selectFrom('turnpike_page')
          .select([size.as(PAGE_BYTES_COLUMN), sql<number>`count(*)`.as(PAGE_ROWS_COLUMN)]),
      )
      .selectFrom('turnpike_size')
      .leftJoin('turnpike_page', (join) => join.on(sql<SqlBool>`${sql.ref(PAGE_BYTES_COLUMN)} <= ${bytes_max}`))
      .selectAll()
      .orderBy(order)
      .compile();
  }

  /** Creates the table of a target, with its key as primary key. */
  createTable({ name, columns, key, scoped }: Table): CompiledQuery {
    const { sql } = kysely();
    const all = scoped ? [CASE_ID, ...columns] : columns;
    const unique = scoped ? [CASE_ID, ...key] : key;
    const parts = all.map((column) => {
      const type = sql.raw(TYPES[this.dialect][column.kind]);
      const filled = column.required && (column.kind === 'json' || !column.nullable);
      return filled ? sql`${sql.ref(column.name)} ${type} not null` : sql`${sql.ref(column.name)} ${type}`;
    });
    const refs = sql.join(unique.map((column) => sql.ref(column.name)));
    const options = sql.raw(this.dialect === 'sqlite' ? ' strict' : '');
    const text = sql`create table ${sql.table(name)} (${sql.join([...parts, sql`primary key (${refs})`])})${options}`;
    return text.compile(this.#builder);
  }

  #allEqual(cells: readonly ColumnValue[]): RawBuilder<SqlBool> {
    const { sql } = kysely();
    return sql<SqlBool>`${sql.join(
      cells.map((cell) => this.#isEqual(cell)),
      sql` and `,
    )}`;
  }

  #isEqual([column, value]: ColumnValue): RawBuilder<SqlBool> {
    const { sql } = kysely();
    if (value === null) return sql<SqlBool>`${sql.ref(column.name)} is null`;
    return sql<SqlBool>`${this.#comparedColumn(column)} = ${value}`;
  }

  /**
   * A column for comparison by bytes. A SQLite table may have a case-insensitive collation, and a case must not see
   * rows of another; for PostgreSQL the collation is checked before (sql-open-tables.ts).
   */
  #comparedColumn({ name, kind }: Column): RawBuilder<unknown> {
    const { sql } = kysely();
    return this.dialect === 'sqlite' && kind === 'string' ? sql`${sql.ref(name)} collate binary` : sql.ref(name);
  }
}

const rowOf = (cells: readonly ColumnValue[]): SqlRow =>
  Object.fromEntries(cells.map(([{ name }, value]) => [name, value]));

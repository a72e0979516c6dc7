import type { CompiledQuery } from 'kysely';
import type { SqliteConnection, SqliteStatement } from '../sqlite/sqlite-database.js';
import type { SqlResult } from './sql-kysely.js';
import { createLruMap } from '../system/lru-map.js';

/** So many statements stay prepared. Agents choose the columns of a read, and so its text. */
const STATEMENTS_MAX = 256;

/** Asks a SQLite connection. Integers come as bigint, so that none is rounded. */
export function createSqliteExecutor(db: SqliteConnection): (query: CompiledQuery) => SqlResult {
  const prepared = createLruMap<SqliteStatement>(STATEMENTS_MAX);
  return ({ sql, parameters }) => {
    const statement = prepared.get(sql) ?? db.prepare(sql).safeIntegers();
    prepared.set(sql, statement);
    if (statement.reader) return { rows: statement.all(...parameters) as SqlResult['rows'], changes: 0 };
    return { rows: [], changes: statement.run(...parameters).changes };
  };
}

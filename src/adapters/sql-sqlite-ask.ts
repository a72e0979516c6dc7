import type { CompiledQuery } from 'kysely';
import type { Connection, Statement } from './sqlite-database.js';
import type { SqlAnswer } from './sql-kysely.js';
import { recent } from './sqlite-recent.js';

/** So many statements stay prepared. Agents choose the columns of a read, and so its text. */
const STATEMENTS_MAX = 256;

/** Asks a SQLite connection. Integers come as bigint, so that none is rounded. */
export function sqliteAsk(db: Connection): (query: CompiledQuery) => SqlAnswer {
  const prepared = recent<Statement>(STATEMENTS_MAX);
  return ({ sql, parameters }) => {
    const statement = prepared.get(sql) ?? db.prepare(sql).safeIntegers();
    prepared.set(sql, statement);
    if (statement.reader) return { rows: statement.all(...parameters) as SqlAnswer['rows'], changes: 0 };
    return { rows: [], changes: statement.run(...parameters).changes };
  };
}

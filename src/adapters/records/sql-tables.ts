// Whether the tables of a database can hold what their targets ask for; and making those that are not there.

import { RecordsError } from '../../errors.js';
import { lookUpTable, type FoundTable } from './sql-catalog.js';
import type { SqlSteps } from './sql-kysely.js';
import type { SqlStatements } from './sql-statements.js';
import { CASE_ID, type Column, type Table } from './sql-table.js';

/** The tables that are not there. @throws RecordsError RECORDS_MISMATCH for one that cannot hold its records */
export function* missingTables(statements: SqlStatements, tables: readonly Table[]): SqlSteps<readonly Table[]> {
  const missing: Table[] = [];
  for (const table of tables) {
    const found = yield* lookUpTable(statements.dialect, table.name);
    if (found === null) missing.push(table);
    else refuseTable(statements, table, problemOf(table, found));
  }
  return missing;
}

/** Makes what is not there, where that is allowed. @throws RecordsError RECORDS_MISMATCH before anything is made */
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
  // Where fewer columns are unique already, all of them are.
  if (unique.some((group) => group.every((name) => names.includes(name)))) return null;
  return `it has no unique constraint over (${names.join(', ')})`;
}

/** What tells rows from each other must do so byte by byte. */
function findColumnProblem({ name, kind }: Column, found: FoundColumn, identifies: boolean): string | null {
  if (found === undefined) return `it has no column ${name}`;
  if (!found.kinds.includes(kind)) return `its column ${name} of type ${found.type} does not hold a ${kind} as it is`;
  if (name === CASE_ID.name && !PLAIN_TEXT.test(found.type)) return 'its column case_id is no text';
  return identifies && !found.exact ? `its column ${name} takes different texts for the same` : null;
}

type FoundColumn = ReturnType<FoundTable['columns']['get']>;

const PLAIN_TEXT = /text|char|clob|blob|^$/i;

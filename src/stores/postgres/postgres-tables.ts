// Creates the tables of a ledger, and migrates those of an older version.

import { newestFormat, pendingMigrations, requireNewestFormat } from '../ledger/migrations.js';
import { tamperedError, unavailableError } from '../ledger/store-errors.js';
import type { Queryable, Row } from './postgres-connection.js';
import { readFormat, type ReadRows } from './formats/postgres-format.js';
import { MIGRATIONS, type PostgresMigration } from './formats/postgres-migrations.js';
import { GUARDS_COUNT } from './postgres-schema.js';

/** Serializes migrations; two numbers, so that it cannot be the lock of a writer. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('turnpike migration'), hashtext($1))`;

/** Exists while the ledger is an unfinished copy of another one. It has one row: the name of the source. */
export const COPY_TABLE = 'unfinished_copy';

/** Creates an empty ledger. @throws LedgerError LEDGER_UNAVAILABLE if the schema exists and is not empty */
export function createTables(client: Queryable, schema: string, migrations = MIGRATIONS): Promise<void> {
  return createTablesIn(client, schema, () => Promise.resolve(), migrations);
}

/** Like `createTables`; `more` runs in the same transaction. */
export function createTablesIn(
  client: Queryable,
  schema: string,
  more: () => Promise<void>,
  migrations = MIGRATIONS,
): Promise<void> {
  return inTransaction(client, schema, async () => {
    await client.query({ text: `CREATE SCHEMA IF NOT EXISTS ${schema}` });
    const [found] = (await client.query({ text: TABLES_COUNT, values: [schema] })).rows as Row[];
    if (found?.['tables'] !== '0') {
      throw unavailableError(`schema ${schema} has tables already: open the ledger, or choose another schema`);
    }
    await migrateFrom(client, 0, migrations);
    await more();
  });
}

/**
 * Brings the tables to the format of this version. A store that only reads refuses tables of an older format.
 * @throws LedgerError LEDGER_UNAVAILABLE if there is no ledger
 * @throws LedgerError LEDGER_UNSUPPORTED if another version wrote it in a format that this one does not read
 * @throws LedgerError LEDGER_TAMPERED if the tables are not those of a ledger
 */
export async function openTables(
  client: Queryable,
  schema: string,
  readOnly: boolean,
  migrations = MIGRATIONS,
): Promise<void> {
  const source = await findCopySource(client, schema);
  if (source !== null) {
    throw unavailableError(
      `schema ${schema} has an unfinished copy of ${source}: run \`turnpike home copy\` again, or drop the schema`,
    );
  }
  await openCopiedTables(client, schema, readOnly, migrations);
}

/** Like `openTables`, also for an unfinished copy. */
export async function openCopiedTables(
  client: Queryable,
  schema: string,
  readOnly: boolean,
  migrations = MIGRATIONS,
): Promise<void> {
  const format = await requireFormat(client, schema);
  if (readOnly) {
    requireNewestFormat(newestFormat(migrations), format);
    return;
  }
  if (pendingMigrations(migrations, format).length > 0) {
    await inTransaction(client, schema, async () =>
      // Another process may have migrated them meanwhile.
      migrateFrom(client, await requireFormat(client, schema), migrations),
    );
  }
  await checkGuards(client, schema);
}

const TABLES_COUNT = `SELECT count(*) AS tables FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v')`;

/** The source of the unfinished copy in this schema; null if the schema has no such table. */
export async function findCopySource(client: Queryable, schema: string): Promise<string | null> {
  const text = `SELECT to_regclass('${schema}.${COPY_TABLE}') IS NOT NULL AS found`;
  const [table] = (await client.query({ text })).rows as Row[];
  if (table?.['found'] !== 't') return null;
  const [row] = (await client.query({ text: `SELECT source FROM ${schema}.${COPY_TABLE}` })).rows as Row[];
  return row?.['source'] ?? 'another ledger';
}

const readRows =
  (client: Queryable): ReadRows =>
  async (text, values) =>
    (await client.query({ text, values: [...values] })).rows as Row[];

async function requireFormat(client: Queryable, schema: string): Promise<number> {
  const format = await readFormat(readRows(client), schema);
  if (format !== null) return format;
  const [tables] = (await client.query({ text: TABLES_COUNT, values: [schema] })).rows as Row[];
  if (tables?.['tables'] !== '0')
    throw tamperedError(`schema ${schema} has tables, but they are not those of a ledger`);
  throw unavailableError(`there is no ledger in schema ${schema}: create it with createPostgresStore`);
}

/** Within the open transaction. */
async function migrateFrom(client: Queryable, format: number, migrations: readonly PostgresMigration[]): Promise<void> {
  for (const { to, apply } of pendingMigrations(migrations, format)) {
    await apply(client);
    await client.query({ text: 'UPDATE meta SET ledger_format = $1', values: [to] });
  }
}

const GUARDS = `SELECT count(*) AS guards FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND t.tgname LIKE 'guard\\_%' AND t.tgenabled IN ('O', 'A')`;

/** @throws LedgerError LEDGER_TAMPERED if a trigger was dropped or disabled that keeps rows from being changed */
async function checkGuards(client: Queryable, schema: string): Promise<void> {
  const [found] = (await client.query({ text: GUARDS, values: [schema] })).rows as Row[];
  if (found?.['guards'] === String(GUARDS_COUNT)) return;
  throw tamperedError(`schema ${schema} lacks triggers that keep rows from being changed: restore them`);
}

/** Serialized with the migrations of the same schema. */
export async function inTransaction(client: Queryable, schema: string, work: () => Promise<void>): Promise<void> {
  await client.query({ text: 'BEGIN' });
  try {
    await client.query({ text: LOCK, values: [schema] });
    await work();
    await client.query({ text: 'COMMIT' });
  } catch (error) {
    await client.query({ text: 'ROLLBACK' }).catch(() => undefined);
    throw error;
  }
}

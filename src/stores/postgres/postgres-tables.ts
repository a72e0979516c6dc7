// Creates the tables of a ledger, migrates those of an older version, and marks copies. `meta.ledger_format` has the
// format of the tables.

import { LedgerError, oldFormatError } from '../../core/errors.js';
import { newestFormat, pendingMigrations, requireNewestFormat, type Migration } from '../ledger/migrations.js';
import { tamperedError, unavailableError } from '../ledger/store-errors.js';
import { connect, inTransaction, sendOn, type PostgresPlace, type SendStatement } from './postgres-connection.js';
import { createLedgerSql, GUARDS_COUNT } from './postgres-schema.js';

export type PostgresMigration = Migration<SendStatement, Promise<void>>;

/**
 * The tables have one format more for each of these. Workers of the format before go on meanwhile, so a migration must
 * leave them what they use.
 */
export const MIGRATIONS: readonly PostgresMigration[] = [
  {
    from: 0,
    to: 1,
    apply: async (send) => {
      await send({ text: createLedgerSql() });
    },
  },
];

/** The format of the tables that this version writes. */
export const FORMAT_VERSION = newestFormat(MIGRATIONS);

/** Serializes migrations; two numbers, so that it cannot be the lock of a writer. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('turnpike migration'), hashtext($1))`;

/** Exists while the ledger is an unfinished copy of another one. It has one row: the name of the source. */
export const COPY_TABLE = 'unfinished_copy';

/** Creates an empty ledger. @throws LedgerError LEDGER_UNAVAILABLE if the schema exists and is not empty */
export function createTables(send: SendStatement, schema: string, migrations = MIGRATIONS): Promise<void> {
  return createTablesIn(send, schema, () => Promise.resolve(), migrations);
}

/** Like `createTables`; `more` runs in the same transaction. */
export function createTablesIn(
  send: SendStatement,
  schema: string,
  more: () => Promise<void>,
  migrations = MIGRATIONS,
): Promise<void> {
  return inMigration(send, schema, async () => {
    await send({ text: `CREATE SCHEMA IF NOT EXISTS ${schema}` });
    if (await hasTables(send, schema)) {
      throw unavailableError(`schema ${schema} has tables already: open the ledger, or choose another schema`);
    }
    await migrateFrom(send, 0, migrations);
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
  send: SendStatement,
  schema: string,
  readOnly: boolean,
  migrations = MIGRATIONS,
): Promise<void> {
  const source = await findCopySource(send, schema);
  if (source !== null) {
    throw unavailableError(
      `schema ${schema} has an unfinished copy of ${source}: run \`turnpike home copy\` again, or drop the schema`,
    );
  }
  await openCopiedTables(send, schema, readOnly, migrations);
}

/** Like `openTables`, also for an unfinished copy. */
export async function openCopiedTables(
  send: SendStatement,
  schema: string,
  readOnly: boolean,
  migrations = MIGRATIONS,
): Promise<void> {
  const format = await requireFormat(send, schema);
  if (readOnly) {
    requireNewestFormat(newestFormat(migrations), format);
    return;
  }
  if (pendingMigrations(migrations, format).length > 0) {
    await inMigration(send, schema, async () =>
      // Another process may have migrated them meanwhile.
      migrateFrom(send, await requireFormat(send, schema), migrations),
    );
  }
  await checkGuards(send, schema);
}

/** The names of the tables and views in a schema. */
export const TABLES = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v')`;

export const hasTables = async (send: SendStatement, schema: string): Promise<boolean> =>
  (await send({ text: TABLES, values: [schema] })).length > 0;

/** The source of the unfinished copy in this schema; null if the schema has no such table. */
export async function findCopySource(send: SendStatement, schema: string): Promise<string | null> {
  const [table] = await send({ text: `SELECT to_regclass('${schema}.${COPY_TABLE}') IS NOT NULL AS found` });
  if (table?.['found'] !== 't') return null;
  const [row] = await send({ text: `SELECT source FROM ${schema}.${COPY_TABLE}` });
  return row?.['source'] ?? 'another ledger';
}

const META_COLUMNS = `SELECT column_name AS name FROM information_schema.columns
  WHERE table_schema = $1 AND table_name = 'meta'`;
const COLUMNS = ['one', 'ledger_format', 'epoch'];
/** Those of a ledger from before formats began again at 1. The number in it may be the number of a format of today. */
const OLD_COLUMNS = ['one', 'format', 'epoch'];

/** Whether the schema has a ledger. @throws LedgerError LEDGER_UNSUPPORTED if this version does not know its formats */
export async function hasLedgerTables(send: SendStatement, schema: string): Promise<boolean> {
  const found = (await send({ text: META_COLUMNS, values: [schema] })).map((row) => row['name']);
  if (OLD_COLUMNS.every((name) => found.includes(name))) throw oldFormatError(`the ledger in schema ${schema}`);
  return COLUMNS.every((name) => found.includes(name));
}

async function requireFormat(send: SendStatement, schema: string): Promise<number> {
  if (await hasLedgerTables(send, schema)) {
    const [meta] = await send({ text: `SELECT ledger_format FROM ${schema}.meta` });
    const format = Number(meta?.['ledger_format'] ?? NaN);
    if (Number.isInteger(format) && format > 0) return format;
    throw tamperedError(`the table meta in schema ${schema} does not state a format`);
  }
  if (await hasTables(send, schema))
    throw tamperedError(`schema ${schema} has tables, but they are not those of a ledger`);
  throw unavailableError(`there is no ledger in schema ${schema}: create it with createPostgresStore`);
}

/** Within the open transaction. */
async function migrateFrom(
  send: SendStatement,
  format: number,
  migrations: readonly PostgresMigration[],
): Promise<void> {
  for (const { to, apply } of pendingMigrations(migrations, format)) {
    await apply(send);
    await send({ text: 'UPDATE meta SET ledger_format = $1', values: [to] });
  }
}

const GUARDS = `SELECT count(*) AS guards FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND t.tgname LIKE 'guard\\_%' AND t.tgenabled IN ('O', 'A')`;

/** @throws LedgerError LEDGER_TAMPERED if a trigger was dropped or disabled that keeps rows from being changed */
async function checkGuards(send: SendStatement, schema: string): Promise<void> {
  const [found] = await send({ text: GUARDS, values: [schema] });
  if (found?.['guards'] === String(GUARDS_COUNT)) return;
  throw tamperedError(`schema ${schema} lacks triggers that keep rows from being changed: restore them`);
}

/** Runs `work` in a transaction, one after another for each schema. */
export const inMigration = (send: SendStatement, schema: string, work: () => Promise<void>): Promise<void> =>
  inTransaction(send, async () => {
    await send({ text: LOCK, values: [schema] });
    await work();
  });

// The mark of a ledger that was copied: a table with one row, the name of the copy. While it exists, no process writes
// to the ledger. Readers do not look at it.

export const COPIED_TABLE = 'copied_ledger';

export const copiedError = (schema: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_COPIED',
    message:
      `the ledger in schema ${schema} was copied, and continues in the copy: use that one, or run ` +
      '`turnpike home reopen` if the copy will never be used',
  });

/** The name of the copy of a ledger; null if it was not copied. @throws LedgerError LEDGER_UNAVAILABLE */
export const readCopied = (place: PostgresPlace): Promise<string | null> =>
  withConnection(place, async (send) => {
    const [found] = await send({ text: `SELECT to_regclass('${COPIED_TABLE}') IS NOT NULL AS copied` });
    if (found?.['copied'] !== 't') return null;
    const [row] = await send({ text: `SELECT target FROM ${COPIED_TABLE}` });
    return row?.['target'] ?? 'another ledger';
  });

/** Marks a ledger whose writer lock the caller has, or removes the mark: `target` is null. */
export const writeCopied = (place: PostgresPlace, target: string | null): Promise<void> =>
  withConnection(place, (send) =>
    inTransaction(send, async () => {
      await send({ text: `DROP TABLE IF EXISTS ${COPIED_TABLE}` });
      if (target === null) return;
      await send({ text: `CREATE TABLE ${COPIED_TABLE} (target) AS SELECT $1::text`, values: [target] });
    }),
  );

async function withConnection<T>(place: PostgresPlace, work: (send: SendStatement) => Promise<T>): Promise<T> {
  const client = await connect(place);
  try {
    await client.query('SET client_min_messages TO error');
    return await work(sendOn(client));
  } finally {
    await client.end().catch(() => undefined);
  }
}

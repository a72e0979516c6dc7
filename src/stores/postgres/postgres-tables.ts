// Creates the tables of a ledger, and migrates those of an older version.

import { tamperedError, unavailableError } from '../ledger/store-errors.js';
import { CLUSTER_OF_FORMAT_2 } from './cluster/postgres-cluster-tables.js';
import type { Queryable, Row } from './postgres-connection.js';
import { functionsOfFormat1 } from './postgres-functions.js';
import { SHARED_OF_FORMAT_1, SHARED_OF_FORMAT_4 } from './postgres-shared-functions.js';
import {
  BLOCKS_OF_FORMAT_4,
  CHUNK_BYTES,
  FORMAT_ROTATED,
  FORMAT_VERSION,
  GUARDS_COUNT,
  newerFormatError,
  otherFormatError,
  TABLES_OF_FORMAT_1,
} from './postgres-schema.js';
import { LABELS_OF_FORMAT_3 } from './workers/postgres-labels.js';
import { QUOTAS_OF_FORMAT_4 } from './workers/postgres-quotas.js';

/** Migration n leads from format n to format n + 1. A rotation makes format 5 (workers/postgres-rotation.ts). */
const MIGRATIONS: readonly string[] = [
  `${TABLES_OF_FORMAT_1}\n${functionsOfFormat1(CHUNK_BYTES)}\n${SHARED_OF_FORMAT_1}`,
  CLUSTER_OF_FORMAT_2,
  LABELS_OF_FORMAT_3,
  // Workers of format 3 go on meanwhile: they call functions with the same parameters.
  `${BLOCKS_OF_FORMAT_4}\n${QUOTAS_OF_FORMAT_4}\n${SHARED_OF_FORMAT_4}`,
];

/** Serializes migrations; two numbers, so that it cannot be the lock of a writer. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('turnpike migration'), hashtext($1))`;

/** Exists while the ledger is an unfinished copy of another one. It has one row: the name of the source. */
export const COPY_TABLE = 'unfinished_copy';

/** Creates an empty ledger. @throws LedgerError LEDGER_UNAVAILABLE if the schema exists and is not empty */
export function createTables(client: Queryable, schema: string): Promise<void> {
  return createTablesIn(client, schema, () => Promise.resolve());
}

/** Like `createTables`; `more` runs in the same transaction. */
export function createTablesIn(client: Queryable, schema: string, more: () => Promise<void>): Promise<void> {
  return inTransaction(client, schema, async () => {
    await client.query({ text: `CREATE SCHEMA IF NOT EXISTS ${schema}` });
    const [found] = (await client.query({ text: TABLES_COUNT, values: [schema] })).rows as Row[];
    if (found?.['tables'] !== '0') {
      throw unavailableError(`schema ${schema} has tables already: open the ledger, or choose another schema`);
    }
    await migrateFrom(client, 0);
    await more();
  });
}

/**
 * Brings the tables to the format of this version. A store that only reads refuses tables of an older format.
 * @throws LedgerError LEDGER_UNAVAILABLE if there is no ledger, or another version of Turnpike is needed
 * @throws LedgerError LEDGER_TAMPERED if the tables are not those of a ledger
 */
export async function openTables(client: Queryable, schema: string, readOnly: boolean): Promise<void> {
  const source = await findCopySource(client, schema);
  if (source !== null) {
    throw unavailableError(
      `schema ${schema} has an unfinished copy of ${source}: run \`turnpike home copy\` again, or drop the schema`,
    );
  }
  await openCopiedTables(client, schema, readOnly);
}

/** Like `openTables`, also for an unfinished copy. */
export async function openCopiedTables(client: Queryable, schema: string, readOnly: boolean): Promise<void> {
  const format = await readFormat(client, schema);
  if (format > FORMAT_ROTATED) throw newerFormatError(format);
  if (format < FORMAT_VERSION && readOnly) throw otherFormatError(format, 'open the ledger for writing once');
  if (format < FORMAT_VERSION) {
    await inTransaction(client, schema, async () => migrateFrom(client, await readFormat(client, schema)));
  }
  if (!readOnly) await checkGuards(client, schema);
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

const META_COLUMNS = `SELECT count(*) AS columns FROM information_schema.columns
  WHERE table_schema = $1 AND table_name = 'meta' AND column_name IN ('one', 'format', 'epoch')`;

async function readFormat(client: Queryable, schema: string): Promise<number> {
  const [found] = (await client.query({ text: META_COLUMNS, values: [schema] })).rows as Row[];
  if (found?.['columns'] === '3') {
    const [meta] = (await client.query({ text: 'SELECT format FROM meta' })).rows as Row[];
    const format = Number(meta?.['format'] ?? NaN);
    if (Number.isInteger(format) && format > 0) return format;
    throw tamperedError(`the table meta in schema ${schema} does not state a format`);
  }
  const [tables] = (await client.query({ text: TABLES_COUNT, values: [schema] })).rows as Row[];
  if (tables?.['tables'] !== '0')
    throw tamperedError(`schema ${schema} has tables, but they are not those of a ledger`);
  throw unavailableError(`there is no ledger in schema ${schema}: create it with createPostgresStore`);
}

async function migrateFrom(client: Queryable, format: number): Promise<void> {
  for (const migration of MIGRATIONS.slice(format)) await client.query({ text: migration });
  // Another process may have migrated them meanwhile, and rotated the key.
  await client.query({ text: 'UPDATE meta SET format = greatest(format, $1)', values: [FORMAT_VERSION] });
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

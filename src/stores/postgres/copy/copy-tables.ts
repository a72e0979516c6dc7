// The tables of an unfinished copy: those of an empty ledger, and one that names the source. While that one exists, the
// store is not opened (postgres-tables.ts).

import { usageError } from '../../../core/errors.js';
import { unavailableError } from '../../ledger/store-errors.js';
import type { Queryable, Row } from '../postgres-connection.js';
import { COPY_TABLE, createTablesIn, findCopySource } from '../postgres-tables.js';
import { inTransaction, type SendStatement } from '../writer-session.js';

/** Tables with one row, which an empty ledger has too. */
const SINGLE_ROWS = ['meta', 'head', COPY_TABLE];

/**
 * Creates the tables in a schema without tables, or finds those of an unfinished copy of this source.
 * @throws UsageError if the schema has other tables, or holds an unfinished copy of another source
 */
export async function prepareCopyTables(client: Queryable, schema: string, source: string): Promise<void> {
  const found = await findCopySource(client, schema);
  if (found === source) return;
  if (found !== null) {
    throw usageError(
      `schema ${schema} has an unfinished copy of ${found}: copy that ledger again to finish it, or drop the schema`,
    );
  }
  try {
    await createTablesIn(client, schema, async () => {
      await client.query({ text: `CREATE TABLE ${COPY_TABLE} (source text NOT NULL)` });
      await client.query({ text: `INSERT INTO ${COPY_TABLE} (source) VALUES ($1)`, values: [source] });
    });
  } catch (error) {
    if ((await client.query({ text: TABLES, values: [schema] })).rows.length > 0)
      throw usageError(`schema ${schema} is not empty: name another schema`);
    throw error;
  }
}

const TABLES = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v')`;
const SEQUENCES = `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = $1`;

const namesOf = (rows: readonly Row[]): readonly string[] => rows.map((row) => row['name'] ?? '');

/** Empties the tables of an unfinished copy. The triggers that keep rows from being removed rest meanwhile. */
export async function emptyCopyTables(send: SendStatement, schema: string): Promise<void> {
  await inTransaction(send, async () => {
    const marked = await send({ text: `SELECT FROM ${COPY_TABLE}` });
    if (marked.length !== 1) throw unavailableError(`schema ${schema} is not marked as an unfinished copy`);
    const all = namesOf(await send({ text: TABLES, values: [schema] }));
    const tables = all.filter((name) => !SINGLE_ROWS.includes(name));
    for (const name of tables) await send({ text: `ALTER TABLE ${name} DISABLE TRIGGER USER` });
    await send({ text: `TRUNCATE ${tables.join(', ')} RESTART IDENTITY` });
    for (const name of tables) await send({ text: `ALTER TABLE ${name} ENABLE TRIGGER USER` });
    await send({ text: `UPDATE head SET size = 0, root = sha256(''), frontier = ''` });
    for (const name of namesOf(await send({ text: SEQUENCES, values: [schema] })))
      await send({ text: `ALTER SEQUENCE ${name} RESTART` });
  });
}

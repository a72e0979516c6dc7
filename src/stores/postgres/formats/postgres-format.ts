// The format of the tables in a schema.

import { oldFormatError } from '../../../core/errors.js';
import { tamperedError } from '../../ledger/store-errors.js';
import type { Row } from '../postgres-connection.js';

/** Sends a query. */
export type ReadRows = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;

const META_COLUMNS = `SELECT column_name AS name FROM information_schema.columns
  WHERE table_schema = $1 AND table_name = 'meta'`;
const COLUMNS = ['one', 'ledger_format', 'epoch'];
/** Those of a ledger from before formats began again at 1. The number in it may be the number of a format of today. */
const OLD_COLUMNS = ['one', 'format', 'epoch'];

/** @returns null if the schema has no table of a ledger @throws LedgerError LEDGER_UNSUPPORTED, LEDGER_TAMPERED */
export async function readFormat(read: ReadRows, schema: string): Promise<number | null> {
  if (!(await hasTables(read, schema))) return null;
  const [meta] = await read(`SELECT ledger_format FROM ${schema}.meta`, []);
  const format = Number(meta?.['ledger_format'] ?? NaN);
  if (Number.isInteger(format) && format > 0) return format;
  throw tamperedError(`the table meta in schema ${schema} does not state a format`);
}

/** @throws LedgerError LEDGER_UNSUPPORTED for a ledger whose formats this version does not know */
export async function refuseOldTables(read: ReadRows, schema: string): Promise<void> {
  await hasTables(read, schema);
}

async function hasTables(read: ReadRows, schema: string): Promise<boolean> {
  const found = (await read(META_COLUMNS, [schema])).map((row) => row['name']);
  if (OLD_COLUMNS.every((name) => found.includes(name))) throw oldFormatError(`the ledger in schema ${schema}`);
  return COLUMNS.every((name) => found.includes(name));
}

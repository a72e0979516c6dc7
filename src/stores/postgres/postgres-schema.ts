// The tables and functions of a ledger in PostgreSQL: the files of the folder sql, and the constants that they share
// with this code. Errors of the functions have SQLSTATEs of their own: TP001, an integration that does not continue the
// log; TP002, a change of records that never change; TP003, a change of rows that never change.

import { readFileSync } from 'node:fs';
import { InvariantError } from '../../core/errors.js';
import { packageFile } from '../../system/package-files.js';
import { CREATE_RECORD_TYPES } from './commit-records.js';

/** Contents are stored in pieces of this many bytes. */
export const CHUNK_BYTES = 1_024 * 1_024;

/** The first number of the advisory lock of a worker; the second is its number. */
export const WORKER_LOCK = 0x54505046;

/** The channel on which a ledger announces that it has grown, as an SQL expression. */
export const CHANNEL = `'turnpike_' || 'head'::regclass::oid`;

/** Tables whose rows never change. */
export const APPEND_ONLY_TABLES = ['blocks', 'log', 'marks'] as const;
/** Tables whose rows never change, except that an erasure removes their bytes. */
export const ERASABLE_TABLES = ['artifacts', 'artifact_chunks'] as const;

/** The number of triggers that guard the tables. */
export const GUARDS_COUNT = 2 * APPEND_ONLY_TABLES.length + 3 * ERASABLE_TABLES.length;

const FILES = ['tables', 'guards', 'workers', 'quotas', 'commit', 'integrate', 'run-records'] as const;

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

/** What `${NAME}` stands for in the files. */
const CONSTANTS: Readonly<Record<string, string>> = {
  CHUNK_BYTES: String(CHUNK_BYTES),
  WORKER_LOCK: String(WORKER_LOCK),
  CHANNEL,
  APPEND_ONLY_TABLES: quoted(APPEND_ONLY_TABLES),
  ERASABLE_TABLES: quoted(ERASABLE_TABLES),
};

/** Creates the tables of an empty ledger, with their guards, and the functions. */
export const createLedgerSql = (): string => [CREATE_RECORD_TYPES, ...FILES.map(readSql)].join('\n');

function readSql(name: string): string {
  const text = readFileSync(packageFile(`src/stores/postgres/sql/${name}.sql`), 'utf8');
  return text.replace(/\$\{(\w+)\}/g, (_, constant: string) => {
    const value = CONSTANTS[constant];
    if (value === undefined) throw new InvariantError(`${name}.sql names an unknown constant: ${constant}`);
    return value;
  });
}

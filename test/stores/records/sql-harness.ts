// Record databases under test, and what another program can do to them.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from '@jest/globals';
import pg from 'pg';
import { sqlDatabase } from '../../../src/stores/records/sql-database.js';
import type { TargetDefinition } from '../../../src/core/contract/policy/catalogue.js';
import type { EffectResult } from '../../../src/core/contract/run/effect.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { RecordDatabase, RecordRead, RecordWrite } from '../../../src/engine/ports/effects/records.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

/** An empty database of any kind. The ledger's own is synchronous, which makes no difference here. */
export interface RecordsUnderTest {
  readonly dialect: 'sqlite' | 'postgres';
  open(targets: readonly TargetDefinition[]): Promise<void>;
  write(write: RecordWrite): Promise<EffectResult>;
  read(read: RecordRead): Promise<EffectResult>;
  /**
   * Runs a statement as another program, which sees durable data only. `TABLE_NAME` is the table of the target `notes`.
   */
  exec(sql: string): Promise<void>;
  rows(sql: string): Promise<readonly unknown[]>;
  /** Makes written rows visible to other programs. */
  commit(): Promise<void>;
  close(): Promise<void>;
}

export const [A, B] = ['case-0001', 'case-0002'];

export const TEXT = { type: 'string' };

/** A target of records with these columns; those named in `optional` may be missing. */
export function targetOf(
  columns: JsonObject,
  more: Partial<TargetDefinition> = {},
  optional: readonly string[] = [],
): TargetDefinition {
  const required = Object.keys(columns).filter((name) => !optional.includes(name));
  return {
    name: 'notes',
    summary: 'Notes.',
    record: { type: 'object', properties: columns, required, additionalProperties: false },
    key: ['id'],
    modes: ['append', 'upsert'],
    plane: 'case',
    place: 'elsewhere',
    confidentiality: [],
    ...more,
  };
}

export const NOTES = targetOf({ id: TEXT, text: TEXT });

let keys = 0;

/** A write with its own idempotency key, unless one is given. */
export function writeOf(record: JsonObject, more: Partial<RecordWrite> = {}): RecordWrite {
  keys += 1;
  const request_hash = sha256(JSON.stringify(record));
  return { target: NOTES, mode: 'append', record, case_id: A, idempotency_key: `key-${keys}`, request_hash, ...more };
}

export const readOf = (more: Partial<RecordRead> = {}): RecordRead => ({
  target: NOTES,
  where: {},
  after: null,
  limit: 100,
  case_id: A,
  ...more,
});

export const DONE: EffectResult = { status: 'done', result: { written: 1 } };
export const failedWith = (cause: string) => expect.objectContaining({ status: 'failed', cause });
export const code = (name: string) => expect.objectContaining({ code: name });

/** The records that a read finds, which must be a complete result. */
export async function recordsOf(records: Pick<RecordsUnderTest, 'read'>, more: Partial<RecordRead> = {}) {
  const answer = await records.read(readOf(more));
  if (answer.status !== 'done') throw new Error(`a read was not done: ${JSON.stringify(answer)}`);
  return answer.result['records'];
}

export interface FolderOfRecords {
  readonly url: string;
  readonly file: string;
  readonly remove: () => void;
}

export function sqliteFolder(): FolderOfRecords {
  const folder = tempFolder('records');
  const file = join(folder, 'records.db');
  return { file, url: `sqlite:${file}`, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A database other than the ledger's, to be closed. */
export interface ElsewhereUnderTest extends RecordsUnderTest {
  readonly url: string;
  readonly database: RecordDatabase;
}

export function sqliteUnderTest(create = true): Promise<ElsewhereUnderTest> {
  const { url, file, remove } = sqliteFolder();
  new Database(file).close();
  const ask = <T>(work: (db: Database.Database) => T): Promise<T> => {
    const db = new Database(file);
    try {
      return Promise.resolve(work(db));
    } finally {
      db.close();
    }
  };
  const database = sqlDatabase({ url, create });
  return Promise.resolve({
    ...elsewhere(url, database),
    dialect: 'sqlite',
    exec: (sql) => ask((db) => void db.exec(named(sql))),
    rows: (sql) => ask((db) => db.prepare(named(sql)).all()),
    close: async () => {
      await database.close();
      remove();
    },
  });
}

/** A separate schema in the server for each test. */
export async function postgresUnderTest(server: string, create = true): Promise<ElsewhereUnderTest> {
  keys += 1;
  const schema = `test_${process.pid}_${keys}`;
  const url = `${server}?options=-c%20search_path%3D${schema}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create schema ${schema}`);
  const database = sqlDatabase({ url, create });
  return {
    ...elsewhere(url, database),
    dialect: 'postgres',
    exec: async (sql) => {
      await client.query(named(sql));
    },
    rows: async (sql) => (await client.query<object>(named(sql))).rows,
    close: async () => {
      await database.close();
      await client.query(`drop schema ${schema} cascade`);
      await client.end();
    },
  };
}

const elsewhere = (url: string, database: RecordDatabase) => ({
  url,
  database,
  open: (targets: readonly TargetDefinition[]) => database.open(targets),
  write: (write: RecordWrite) => database.write(write),
  read: (read: RecordRead) => database.read(read),
  commit: () => Promise.resolve(),
});

const named = (sql: string): string => sql.replaceAll('TABLE_NAME', 'notes');

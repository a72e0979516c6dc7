// Fills a new ledger in PostgreSQL with the rows of another one. A page is one statement. The schema is marked as an
// unfinished copy until the copy is published.

import { usageError } from '../../../core/errors.js';
import type {
  CopiedBlock,
  CopiedContent,
  CopiedEnd,
  CopiedMark,
  LedgerCopyTarget,
  RecoveredTree,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import type { CaseKeys } from '../../keys/case-keys.js';
import { unavailableError } from '../../ledger/store-errors.js';
import { ByteColumn, type Row } from '../postgres-values.js';
import { recordArray, type CommitRecord } from '../commit-records.js';
import {
  asLedgerError,
  checkSchemaName,
  checkServer,
  connect,
  inTransaction,
  sendOn,
  type PostgresPlace,
  type SendStatement,
} from '../postgres-connection.js';
import { markRow } from '../postgres-marks.js';
import { COPY_TABLE, createTablesIn, findCopySource, hasTables, TABLES } from '../postgres-tables.js';
import { WriterSession } from '../writer-session.js';

const HASH_BYTES = 32;
const PAGE_CASES = 4_096;

export interface PostgresCopyTargetOptions extends Omit<PostgresPlace, 'readOnly'> {
  /** The keys of the copy, which state what was erased. */
  readonly keys: CaseKeys;
  /** Identifies the source: an unfinished copy of it is started again. */
  readonly source: string;
}

/**
 * Creates the tables, or empties those of an unfinished copy of the same source. Takes the writer lock.
 * @throws UsageError if the schema has other tables, or an unfinished copy of another source
 * @throws LedgerError LEDGER_LOCKED while another process copies; LEDGER_UNAVAILABLE
 */
export async function createPostgresCopyTarget(options: PostgresCopyTargetOptions): Promise<LedgerCopyTarget> {
  const { url, schema, keys, source } = options;
  checkSchemaName(schema);
  const place = { url, schema, readOnly: false };
  const client = await connect(place);
  try {
    await checkServer(sendOn(client), false);
    await prepareCopyTables(sendOn(client), schema, source);
  } catch (cause) {
    throw asCopyError(cause, `schema ${schema} cannot be prepared for a copy`);
  } finally {
    await client.end().catch(() => undefined);
  }
  const session = await WriterSession.lock(place, 'exclusive');
  try {
    await session.exclusively((send) => emptyCopyTables(send, schema));
    return new PostgresCopyTarget(session, keys);
  } catch (cause) {
    await session.close();
    throw asCopyError(cause, `schema ${schema} cannot be prepared for a copy`);
  }
}

/** Tables with one row, which an empty ledger has too. */
const SINGLE_ROWS = ['meta', 'head', COPY_TABLE];

/**
 * Creates the tables in a schema without tables, or finds those of an unfinished copy of this source.
 * @throws UsageError if the schema has other tables, or holds an unfinished copy of another source
 */
async function prepareCopyTables(send: SendStatement, schema: string, source: string): Promise<void> {
  const found = await findCopySource(send, schema);
  if (found === source) return;
  if (found !== null) {
    throw usageError(
      `schema ${schema} has an unfinished copy of ${found}: copy that ledger again to finish it, or drop the schema`,
    );
  }
  try {
    await createTablesIn(send, schema, async () => {
      await send({ text: `CREATE TABLE ${COPY_TABLE} (source text NOT NULL)` });
      await send({ text: `INSERT INTO ${COPY_TABLE} (source) VALUES ($1)`, values: [source] });
    });
  } catch (error) {
    if (await hasTables(send, schema)) throw usageError(`schema ${schema} is not empty: name another schema`);
    throw error;
  }
}

const SEQUENCES = `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = $1`;

const namesOf = (rows: readonly Row[]): readonly string[] => rows.map((row) => row['name'] ?? '');

/** Empties the tables of an unfinished copy. The triggers that keep rows from being removed rest meanwhile. */
async function emptyCopyTables(send: SendStatement, schema: string): Promise<void> {
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

class PostgresCopyTarget implements LedgerCopyTarget {
  readonly needsLeases = true;
  readonly #session: WriterSession;
  readonly #keys: CaseKeys;
  #trees = 0;
  #ends = 0;
  #lastContent = 0;
  /** A query for them over the whole ledger would exceed the time limit of a statement. */
  readonly #cases = new Set<string>();

  constructor(session: WriterSession, keys: CaseKeys) {
    this.#session = session;
    this.#keys = keys;
  }

  async addContents(page: readonly CopiedContent[]): Promise<void> {
    const bytes = new ByteColumn();
    const records = page.map((content): CommitRecord<'commit_content'> => {
      const { no, case_id, sha256, kind, byte_size, key_no, stored } = content;
      this.#lastContent = Math.max(this.#lastContent, no);
      if (case_id !== null) this.#cases.add(case_id);
      const place = stored === null ? { at: null, bytes: 0 } : bytes.add(stored);
      return {
        ...{ known_no: 0, case_id, sha256, kind, byte_size, key_no },
        ...{ stored_at: place.at, stored_bytes: place.bytes },
      };
    });
    const nos = page.map(({ no }) => no);
    await this.#send(ADD_CONTENTS, [nos, recordArray('commit_content', records), bytes.toBuffer()]);
  }

  async addBlocks(page: readonly CopiedBlock[]): Promise<void> {
    const rows = page.map(({ leaf_hashes, contents, ...block }) => ({
      ...block,
      leaf_hashes: leaf_hashes.join(''),
      artifact_entries: contents.length === 0 ? null : contents.map(({ entry }) => entry),
      artifact_nos: contents.length === 0 ? null : contents.map(({ no }) => no),
    }));
    await this.#send(ADD_BLOCKS, [JSON.stringify(rows)]);
  }

  async addTrees(page: readonly RecoveredTree[]): Promise<void> {
    await this.#send(ADD_TREES, [JSON.stringify(page), this.#trees]);
    this.#trees += page.length;
    for (const { case_id } of page) if (case_id !== null) this.#cases.add(case_id);
  }

  async addMarks(page: readonly CopiedMark[]): Promise<void> {
    await this.#send(ADD_MARKS, [JSON.stringify(page.map(markRow))]);
  }

  async addEnds(page: readonly CopiedEnd[]): Promise<void> {
    await this.#send(ADD_ENDS, [JSON.stringify(page), this.#ends]);
    this.#ends += page.length;
  }

  async finish({ size, root, frontier }: LogHead): Promise<void> {
    const erased = new Map(this.#keys.erasedCases().map(({ case_id, key_no }) => [case_id, key_no]));
    const cases = [...new Set([...this.#cases, ...erased.keys()])].sort();
    for (let from = 0; from < cases.length; from += PAGE_CASES) {
      const page = cases.slice(from, from + PAGE_CASES);
      await this.#send(ADD_CASES, [page, page.map((case_id) => erased.get(case_id) ?? 0)]);
    }
    await this.#attempt((send) =>
      inTransaction(send, async () => {
        const hashes = [root, frontier.join('')].map((hex) => Buffer.from(hex, 'hex'));
        await send({ text: 'UPDATE head SET size = $1, root = $2, frontier = $3', values: [size, ...hashes] });
        await send({ text: SET_NUMBERS, values: [size, this.#trees, this.#lastContent] });
      }),
    );
  }

  async publish(): Promise<void> {
    await this.#attempt((send) => send({ text: `DROP TABLE ${COPY_TABLE}` }));
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  async #send(text: string, values: readonly unknown[]): Promise<void> {
    await this.#attempt((send) => send({ text, values: [...values] }));
  }

  async #attempt(work: (send: SendStatement) => Promise<unknown>): Promise<void> {
    try {
      await this.#session.exclusively(work);
    } catch (cause) {
      throw asCopyError(cause, 'the copy cannot be written');
    }
  }
}

const asCopyError = (cause: unknown, message: string): unknown =>
  cause instanceof Error && 'code' in cause && cause.code === 'USAGE' ? cause : asLedgerError(cause, message);

const ADD_CONTENTS = 'SELECT store_contents($1, $2, $3)';

const ADD_BLOCKS = `WITH b AS (
    SELECT * FROM json_to_recordset($1::json) AS b (tree_id text, seq integer, log_index bigint, types text, texts text,
      leaf_hashes text, artifact_entries integer[], artifact_nos bigint[])
  ), added AS (
    INSERT INTO blocks (tree_id, seq, commit_no, types, leaf_hashes, text_bytes, texts, artifact_entries, artifact_nos)
    SELECT b.tree_id, b.seq, b.log_index + 1, b.types, decode(b.leaf_hashes, 'hex'), octet_length(b.texts), b.texts,
      b.artifact_entries, b.artifact_nos FROM b
  )
  INSERT INTO log (log_index, tree_id, seq) SELECT b.log_index, b.tree_id, b.seq FROM b`;

/** The leases are those of the former writer, which is known to be dead: its lock is free. */
const ADD_TREES = `WITH t AS (
    SELECT * FROM ROWS FROM (json_to_recordset($1::json)
      AS (tree_id text, case_id text, ended boolean, unfinished boolean, wake_at text, leases json)) WITH ORDINALITY
      AS t (tree_id, case_id, ended, unfinished, wake_at, leases, place)
  ), added AS (
    INSERT INTO trees (tree_id, opened, case_id, head_seq, head_hash, ended, unfinished, wake_at)
    SELECT t.tree_id, $2::bigint + t.place, t.case_id, l.seq + octet_length(l.leaf_hashes) / ${HASH_BYTES},
      substring(l.leaf_hashes FROM octet_length(l.leaf_hashes) - ${HASH_BYTES - 1}), t.ended, t.unfinished, t.wake_at
    FROM t CROSS JOIN LATERAL (
      SELECT b.seq, b.leaf_hashes FROM blocks b WHERE b.tree_id = t.tree_id ORDER BY b.seq DESC LIMIT 1) AS l
  ), d AS (
    SELECT l.kind, l.run_id, t.tree_id FROM t, json_to_recordset(t.leases) AS l (kind text, run_id text)
  ), writer AS (
    INSERT INTO workers (host, pid, started, backend_pid, over_at, is_dead)
    SELECT '', 0, '', 0, clock_timestamp(), true WHERE EXISTS (SELECT FROM d) RETURNING worker_id
  )
  INSERT INTO leases (kind, run_id, tree_id, worker_id) SELECT d.kind, d.run_id, d.tree_id, w.worker_id FROM writer w, d`;

const ADD_MARKS = `INSERT INTO marks (scope, name, seq, run_id, step_index, payload_sha256)
  SELECT scope, name, seq, run_id, step_index, payload_sha256 FROM json_populate_recordset(NULL::marks, $1::json)`;

const ADD_ENDS = `WITH t AS (
    SELECT * FROM ROWS FROM (json_to_recordset($1::json) AS (tree_id text, seq integer, records json)) WITH ORDINALITY
      AS t (tree_id, seq, records, place)
  ), r AS (
    INSERT INTO run_records (tree_id, run_id, record)
    SELECT t.tree_id, r.run_id, r.text FROM t, json_to_recordset(t.records) AS r (run_id text, text text)
  ), recorded AS (
    INSERT INTO recorded_trees (tree_id, seq) SELECT t.tree_id, t.seq FROM t WHERE t.seq IS NOT NULL ORDER BY t.place
  )
  INSERT INTO unrecorded_trees (place, tree_id) SELECT $2::bigint + t.place, t.tree_id FROM t WHERE t.seq IS NULL`;

const ADD_CASES = `INSERT INTO cases (case_id, erased_key) SELECT * FROM unnest($1::text[], $2::integer[])`;

/** Numbers that the next commits draw are above those of the copy. */
const SET_NUMBERS = `SELECT setval('commit_numbers', greatest($1::bigint, 1) + 1),
  setval('opened_numbers', greatest($2::bigint, 1) + 1),
  setval('artifact_numbers', $3::bigint + 1)`;

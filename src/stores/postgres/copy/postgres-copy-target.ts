// Fills a new ledger in PostgreSQL with the rows of another one. A page is one statement. The schema is marked as an
// unfinished copy until the copy is published.

import type {
  CopiedBlock,
  CopiedContent,
  CopiedMarks,
  CopiedRecords,
  CopiedRecovery,
  CopiedTree,
  LedgerCopyTarget,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import type { CaseKeys } from '../../keys/case-keys.js';
import { ByteColumn } from '../values/byte-column.js';
import { checkServer } from '../check-server.js';
import { asLedgerError, checkSchemaName, connect, type PostgresPlace } from '../postgres-connection.js';
import { inputName, proposalName } from '../postgres-marks.js';
import { CHUNK_BYTES } from '../postgres-schema.js';
import { COPY_TABLE } from '../postgres-tables.js';
import { inTransaction, WriterSession, type SendStatement } from '../writer-session.js';
import { emptyCopyTables, prepareCopyTables } from './copy-tables.js';

const HASH_BYTES = 32;
const PAGE_CASES = 4_096;

export interface PostgresCopyTargetOptions extends Omit<PostgresPlace, 'readOnly'> {
  /** The keys of the copy: contents without encryption are encrypted with them. */
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
    await checkServer(client, false);
    await prepareCopyTables(client, schema, source);
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

class PostgresCopyTarget implements LedgerCopyTarget {
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
    const contents = page.map((content) => this.#sealed(content));
    for (const { no, case_id, stored } of contents) {
      bytes.add(stored ?? NOTHING);
      this.#lastContent = Math.max(this.#lastContent, no);
      if (case_id !== null) this.#cases.add(case_id);
    }
    const values = [
      contents.map(({ no }) => no),
      contents.map(({ case_id }) => case_id),
      contents.map(({ kind }) => kind),
      contents.map(({ byte_size }) => byte_size),
      contents.map(({ key_no }) => key_no),
      contents.map(({ stored }) => stored === null),
      bytes.at,
      bytes.lengths,
      Buffer.from(contents.map(({ sha256 }) => sha256).join(''), 'hex'),
      bytes.toBuffer(),
    ];
    await this.#send(ADD_CONTENTS, values);
  }

  /** Content of a case from before its key existed gets encrypted, so that an erasure destroys it too. */
  #sealed(content: CopiedContent): CopiedContent {
    const { case_id, key_no, sha256, stored } = content;
    if (case_id === null || key_no > 0 || stored === null) return content;
    const { no, cipher } = this.#keys.currentKey(case_id);
    return { ...content, key_no: no, stored: cipher.seal(stored, Buffer.from(sha256, 'hex')) };
  }

  async addBlocks(page: readonly CopiedBlock[]): Promise<void> {
    const [texts, leaves] = [new ByteColumn(), new ByteColumn()];
    const [refsAt, entries, numbers]: [number[], number[], number[]] = [[], [], []];
    for (const block of page) {
      texts.add(Buffer.from(block.texts));
      leaves.add(block.leaf_hashes);
      refsAt.push(entries.length + 1);
      for (const { entry, no } of block.contents) {
        entries.push(entry);
        numbers.push(no);
      }
    }
    const values = [
      page.map(({ tree_id }) => tree_id),
      page.map(({ seq }) => seq),
      page.map(({ log_index }) => log_index),
      page.map(({ types }) => types),
      ...[texts.at, texts.lengths, leaves.at, leaves.lengths],
      ...[refsAt, page.map(({ contents }) => contents.length)],
      ...[texts.toBuffer(), leaves.toBuffer(), entries, numbers],
    ];
    await this.#send(ADD_BLOCKS, values);
  }

  async addTrees(page: readonly CopiedTree[]): Promise<void> {
    const values = [
      page.map(({ tree_id }) => tree_id),
      page.map(({ case_id }) => case_id),
      page.map(({ ended }) => ended),
      page.map(({ unfinished }) => unfinished),
      page.map(({ wake_at }) => wake_at),
      this.#trees,
    ];
    await this.#send(ADD_TREES, values);
    this.#trees += page.length;
    for (const { case_id } of page) if (case_id !== null) this.#cases.add(case_id);
  }

  async addMarks(page: readonly CopiedMarks[]): Promise<void> {
    const proposals = page.flatMap((marks) => marks.proposals);
    const inputs = page.flatMap((marks) => marks.inputs);
    const values = [
      [...proposals.map(({ root_run_id }) => root_run_id), ...inputs.map(({ tree_id }) => tree_id)],
      [
        ...proposals.map(({ proposal_id }) => proposalName(proposal_id)),
        ...inputs.map(({ input_id }) => inputName(input_id)),
      ],
      [...proposals, ...inputs].map(({ seq }) => seq),
      [...proposals.map(({ run_id }) => run_id), ...inputs.map(() => null)],
      [...proposals.map(({ step_index }) => step_index), ...inputs.map(() => null)],
      [...proposals.map(({ payload_sha256 }) => payload_sha256), ...inputs.map(() => null)],
    ];
    await this.#send(ADD_MARKS, values);
  }

  async addRecords(page: readonly CopiedRecords[]): Promise<void> {
    const records = page.flatMap((one) => one.records);
    const values = [
      records.map(({ tree_id }) => tree_id),
      records.map(({ run_id }) => run_id),
      records.map(({ text }) => text),
      page.map(({ tree }) => tree.tree_id),
      page.map(({ tree }) => tree.seq),
    ];
    await this.#send(ADD_RECORDS, values);
  }

  async addUnrecorded(page: readonly string[]): Promise<void> {
    await this.#send(ADD_UNRECORDED, [[...page], this.#ends]);
    this.#ends += page.length;
  }

  async addRecovery(page: readonly CopiedRecovery[]): Promise<void> {
    const leases = page.flatMap(({ tree_id, leases: all }) => all.map((lease) => ({ tree_id, ...lease })));
    await this.#attempt((send) =>
      inTransaction(send, async () => {
        await send({
          text: SET_TIMERS,
          values: [page.map(({ tree_id }) => tree_id), page.map(({ wake_at }) => wake_at)],
        });
        const columns = [
          leases.map(({ kind }) => kind),
          leases.map(({ run_id }) => run_id),
          leases.map(({ tree_id }) => tree_id),
        ];
        if (leases.length > 0) await send({ text: ADD_LEASES, values: columns });
      }),
    );
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

const NOTHING = new Uint8Array();

const asCopyError = (cause: unknown, message: string): unknown =>
  cause instanceof Error && 'code' in cause && cause.code === 'USAGE' ? cause : asLedgerError(cause, message);

const ADD_CONTENTS = `WITH c AS (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::integer[], $6::boolean[],
      $7::integer[], $8::integer[]) WITH ORDINALITY AS c (no, case_id, kind, size, key_no, erased, at, stored, place)
  ), added AS (
    INSERT INTO artifacts (artifact_no, case_id, sha256, kind, byte_size, key_no, bytes)
    SELECT c.no, c.case_id, substring($9::bytea FROM ((c.place - 1) * ${HASH_BYTES} + 1)::integer FOR ${HASH_BYTES}),
      c.kind, c.size, c.key_no,
      CASE WHEN NOT c.erased THEN substring($10::bytea FROM c.at FOR least(c.stored, ${CHUNK_BYTES})) END FROM c
  )
  INSERT INTO artifact_chunks (artifact_no, chunk_no, bytes)
  SELECT c.no, k,
    substring($10::bytea FROM c.at + k * ${CHUNK_BYTES} FOR least(c.stored - k * ${CHUNK_BYTES}, ${CHUNK_BYTES}))
  FROM c, generate_series(1, (c.stored - 1) / ${CHUNK_BYTES}) AS k WHERE c.stored > ${CHUNK_BYTES}`;

const ADD_BLOCKS = `WITH b AS (
    SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::text[], $5::integer[], $6::integer[],
      $7::integer[], $8::integer[], $9::integer[], $10::integer[])
      AS b (tree_id, seq, log_index, types, text_at, text_bytes, leaf_at, leaf_bytes, refs_at, refs)
  ), added AS (
    INSERT INTO blocks (tree_id, seq, commit_no, types, leaf_hashes, text_bytes, texts, artifact_entries, artifact_nos)
    SELECT b.tree_id, b.seq, b.log_index + 1, b.types, substring($12::bytea FROM b.leaf_at FOR b.leaf_bytes),
      b.text_bytes, convert_from(substring($11::bytea FROM b.text_at FOR b.text_bytes), 'UTF8'),
      CASE WHEN b.refs > 0 THEN ($13::integer[])[b.refs_at : b.refs_at + b.refs - 1] END,
      CASE WHEN b.refs > 0 THEN ($14::bigint[])[b.refs_at : b.refs_at + b.refs - 1] END FROM b
  )
  INSERT INTO log (log_index, tree_id, seq) SELECT b.log_index, b.tree_id, b.seq FROM b`;

const ADD_TREES = `INSERT INTO trees
    (tree_id, opened, case_id, head_seq, head_hash, ended, unfinished, wake_at)
  SELECT t.tree_id, $6::bigint + t.place, t.case_id, l.seq + octet_length(l.leaf_hashes) / ${HASH_BYTES},
    substring(l.leaf_hashes FROM octet_length(l.leaf_hashes) - ${HASH_BYTES - 1}), t.ended, t.unfinished, t.wake_at
  FROM unnest($1::text[], $2::text[], $3::boolean[], $4::boolean[], $5::text[]) WITH ORDINALITY
    AS t (tree_id, case_id, ended, unfinished, wake_at, place)
  CROSS JOIN LATERAL (
    SELECT b.seq, b.leaf_hashes FROM blocks b WHERE b.tree_id = t.tree_id ORDER BY b.seq DESC LIMIT 1) AS l`;

const ADD_MARKS = `INSERT INTO marks (scope, name, seq, run_id, step_index, payload_sha256)
  SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::integer[], $6::text[])`;

const ADD_RECORDS = `WITH r AS (
    INSERT INTO run_records (tree_id, run_id, record) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
  )
  INSERT INTO recorded_trees (tree_id, seq)
  SELECT t.tree_id, t.seq FROM unnest($4::text[], $5::integer[]) WITH ORDINALITY AS t (tree_id, seq, place)
  ORDER BY t.place`;

const ADD_UNRECORDED = `INSERT INTO unrecorded_trees (place, tree_id)
  SELECT $2::bigint + t.place, t.tree_id FROM unnest($1::text[]) WITH ORDINALITY AS t (tree_id, place)`;

const SET_TIMERS = `UPDATE trees SET wake_at = t.wake_at FROM unnest($1::text[], $2::text[]) AS t (tree_id, wake_at)
  WHERE trees.tree_id = t.tree_id`;

/** This worker is the former writer, which is known to be dead: its lock is free. */
const ADD_LEASES = `WITH p AS (
    INSERT INTO workers (host, pid, started, backend_pid, over_at, is_dead)
    VALUES ('', 0, '', 0, clock_timestamp(), true) RETURNING worker_id
  )
  INSERT INTO leases (kind, run_id, tree_id, worker_id)
  SELECT d.kind, d.run_id, d.tree_id, p.worker_id
  FROM p, unnest($1::text[], $2::text[], $3::text[]) AS d (kind, run_id, tree_id)`;

const ADD_CASES = `INSERT INTO cases (case_id, erased_key) SELECT * FROM unnest($1::text[], $2::integer[])`;

/** Numbers that the next commits draw are above those of the copy. */
const SET_NUMBERS = `SELECT setval('commit_numbers', greatest($1::bigint, 1) + 1),
  setval('opened_numbers', greatest($2::bigint, 1) + 1),
  setval('artifact_numbers', $3::bigint + 1)`;

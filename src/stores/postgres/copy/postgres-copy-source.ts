// Reads a ledger in PostgreSQL for a copy, in pages by key: a ledger whose writer lock the caller has, or for a backup
// one that workers are writing, as of one moment at which nothing is pending.

import type { Client, PoolClient } from 'pg';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import type {
  CopiedBlock,
  CopiedContent,
  CopiedEnd,
  CopiedMark,
  CopiedTree,
  CopyPages,
  LedgerCopySource,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogStore } from '../../../engine/ports/ledger/log-store.js';
import type { CaseKeys } from '../../keys/case-keys.js';
import { tamperedError } from '../../ledger/store-errors.js';
import {
  asLedgerError,
  connect,
  ReaderPool,
  statementOf,
  type NamedStatement,
  type PostgresPlace,
} from '../postgres-connection.js';
import { CONTENT_COLUMNS, storedBytesOf } from '../postgres-contents.js';
import { integrateAppends } from '../postgres-batch.js';
import { markOfRow } from '../postgres-marks.js';
import { attachedContents, LOG_PAGE, PostgresReader } from '../postgres-reader.js';
import { hashesOf, hexOf, integerOf, textOf, toParameters, type Row } from '../postgres-values.js';
import { isProcessDead } from '../workers/postgres-leases.js';

const PAGE_BLOCKS = 256;
/** Bytes of text, or of contents, after which a page ends. */
const PAGE_BYTES = 4 * 1_024 * 1_024;
const PAGE_ROWS = 1_024;
const PAGE_RECORDED = 64;

export interface PostgresCopySourceOptions extends Omit<PostgresPlace, 'readOnly'> {
  readonly keys: CaseKeys;
}

/** Reads a ledger whose writer lock the caller has, on connections of its own. */
export const openPostgresCopySource = ({ keys, ...place }: PostgresCopySourceOptions): LedgerCopySource =>
  new PostgresCopySource(new ReaderPool({ ...place, readOnly: true }), keys);

/** Closes its pool. */
class PostgresCopySource implements LedgerCopySource {
  readonly #pool: ReaderPool;
  readonly #keys: CaseKeys;

  constructor(pool: ReaderPool, keys: CaseKeys) {
    this.#pool = pool;
    this.#keys = keys;
  }

  head(): Promise<LogHead> {
    return new PostgresReader(this.#pool).head();
  }

  /** A start of the copy would take an effect for interrupted that a worker may still perform. */
  async findObstacle(): Promise<string | null> {
    for (const row of await this.#pool.read(EFFECTS)) {
      if (row['is_dead'] === 't' || isProcessDead(row)) continue;
      return (
        `a worker that may only be cut off has an unfinished effect of ${row['run_id'] ?? 'a run'}: ` +
        'start a worker once, so that it settles the effect, stop it, and copy then'
      );
    }
    return null;
  }

  async *contents(): CopyPages<CopiedContent> {
    for await (const rows of this.#pages(CONTENTS, 'artifact_no', PAGE_ROWS, PAGE_BYTES))
      yield rows.map((row) => this.#contentOf(row));
  }

  #contentOf(row: Row): CopiedContent {
    const no = integerOf(row, 'artifact_no', 'a content');
    const what = `content ${no}`;
    const [case_id, key_no] = [row['case_id'] ?? null, integerOf(row, 'key_no', what)];
    const isErased = case_id !== null && key_no > 0 && 'erased_below' in this.#keys.get(case_id, key_no);
    const stored = isErased ? null : storedBytesOf(row);
    if (!isErased && stored === null) throw tamperedError(`${what} is missing`);
    return {
      no,
      case_id,
      sha256: hexOf(row, 'sha256', what),
      kind: textOf(row, 'kind', what),
      byte_size: integerOf(row, 'byte_size', what),
      key_no,
      stored,
    };
  }

  async *blocks(): CopyPages<CopiedBlock> {
    for await (const rows of this.#pages(LOG_PAGE, 'log_index', PAGE_BLOCKS, PAGE_BYTES, true))
      yield rows.map(toCopiedBlock);
  }

  async *trees(): CopyPages<CopiedTree> {
    for await (const rows of this.#pages(TREES, 'log_index', PAGE_ROWS)) {
      yield rows.map((row) => ({
        tree_id: textOf(row, 'tree_id', 'a tree'),
        log_index: integerOf(row, 'log_index', 'a tree'),
        case_id: row['case_id'] ?? null,
        ended: row['ended'] === 't',
        unfinished: row['unfinished'] === 't',
        wake_at: row['wake_at'] ?? null,
      }));
    }
  }

  async *marks(): CopyPages<CopiedMark> {
    for (let [scope, name] = ['', '']; ;) {
      const rows = await this.#pool.read(MARKS, [scope, name, PAGE_ROWS]);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows.map(markOfRow);
      [scope, name] = [textOf(last, 'scope', 'a mark'), textOf(last, 'name', 'a mark')];
    }
  }

  async *ends(): CopyPages<CopiedEnd> {
    for await (const rows of this.#pages(RECORDED, 'recorded', PAGE_RECORDED)) {
      const trees = rows.map((row) => textOf(row, 'tree_id', 'a recorded tree'));
      const records = await this.#pool.read(RECORDS, [trees]);
      yield rows.map((row, at) => ({
        tree_id: trees[at] ?? '',
        seq: integerOf(row, 'seq', 'a recorded tree'),
        records: records.filter((record) => record['tree_id'] === trees[at]).map(toRecord),
      }));
    }
    for await (const rows of this.#pages(UNRECORDED, 'place', PAGE_ROWS))
      yield rows.map((row) => ({ tree_id: textOf(row, 'tree_id', 'an ended tree'), seq: null, records: [] }));
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** @param sql has the key of the first row as $1, and then the limits of the page */
  async *#pages(sql: string, key: string, ...limits: readonly unknown[]): CopyPages<Row> {
    for (let from = 0; ;) {
      const rows = await this.#pool.read(sql, [from, ...limits]);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      from = integerOf(last, key, 'a row') + 1;
    }
  }
}

const toRecord = (row: Row): CopiedEnd['records'][number] => ({
  run_id: textOf(row, 'run_id', 'a run record'),
  text: textOf(row, 'record', 'a run record'),
});

function toCopiedBlock(row: Row): CopiedBlock {
  const what = `the block at ${row['log_index'] ?? 'no log index'}`;
  return {
    tree_id: textOf(row, 'tree_id', what),
    seq: integerOf(row, 'seq', what),
    log_index: integerOf(row, 'log_index', what),
    types: textOf(row, 'types', what),
    texts: textOf(row, 'texts', what),
    leaf_hashes: hashesOf(row, 'leaf_hashes', what),
    contents: attachedContents(row, what),
  };
}

const EFFECTS = `SELECT d.run_id, p.host, p.pid, p.started, p.is_dead FROM leases d
  JOIN workers p ON p.worker_id = d.worker_id WHERE d.kind = 'effect' AND d.from_dead IS NOT TRUE`;
/** The contents from $1 on: at most $2, and no more after $3 bytes. */
const CONTENTS = `SELECT ${CONTENT_COLUMNS} FROM (
    SELECT n.artifact_no, sum(n.byte_size) OVER (ORDER BY n.artifact_no) - n.byte_size AS before
    FROM (SELECT artifact_no, byte_size FROM artifacts WHERE artifact_no >= $1 ORDER BY artifact_no LIMIT $2) AS n
  ) AS p JOIN artifacts a ON a.artifact_no = p.artifact_no WHERE p.before < $3 ORDER BY a.artifact_no`;
const TREES = `SELECT l.log_index, l.tree_id, t.case_id, t.ended, t.unfinished, t.wake_at
  FROM log l JOIN trees t ON t.tree_id = l.tree_id
  WHERE l.seq = 0 AND l.log_index >= $1 ORDER BY l.log_index LIMIT $2`;
const MARKS = `SELECT scope, name, seq, run_id, step_index, payload_sha256 FROM marks
  WHERE (scope, name) > ($1::text COLLATE "C", $2::text COLLATE "C") ORDER BY scope, name LIMIT $3`;
const RECORDED = `SELECT recorded, tree_id, seq FROM recorded_trees
  WHERE recorded >= $1 ORDER BY recorded LIMIT $2`;
const RECORDS = `SELECT tree_id, run_id, record FROM run_records WHERE tree_id = ANY ($1::text[])
  ORDER BY tree_id, run_id`;
const UNRECORDED = 'SELECT place, tree_id FROM unrecorded_trees WHERE place >= $1 ORDER BY place LIMIT $2';

// A backup, while workers write.

/** Commits insert blocks, and an integration does not. */
const STOP_COMMITS = 'LOCK TABLE blocks IN SHARE MODE';
/** The copy writes to a disk between two reads. */
const BEGIN_SNAPSHOT = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL idle_in_transaction_session_timeout = '10min'`;

/** A ledger that is about to be backed up. */
export interface PostgresBackupSource {
  /** For a sequencer. */
  readonly log: Pick<LogStore, 'head' | 'pending' | 'integrate'>;
  /**
   * Begins a snapshot in which nothing is pending. Commits wait meanwhile: for one run of `integrate`, which integrates
   * what is pending.
   */
  snapshot(integrate: () => Promise<void>): Promise<LedgerCopySource>;
  close(): Promise<void>;
}

export function openPostgresBackupSource({ keys, ...place }: PostgresCopySourceOptions): PostgresBackupSource {
  const pool = new ReaderPool({ ...place, readOnly: false });
  const reader = new PostgresReader(pool);
  return {
    log: {
      head: () => reader.head(),
      pending: (limit) => reader.pending(limit),
      integrate: (integration) => integrateAppends(pool, integration),
    },
    snapshot: async (integrate) => {
      const barrier = await pool.connect();
      try {
        await barrier.query(`BEGIN; ${STOP_COMMITS}`);
        await integrate();
        const snapshot = await SnapshotReader.begin({ ...place, readOnly: true });
        if ((await new PostgresReader(snapshot).pending(1)).length > 0) {
          await snapshot.close();
          throw tamperedError('appends are pending that were just integrated');
        }
        return new PostgresCopySource(snapshot, keys);
      } catch (cause) {
        throw asLedgerError(cause, 'the ledger cannot be backed up');
      } finally {
        await endTransaction(barrier);
      }
    },
    close: () => pool.close(),
  };
}

async function endTransaction(client: PoolClient): Promise<void> {
  try {
    await client.query('ROLLBACK');
    client.release();
  } catch {
    client.release(true);
  }
}

/** Reads in one transaction. If its connection is lost, every further read fails. */
class SnapshotReader extends ReaderPool {
  readonly #client: Client;

  private constructor(place: PostgresPlace, client: Client) {
    super(place);
    this.#client = client;
  }

  static async begin(place: PostgresPlace): Promise<SnapshotReader> {
    const client = await connect(place);
    await client.query(BEGIN_SNAPSHOT);
    // The snapshot begins with the first query.
    await client.query('SELECT size FROM head');
    return new SnapshotReader(place, client);
  }

  override async send(statement: string | NamedStatement, values: readonly unknown[]): Promise<readonly Row[]> {
    return (await this.#client.query<Row>({ ...statementOf(statement), values: toParameters(values) })).rows;
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#client.end();
  }
}

// Reads a ledger in PostgreSQL that workers are writing, as of one moment at which nothing is pending.

import type { Client, PoolClient } from 'pg';
import type { LedgerCopySource } from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogStore } from '../../../engine/ports/ledger/log-store.js';
import { tamperedError } from '../../ledger/store-errors.js';
import { toParameters } from '../values/array-literal.js';
import { asLedgerError, connect, ReaderPool, type NamedStatement, type Row } from '../postgres-connection.js';
import { integrateAppends } from '../postgres-integrate.js';
import { PostgresReader } from '../postgres-reader.js';
import { copySourceOn, type PostgresCopySourceOptions } from './postgres-copy-source.js';

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
        return copySourceOn(snapshot, keys);
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

  private constructor(place: ConstructorParameters<typeof ReaderPool>[0], client: Client) {
    super(place);
    this.#client = client;
  }

  static async begin(place: ConstructorParameters<typeof ReaderPool>[0]): Promise<SnapshotReader> {
    const client = await connect(place);
    await client.query(BEGIN_SNAPSHOT);
    // The snapshot begins with the first query.
    await client.query('SELECT size FROM head');
    return new SnapshotReader(place, client);
  }

  override async send(statement: string | NamedStatement, values: readonly unknown[]): Promise<readonly Row[]> {
    const query = typeof statement === 'string' ? { text: statement } : statement;
    return (await this.#client.query<Row>({ ...query, values: toParameters(values) })).rows;
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#client.end();
  }
}

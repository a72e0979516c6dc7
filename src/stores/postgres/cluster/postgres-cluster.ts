// The list of workers of a ledger in PostgreSQL. It uses a connection of its own, so that a report does not wait for
// commits.

import type {
  ClusterDirectory,
  ClusterStatus,
  Installation,
  ClusterWorker,
  WorkerReport,
} from '../../../engine/ports/ledger/cluster.js';
import { tamperedError } from '../../ledger/store-errors.js';
import { ownIdentity } from '../../../system/process-identity.js';
import { checkSchemaName, ReaderPool, type PostgresPlace } from '../postgres-connection.js';
import { hasLedgerTables } from '../postgres-tables.js';
import { WORKER_LOCK } from '../postgres-schema.js';
import { ROTATION_COLUMNS } from '../workers/postgres-rotation.js';
import { integerOf, textOf, type Row } from '../postgres-values.js';

/** Where the ledger is. */
export type PostgresClusterOptions = Pick<PostgresPlace, 'url'> & Partial<Pick<PostgresPlace, 'schema' | 'readOnly'>>;

/** Opens the list of workers. Nothing is sent before the first call. @throws UsageError for an invalid schema name */
export function openPostgresCluster({
  url,
  schema = 'turnpike',
  readOnly = false,
}: PostgresClusterOptions): ClusterDirectory {
  checkSchemaName(schema);
  return new PostgresCluster({ url, schema, readOnly });
}

/** Whether the schema contains a ledger. @throws LedgerError LEDGER_UNAVAILABLE if the server cannot be used */
export async function hasPostgresLedger({ url, schema = 'turnpike' }: PostgresClusterOptions): Promise<boolean> {
  checkSchemaName(schema);
  const pool = new ReaderPool({ url, schema, readOnly: true });
  try {
    const [row] = await pool.read('SELECT to_regclass($1) IS NOT NULL AS found', [`${schema}.meta`]);
    return row?.['found'] === 't';
  } finally {
    await pool.close();
  }
}

const INSTALLATION = 'SELECT ledger_id, vkey, volume_id FROM installation';
const INSTALL = 'INSERT INTO installation (ledger_id, vkey, volume_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING';

const REPORT = `UPDATE workers SET version = $4, address = $5, volume_id = $6, overlay_epoch = $7, refuses = $8, later_trees = $9
  WHERE host = $1 AND pid = $2 AND started = $3 AND over_at IS NULL
    AND (version, address, volume_id, overlay_epoch, refuses, later_trees)
      IS DISTINCT FROM ($4::text, $5::text, $6::text, $7::integer, $8::text, $9::integer)`;

const IS_CONNECTED = `EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = ${WORKER_LOCK}
      AND l.objid = p.worker_id AND l.granted)`;
const ACTIVE = `SELECT FROM workers p
  WHERE p.host = $1 AND p.pid = $2 AND p.started = $3 AND p.over_at IS NULL AND ${IS_CONNECTED}`;

const UTC = (column: string): string => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const WORKERS = `SELECT p.worker_id, p.host, p.pid, ${UTC('p.joined_at')} AS joined_at, ${UTC('p.over_at')} AS over_at,
    p.version, p.refuses, p.later_trees, p.address, p.volume_id, p.overlay_epoch,
    ${IS_CONNECTED} AS connected,
    count(d.run_id) FILTER (WHERE d.kind = 'effect') AS effects,
    count(d.run_id) FILTER (WHERE d.kind = 'caller') AS callers
  FROM workers p LEFT JOIN leases d USING (worker_id)
  WHERE p.over_at IS NULL OR d.run_id IS NOT NULL
  GROUP BY p.worker_id ORDER BY p.worker_id`;

const AGE = (at: string): string =>
  `coalesce(greatest(0, floor(1000 * extract(epoch FROM clock_timestamp() - ${at}))), 0)::bigint`;
const DUE = `NOT ended AND wake_at COLLATE "C" <= ${UTC('clock_timestamp()')}`;

const FACTS = `SELECT (SELECT ledger_format FROM meta) AS format, (SELECT size FROM head) AS entries,
    (SELECT count(*) FROM pending) AS commits, (SELECT ${AGE('min(since)')} FROM pending) AS pending_ms,
    (SELECT count(*) FROM trees WHERE ${DUE}) AS due,
    (SELECT ${AGE('min(wake_at)::timestamptz')} FROM trees WHERE ${DUE}) AS due_ms,
    (SELECT floor(1000 * extract(epoch FROM max(replay_lag)))::bigint FROM pg_stat_replication) AS lag_ms`;

class PostgresCluster implements ClusterDirectory {
  readonly #pool: ReaderPool;
  readonly #schema: string;
  /** Whether the tables have the format of this version or another one is only read once. */
  #checked: Promise<unknown> | null = null;

  constructor(place: PostgresPlace) {
    this.#pool = new ReaderPool(place);
    this.#schema = place.schema;
  }

  async #read(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    this.#checked ??= hasLedgerTables((query) => this.#pool.read(query.text, query.values), this.#schema);
    try {
      await this.#checked;
    } catch (error) {
      // The server may only be away: the next query checks again.
      this.#checked = null;
      throw error;
    }
    return this.#pool.read(text, values);
  }

  async installation(): Promise<Installation | null> {
    const [row] = await this.#read(INSTALLATION);
    if (row === undefined) return null;
    const text = (column: string): string => textOf(row, column, 'the installation');
    return { ledger_id: text('ledger_id'), vkey: text('vkey'), volume_id: text('volume_id') };
  }

  async install({ ledger_id, vkey, volume_id }: Installation): Promise<Installation> {
    await this.#read(INSTALL, [ledger_id, vkey, volume_id]);
    const recorded = await this.installation();
    if (recorded === null) throw tamperedError('the table installation does not keep its row');
    return recorded;
  }

  async isRotating(): Promise<boolean> {
    const [row] = await this.#read(`SELECT ${ROTATION_COLUMNS} FROM meta`);
    return row?.['is_rotating'] === 't';
  }

  async report({ version, address, volume_id, overlay_epoch, refuses, later_trees }: WorkerReport): Promise<void> {
    const { host, pid, started } = ownIdentity();
    const report = [version, address, volume_id, overlay_epoch, refuses, later_trees];
    await this.#read(REPORT, [host, pid, started, ...report]);
  }

  async isActive(): Promise<boolean> {
    const { host, pid, started } = ownIdentity();
    return (await this.#read(ACTIVE, [host, pid, started])).length > 0;
  }

  async endLost(): Promise<void> {
    await this.#read('SELECT end_lost_workers(0)');
  }

  async status(): Promise<ClusterStatus> {
    const [rows, [facts]] = await Promise.all([this.#read(WORKERS), this.#read(FACTS)]);
    if (facts === undefined) throw tamperedError('the table meta is empty');
    const number = (column: string): number => integerOf(facts, column, 'the status of the cluster');
    return {
      format: number('format'),
      entries: number('entries'),
      workers: rows.map(toClusterWorker),
      pending: { commits: number('commits'), oldest_ms: number('pending_ms') },
      timers: { due: number('due'), oldest_ms: number('due_ms') },
      standby_lag_ms: facts['lag_ms'] === null ? null : number('lag_ms'),
    };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

function toClusterWorker(row: Row): ClusterWorker {
  const what = 'a worker';
  const text = (column: string): string | null => row[column] ?? null;
  return {
    worker_id: integerOf(row, 'worker_id', what),
    host: textOf(row, 'host', what),
    pid: integerOf(row, 'pid', what),
    joined_at: textOf(row, 'joined_at', what),
    over_at: text('over_at'),
    connected: row['connected'] === 't',
    version: text('version'),
    refuses: text('refuses'),
    later_trees: text('later_trees') === null ? 0 : integerOf(row, 'later_trees', what),
    address: text('address'),
    volume_id: text('volume_id'),
    overlay_epoch: text('overlay_epoch') === null ? null : integerOf(row, 'overlay_epoch', what),
    effects: integerOf(row, 'effects', what),
    callers: integerOf(row, 'callers', what),
  };
}

// Connections to a PostgreSQL server, and what the server must fulfil. Everything has a time limit: connecting, a
// statement, the wait for a lock, an idle transaction, and a missing response.

import type { Client, ClientConfig, Pool, PoolClient, QueryConfig } from 'pg';
import { LedgerError, usageError } from '../../core/errors.js';
import { tamperedError, unavailableError } from '../ledger/store-errors.js';
import { errorCode } from '../../system/error-code.js';
import { toParameters, type Row } from './postgres-values.js';

/** Maximum number of connections for reads. */
export const READERS_MAX = 4;
const CONNECT_MS = 5_000;
const STATEMENT_MS = 15_000;
const LOCK_MS = 5_000;
/** Longer than a statement: by then the server has cancelled the statement, if it is reachable at all. */
const ANSWER_MS = 20_000;
/** The server ends a transaction that is idle for this long. */
const IDLE_TRANSACTION_MS = 30_000;
/** The server notices a lost client after this time: one second of silence and two lost probes. */
const LOST_CLIENT_MS = 3_000;

/** Where a ledger is. */
export interface PostgresPlace {
  readonly url: string;
  /** The schema of the tables. */
  readonly schema: string;
  /** The server refuses writes of these connections. */
  readonly readOnly: boolean;
  /** Whether a ledger that was copied is locked all the same, to copy it again. Default: false. */
  readonly isCopySource?: boolean;
  /** Whether a worker keeps all other writers out. Default: false. */
  readonly isAlone?: boolean;
  /** The rotations of the key that this process knows. Default: they are not compared. */
  readonly rotations?: KnownRotations;
  /** The format of the tables. Default: that of this version. */
  readonly format?: number;
}

/** A process has read the key folder after this rotation of the key had begun. */
export interface KnownRotations {
  /** As the table meta states it. */
  number: string;
}

/** A statement that is sent often: each connection plans it once. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

export const statementOf = (statement: string | NamedStatement): QueryConfig =>
  typeof statement === 'string' ? { text: statement } : statement;

/** A client of the driver, or a connection of a pool. */
export interface Queryable {
  query(query: QueryConfig): Promise<{ readonly rows: unknown[] }>;
}

/** Sends a statement. @throws the error of the driver */
export type SendStatement = (query: QueryConfig) => Promise<readonly Row[]>;

/** Sends statements on a connection. */
export const sendOn =
  (client: Queryable): SendStatement =>
  async (query) =>
    (await client.query({ ...query, values: toParameters(query.values ?? []) })).rows as Row[];

/** Runs `work` in a transaction. @throws the error of `work`, with nothing committed, or the error of the driver */
export async function inTransaction<T>(send: SendStatement, work: () => Promise<T>): Promise<T> {
  await send({ text: 'BEGIN' });
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await send({ text: 'ROLLBACK' }).catch(() => undefined);
    throw error;
  }
  await send({ text: 'COMMIT' });
  return result;
}

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** @throws UsageError for a name that would need quotes in SQL */
export function checkSchemaName(schema: string): void {
  if (SCHEMA_NAME.test(schema) && !schema.startsWith('pg_')) return;
  throw usageError(`schema ${JSON.stringify(schema)}: use lower-case letters, digits and _, and no digit first`);
}

const configOf = (url: string): ClientConfig => ({
  connectionString: url,
  connectionTimeoutMillis: CONNECT_MS,
  query_timeout: ANSWER_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: LOST_CLIENT_MS,
  application_name: 'turnpike',
  // All values stay the text that the server sent: stored data is not trusted to have a type.
  types: { getTypeParser: () => (text: unknown) => text },
});

/** Opens a connection and sets it up. @throws LedgerError LEDGER_UNAVAILABLE */
export async function connect(place: PostgresPlace): Promise<Client> {
  const { Client } = await importPg();
  const client = new Client(configOf(place.url));
  // The loss of an idle connection would end the process. Its next use reports the error.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await setUp(client, place);
    return client;
  } catch (cause) {
    client.end().catch(() => undefined);
    throw asLedgerError(cause, 'the PostgreSQL server cannot be used');
  }
}

/** Connections for reads. A read that loses its connection is sent once more, on another one. */
export class ReaderPool {
  readonly #place: PostgresPlace;
  #pool: Promise<Pool> | null = null;
  #closed = false;
  /** Connections that are set up. */
  readonly #ready = new WeakSet<PoolClient>();

  constructor(place: PostgresPlace) {
    this.#place = place;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** @throws LedgerError LEDGER_UNAVAILABLE, or LEDGER_TAMPERED for damaged data */
  async read(statement: string | NamedStatement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    try {
      return await this.send(statement, values).catch((error: unknown) => {
        if (isServerAnswer(error) || error instanceof LedgerError) throw error;
        return this.send(statement, values);
      });
    } catch (cause) {
      throw asLedgerError(cause, 'the ledger cannot be read');
    }
  }

  /** Sends a statement once. @throws the error of the driver */
  async send(statement: string | NamedStatement, values: readonly unknown[]): Promise<readonly Row[]> {
    const client = await this.connect();
    try {
      const { rows } = await client.query<Row>({ ...statementOf(statement), values: toParameters(values) });
      client.release();
      return rows;
    } catch (error) {
      client.release(!isServerAnswer(error));
      throw error;
    }
  }

  async connect(): Promise<PoolClient> {
    if (this.#closed) throw closedError();
    this.#pool ??= openPool(this.#place.url);
    const client = await (await this.#pool).connect();
    if (this.#ready.has(client)) return client;
    try {
      await setUp(client, this.#place);
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#ready.add(client);
    return client;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pool = await this.#pool?.catch(() => null);
    this.#pool = null;
    await pool?.end();
  }
}

async function openPool(url: string): Promise<Pool> {
  const { Pool } = await importPg();
  const pool = new Pool({ ...configOf(url), max: READERS_MAX, allowExitOnIdle: true });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

export const closedError = (): LedgerError => unavailableError('the ledger was closed');

/**
 * Sets what the statements of this store rely on. The options of the connection string cannot be used for this, because
 * poolers refuse or drop them.
 */
async function setUp(client: Queryable, { schema, readOnly }: PostgresPlace): Promise<void> {
  const settings: readonly (readonly [string, string])[] = [
    // The schema for temporary tables comes last: otherwise its tables would replace those of the ledger.
    ['search_path', `${schema}, pg_temp`],
    ['statement_timeout', String(STATEMENT_MS)],
    ['lock_timeout', String(LOCK_MS)],
    ['idle_in_transaction_session_timeout', String(IDLE_TRANSACTION_MS)],
    ['tcp_keepalives_idle', '1'],
    ['tcp_keepalives_interval', '1'],
    ['tcp_keepalives_count', '2'],
    ['tcp_user_timeout', String(LOST_CLIENT_MS)],
    ['client_min_messages', 'warning'],
    ['bytea_output', 'hex'],
    ['default_transaction_isolation', 'read committed'],
    ['jit', 'off'],
    // Tables may be small when a plan is made and large when it is used. So every row is found through an index, in the
    // order of the index: a page must not read all rows after it.
    ['enable_seqscan', 'off'],
    ['enable_bitmapscan', 'off'],
    ['enable_hashjoin', 'off'],
    ['enable_mergejoin', 'off'],
    ['default_transaction_read_only', readOnly ? 'on' : 'off'],
  ];
  const text = 'SELECT set_config(s.name, s.value, false) FROM unnest($1::text[], $2::text[]) AS s (name, value)';
  await client.query({ text, values: [settings.map(([name]) => name), settings.map(([, value]) => value)] });
}

/** Loads the driver only if it is needed. */
async function importPg(): Promise<typeof import('pg')> {
  try {
    return await import('pg');
  } catch (cause) {
    const message = 'a ledger in PostgreSQL needs the package pg: install it next to this package';
    throw new LedgerError({ code: 'LEDGER_UNSUPPORTED', message, cause });
  }
}

/**
 * SQLSTATEs of an answer of the server: nothing was committed. Others leave the outcome open: a lost connection (08), a
 * server that ends the session (57P0), and statement_completion_unknown (40003).
 */
const ANSWERED = /^(?!08|57P0|40003)[0-9A-Z]{5}$/;

/** Whether the server answered that the statement has failed. */
export const isServerAnswer = (error: unknown): boolean => ANSWERED.test(errorCode(error));

/** Whether the same statement may succeed now: a deadlock, a serialization failure, or a lock that was not released. */
export const isTransient = (error: unknown): boolean => ['40001', '40P01', '55P03'].includes(errorCode(error));

const CORRUPTED = ['XX001', 'XX002'];
/** A table, a column or a function is missing. */
const CHANGED_SCHEMA = ['42P01', '42703', '42883', '3F000'];

/** The error of a statement as an error of the ledger. An error of ours stays the same. */
export function asLedgerError(cause: unknown, message: string): unknown {
  if (cause instanceof LedgerError) return cause;
  const code = errorCode(cause);
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (CORRUPTED.includes(code)) return tamperedError(`the database reports damaged data: ${reason}`);
  if (CHANGED_SCHEMA.includes(code)) return tamperedError(`the tables of the ledger were changed: ${reason}`);
  return unavailableError(`${message}: ${reason}`, cause);
}

// Requirements of a server, so that an acknowledged commit is durable and a lock belongs to one process.

/** PostgreSQL 14: the first version with lz4 for texts, and with a timeout for the end of a session. */
const VERSION_MIN = 140_000;

/** Settings without which an acknowledged commit can be lost. */
const DURABILITY = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

const SETTINGS = `SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS recovering`;

/** @throws LedgerError LEDGER_UNAVAILABLE: the message says what to change */
export async function checkServer(send: SendStatement, readOnly: boolean): Promise<void> {
  const [row] = await send({ text: SETTINGS });
  if (row === undefined) throw unavailableError('the PostgreSQL server does not report its settings');
  if (Number(row['version']) < VERSION_MIN) {
    throw unavailableError(`PostgreSQL ${String(row['version'])} is too old: use version 14 or later`);
  }
  if (row['encoding'] !== 'UTF8') {
    throw unavailableError(`the database has encoding ${String(row['encoding'])}: create it with encoding UTF8`);
  }
  if (readOnly) return;
  for (const name of DURABILITY) {
    if (row[name] !== 'off') continue;
    throw unavailableError(`${name} is off, so commits can be lost: set ${name} = on and reload the server`);
  }
  if (row['recovering'] !== 'f') {
    throw unavailableError('the server is a standby in recovery: connect to the primary, or open the ledger read-only');
  }
}

/**
 * A pooler that gives each transaction another session would lose the writer lock and the settings of the session.
 * While one connection has an open transaction, another one must have a session of its own, and keep it.
 * @throws LedgerError LEDGER_UNAVAILABLE
 */
export async function checkSessions(pool: ReaderPool): Promise<void> {
  const [one, other] = [await pool.connect(), await pool.connect()];
  try {
    const before = await sessionOf(sendOn(one));
    await other.query({ text: 'BEGIN' });
    const concurrent = await sessionOf(sendOn(other));
    const after = await sessionOf(sendOn(one));
    await other.query({ text: 'ROLLBACK' });
    if (before !== after || before === concurrent) throw pooledError();
    release([one, other], false);
  } catch (error) {
    release([one, other], true);
    throw error;
  }
}

const release = (clients: readonly PoolClient[], isBroken: boolean): void => {
  for (const client of clients) client.release(isBroken);
};

/** The backend and its start, because a process id can be used again. */
async function sessionOf(send: SendStatement): Promise<string> {
  const text = `SELECT pid || ' ' || backend_start AS session FROM pg_stat_activity WHERE pid = pg_backend_pid()`;
  const [row] = await send({ text });
  return row?.['session'] ?? '';
}

const pooledError = (): LedgerError =>
  unavailableError('a connection does not keep its session: connect directly, or set the pooler to session pooling');

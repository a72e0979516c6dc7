// Records in a PostgreSQL database. Everything has a time limit: the wait for a connection, a statement, an idle
// transaction, and a missing response.

import type { Pool, PoolClient } from 'pg';
import type { CompiledQuery } from 'kysely';
import { RecordsError } from '../../core/errors.js';
import { errorCode } from '../../system/error-code.js';
import { type SqlBackend, type SqlOutcome, builderFor, kysely, type SqlResult, type SqlSteps } from './sql-kysely.js';
import { RecordRefusedError } from './sql-errors.js';

const CONNECTIONS_MAX = 4;
const CONNECT_MS = 5_000;
const STATEMENT_MS = 10_000;
/** Longer than a statement: by then the server has cancelled the statement, if it is reachable at all. */
const ANSWER_MS = 15_000;
/** The server ends an idle transaction of a dead process, so that others need not wait for it, in ms. */
const FORGOTTEN_MS = 10_000;

/**
 * SQLSTATEs of a COMMIT that certainly failed: a deferred constraint, a conflict. Except 40003,
 * statement_completion_unknown, which means the opposite; some databases with the same protocol report it.
 */
const NOT_COMMITTED = /^(?:23...|40(?!003)...)$/;
/** SQLSTATEs of a response of the server, as opposed to a lost connection. */
const ANSWERED = /^(?!08|57P0)[0-9A-Z]{5}$/;

export class PostgresBackend implements SqlBackend {
  readonly dialect = 'postgres';
  readonly #url: string;
  #pool: Promise<Pool> | null = null;
  #closed = false;
  /** Connections that have their session settings. */
  readonly #ready = new WeakSet<PoolClient>();

  constructor(url: string) {
    this.#url = url;
  }

  async transact<T>(steps: () => SqlSteps<T>, shouldCommit: (result: T) => boolean): Promise<SqlOutcome<T>> {
    let client: PoolClient | null = null;
    try {
      client = await this.#connect();
      await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
      const result = await runStepsAsync(steps(), createExecutor(client));
      if (shouldCommit(result)) return await commit(client, result);
      await rollBack(client);
      return { ended: 'certain', result };
    } catch (error) {
      // Nothing was committed: the error of a failed COMMIT does not get here.
      if (client !== null) await (isServerAnswer(error) ? rollBack(client) : dropConnection(client));
      return { ended: 'failed', error };
    }
  }

  async query<T>(steps: () => SqlSteps<T>): Promise<SqlOutcome<T>> {
    let client: PoolClient | null = null;
    try {
      client = await this.#connect();
      const result = await runStepsAsync(steps(), createExecutor(client));
      client.release();
      return { ended: 'certain', result };
    } catch (error) {
      client?.release(!isServerAnswer(error));
      return { ended: 'failed', error };
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pool = await this.#pool?.catch(() => null);
    this.#pool = null;
    await pool?.end();
  }

  async #connect(): Promise<PoolClient> {
    if (this.#closed) throw new RecordsError({ code: 'RECORDS_UNREACHABLE', message: 'the database was closed' });
    this.#pool ??= openPool(this.#url);
    const client = await (await this.#pool).connect();
    if (this.#ready.has(client)) return client;
    try {
      const setup = setUp();
      await client.query(setup.sql, [...setup.parameters]);
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#ready.add(client);
    return client;
  }
}

async function openPool(url: string): Promise<Pool> {
  const { Pool } = await importPg();
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    query_timeout: ANSWER_MS,
    idle_in_transaction_session_timeout: FORGOTTEN_MS,
    application_name: 'turnpike',
    allowExitOnIdle: true,
    // All values stay the text that the server sent: the target defines their types.
    types: { getTypeParser: () => (text: unknown) => text },
  });
  // The loss of an idle connection would end the process. Its next use reports the error.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Loads the driver only if it is needed. */
async function importPg(): Promise<typeof import('pg')> {
  try {
    return await import('pg');
  } catch (cause) {
    const message = 'records in PostgreSQL need the package pg: install it next to this package';
    throw new RecordsError({ code: 'RECORDS_UNREACHABLE', message, cause });
  }
}

/** Makes text formats independent of the server's settings, and acknowledged commits durable. */
function setUp(): CompiledQuery {
  const { sql } = kysely();
  return sql`select set_config('datestyle', 'ISO', false), set_config('extra_float_digits', '1', false),
    case when current_setting('synchronous_commit') in ('off', 'local')
      then set_config('synchronous_commit', 'on', false) end`.compile(builderFor('postgres'));
}

type QueryExecutor = (query: CompiledQuery) => Promise<SqlResult>;

const createExecutor =
  (client: PoolClient): QueryExecutor =>
  async ({ sql, parameters }) => {
    const { rows, rowCount } = await client.query<Record<string, unknown>>(sql, [...parameters]);
    return { rows, changes: rowCount ?? 0 };
  };

async function runStepsAsync<T>(steps: SqlSteps<T>, execute: QueryExecutor): Promise<T> {
  let step = steps.next();
  while (step.done !== true) step = steps.next(await execute(step.value));
  return step.value;
}

/** Commits. Without a response to the COMMIT, the outcome is unknown. */
async function commit<T>(client: PoolClient, result: T): Promise<SqlOutcome<T>> {
  try {
    const { command } = await client.query('COMMIT');
    client.release();
    // PostgreSQL answers ROLLBACK if a statement of the transaction had failed.
    if (command !== 'COMMIT') return { ended: 'failed', error: new Error('the transaction was rolled back') };
    return { ended: 'certain', result };
  } catch (error) {
    client.release(true);
    return { ended: NOT_COMMITTED.test(errorCode(error)) ? 'failed' : 'unsure', error };
  }
}

async function rollBack(client: PoolClient): Promise<void> {
  try {
    await client.query('ROLLBACK');
    client.release();
  } catch {
    client.release(true);
  }
}

/** Closes the connection; the server rolls back its transaction. */
function dropConnection(client: PoolClient): Promise<void> {
  client.release(true);
  return Promise.resolve();
}

/** Whether the connection is still usable: the server answered, or the error is ours and did not touch it. */
const isServerAnswer = (error: unknown): boolean =>
  ANSWERED.test(errorCode(error)) || error instanceof RecordRefusedError;

// What a server must fulfil, so that an acknowledged commit is durable and a lock belongs to one process.

import type { PoolClient } from 'pg';
import { LedgerError } from '../../core/errors.js';
import { unavailableError } from '../ledger/store-errors.js';
import type { Queryable, ReaderPool, Row } from './postgres-connection.js';

/** PostgreSQL 14: the first version with lz4 for texts, and with a timeout for the end of a session. */
const VERSION_MIN = 140_000;

/** Settings without which an acknowledged commit can be lost. */
const DURABILITY = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

const SETTINGS = `SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS recovering`;

/** @throws LedgerError LEDGER_UNAVAILABLE: the message says what to change */
export async function checkServer(client: Queryable, readOnly: boolean): Promise<void> {
  const [row] = (await client.query({ text: SETTINGS })).rows as Row[];
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
    const before = await sessionOf(one);
    await other.query({ text: 'BEGIN' });
    const concurrent = await sessionOf(other);
    const after = await sessionOf(one);
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
async function sessionOf(client: Queryable): Promise<string> {
  const text = `SELECT pid || ' ' || backend_start AS session FROM pg_stat_activity WHERE pid = pg_backend_pid()`;
  const [row] = (await client.query({ text })).rows as Row[];
  return row?.['session'] ?? '';
}

const pooledError = (): LedgerError =>
  unavailableError('a connection does not keep its session: connect directly, or set the pooler to session pooling');

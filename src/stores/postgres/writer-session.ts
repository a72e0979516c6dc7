// The session of a writer: one connection that holds the lock of the ledger, and on which all commits run. The only
// writer holds it exclusively, one of several workers shared. A worker that rotates the key holds it exclusively too.
//
//   S1. The lock belongs to the session. If the session is lost, so is the lock: the next statement opens a session,
//       ends the former one on the server, takes the lock again, and compares the epoch. So a statement of the former
//       session has ended, with or without effect, before the next one is sent.
//   S2. Only a session that holds the lock changes the epoch. So a statement that compares the epoch is safe.
//   S3. Statements are sent one at a time.
//   S4. A worker's session also holds the lock of the worker, shared. While it does, no other worker declares the
//       worker over. If that has happened before the session was restored, the worker has to join again.

import type { Client, QueryConfig } from 'pg';
import { LedgerError } from '../../core/errors.js';
import { unavailableError, writerReplacedError } from '../ledger/store-errors.js';
import type { ProcessIdentity } from '../../system/process-identity.js';
import { toParameters, type Row } from './postgres-values.js';
import { requireNewestFormat } from '../ledger/migrations.js';
import { COPIED_TABLE, copiedError, FORMAT_VERSION } from './postgres-tables.js';
import { checkRotations, ROTATION_COLUMNS } from './workers/postgres-rotation.js';
import { WORKER_LOCK } from './postgres-schema.js';
import {
  asLedgerError,
  connect,
  inTransaction,
  isServerAnswer,
  type PostgresPlace,
  type SendStatement,
} from './postgres-connection.js';

/** The first number of the advisory lock; the second is the table meta of the ledger. */
const LOCK_CLASS = 0x54504b4c;
const LOCK_KEY = `${LOCK_CLASS}, 'meta'::regclass::oid::integer`;
/** Whether this is the only writer, or one of several workers. */
export type LockMode = 'exclusive' | 'shared';

const TRY_LOCK = {
  exclusive: `SELECT pg_try_advisory_lock(${LOCK_KEY}) AS locked`,
  shared: `SELECT pg_try_advisory_lock_shared(${LOCK_KEY}) AS locked`,
} as const;
const TRY_WORKER_LOCK = `SELECT pg_try_advisory_lock_shared(${WORKER_LOCK}, $1) AS locked`;
const ADD_WORKER = `INSERT INTO workers (host, pid, started, backend_pid)
  VALUES ($1, $2, $3, pg_backend_pid()) RETURNING worker_id`;
const RESUME_WORKER = `UPDATE workers SET backend_pid = pg_backend_pid()
  WHERE worker_id = $1 AND over_at IS NULL RETURNING worker_id`;
/** The former worker of this process: nothing of it is in flight any more. */
const END_WORKER = `UPDATE workers SET over_at = coalesce(over_at, clock_timestamp()), is_dead = true
  WHERE worker_id = $1`;
/** The first number of the advisory lock of the worker that integrates. */
const LEADER_CLASS = 0x54504c44;
const TRY_LEADER_LOCK = `SELECT pg_try_advisory_lock(${LEADER_CLASS}, 'meta'::regclass::oid::integer) AS locked`;
const READ_META = `SELECT epoch, ledger_format, to_regclass('${COPIED_TABLE}') IS NOT NULL AS copied, ${ROTATION_COLUMNS} FROM meta`;
const RELEASE_LOCKS = 'SELECT pg_advisory_unlock_all()';

/** How long a former session may take to end, in ms. */
const END_MS = 3_000;
const END_SESSION = `SELECT pg_terminate_backend(pid, ${END_MS}) FROM pg_stat_activity
  WHERE pid = $1 AND backend_start = $2::timestamptz`;
const OWN_SESSION = `SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()`;

interface Session {
  readonly client: Client;
  /** Identifies the session on the server. */
  readonly pid: string;
  readonly backend_start: string;
  isLost: boolean;
  /** Whether it holds the lock of the worker that integrates. */
  isLeading: boolean;
}

export class WriterSession {
  readonly #place: PostgresPlace;
  readonly mode: LockMode;
  #session: Session;
  #epoch: string | null = null;
  /** The number of the worker; null before it joins, and for the only writer. */
  #workerId: string | null = null;
  /** The worker that the next one replaces. */
  #former: string | null = null;
  #closed = false;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(place: PostgresPlace, session: Session, mode: LockMode) {
    this.#place = place;
    this.mode = mode;
    this.#session = session;
  }

  /** Opens a session and takes the lock. @throws LedgerError LEDGER_LOCKED, LEDGER_UNAVAILABLE */
  static async lock(place: PostgresPlace, mode: LockMode): Promise<WriterSession> {
    const session = await openSession(place);
    try {
      if (!(await tryLock(session, writerLock(place, mode)))) throw lockedError();
      // After the lock: a copy holds it until the ledger is marked as copied.
      const [meta] = await sendInSession(session, { text: READ_META });
      checkMeta(place, meta);
      return new WriterSession(place, session, mode);
    } catch (error) {
      await endClient(session);
      throw error;
    }
  }

  /** Starts the next epoch. @throws LedgerError LEDGER_UNAVAILABLE */
  async beginEpoch(): Promise<number> {
    // The former epoch of this writer ends here, even if another writer has ended it already.
    this.#epoch = null;
    const epoch = await this.exclusively(async (send) => {
      const [row] = await send({ text: 'UPDATE meta SET epoch = epoch + 1 RETURNING epoch' });
      return row?.['epoch'] ?? null;
    });
    if (epoch === null) throw unavailableError('the table meta is empty: restore the database from a backup');
    this.#epoch = epoch;
    return Number(epoch);
  }

  /** From now on a restored session does not continue as the worker. */
  leaveAsWorker(): void {
    this.#former = this.#workerId ?? this.#former;
    this.#workerId = null;
  }

  /**
   * Becomes a new worker; the former one of this session is over. @returns its number, and the epoch of the ledger
   * @throws LedgerError LEDGER_UNAVAILABLE
   */
  async joinAsWorker({ host, pid, started }: ProcessIdentity): Promise<{ worker_id: number; epoch: number }> {
    this.leaveAsWorker();
    const former = this.#former;
    const { worker_id, epoch } = await this.exclusively((send) =>
      inTransaction(send, async () => {
        if (former !== null) await send({ text: END_WORKER, values: [former] });
        // No other worker sees the row before its lock is held.
        const [added] = await send({ text: ADD_WORKER, values: [host, pid, started] });
        await send({ text: TRY_WORKER_LOCK, values: [added?.['worker_id']] });
        const [meta] = await send({ text: 'SELECT epoch FROM meta' });
        return { worker_id: added?.['worker_id'] ?? null, epoch: meta?.['epoch'] ?? null };
      }),
    );
    if (worker_id === null || epoch === null)
      throw unavailableError('the table meta is empty: restore the database from a backup');
    this.#workerId = worker_id;
    this.#epoch = epoch;
    return { worker_id: Number(worker_id), epoch: Number(epoch) };
  }

  /**
   * Runs `work` on the session, which it restores first if it was lost. No other statement runs meanwhile.
   * @throws the error of the driver, or LedgerError LEDGER_CONFLICT if another writer has taken the ledger
   */
  exclusively<T>(work: (send: SendStatement) => Promise<T>): Promise<T> {
    const run = this.#last.then(async () => {
      if (this.#closed) throw unavailableError('the ledger was closed');
      if (this.#session.isLost) await this.#restore();
      const session = this.#session;
      return work((query) => sendInSession(session, query));
    });
    this.#last = run.catch(() => undefined);
    return run;
  }

  /** See `SharedLedgerStore.lead`. The lock belongs to the session. @throws the error of the driver */
  async lead(): Promise<boolean> {
    if (this.#session.isLeading && !this.#session.isLost) return true;
    return this.exclusively(async (send) => {
      const [row] = await send({ text: TRY_LEADER_LOCK });
      this.#session.isLeading = row?.['locked'] === 't';
      return this.#session.isLeading;
    });
  }

  /** Checks that the session works, and restores it otherwise. */
  async check(): Promise<void> {
    try {
      await this.exclusively((send) => send({ text: 'ROLLBACK' }));
    } catch (error) {
      if (error instanceof LedgerError) throw error;
      await this.exclusively((send) => send({ text: 'SELECT 1' }));
    }
  }

  /** Releases the lock and closes the connection, after the statements that were sent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
    // The server would release it too, but only after the connection was closed here.
    if (!this.#session.isLost) await sendInSession(this.#session, { text: RELEASE_LOCKS }).catch(() => undefined);
    await endClient(this.#session);
  }

  async #restore(): Promise<void> {
    // Without the lock another process may have written what the copy does not have.
    if (this.#place.isCopySource === true)
      throw unavailableError('the lock of the source was lost: start the copy again');
    const former = this.#session;
    const session = await openSession(this.#place);
    try {
      await sendInSession(session, { text: END_SESSION, values: [former.pid, former.backend_start] });
      const isLocked = await tryLock(session, writerLock(this.#place, this.mode));
      const [meta] = await sendInSession(session, { text: READ_META });
      if (isLocked) checkMeta(this.#place, meta);
      if (!isLocked && this.#epoch === null) throw lockedError();
      if (!isLocked) throw writerReplacedError('another process holds the writer lock');
      if (this.#epoch !== null && meta?.['epoch'] !== this.#epoch) {
        throw writerReplacedError(`epoch ${this.#epoch} is over`);
      }
      if (this.#workerId !== null) await resumeWorker(session, this.#workerId);
      this.#session = session;
      await endClient(former);
    } catch (error) {
      await endClient(session);
      throw error;
    }
  }
}

async function openSession(place: PostgresPlace): Promise<Session> {
  const client = await connect(place);
  try {
    const [row] = (await client.query<Row>(OWN_SESSION)).rows;
    const session = {
      client,
      pid: row?.['pid'] ?? '0',
      backend_start: row?.['backend_start'] ?? '',
      isLost: false,
      isLeading: false,
    };
    client.on('error', () => (session.isLost = true));
    client.on('end', () => (session.isLost = true));
    return session;
  } catch (cause) {
    client.end().catch(() => undefined);
    throw asLedgerError(cause, 'the PostgreSQL server cannot be used');
  }
}

async function sendInSession(session: Session, query: QueryConfig): Promise<readonly Row[]> {
  try {
    return (await session.client.query<Row>({ ...query, values: toParameters(query.values ?? []) })).rows;
  } catch (error) {
    // The connection may still bring the answer of this statement: it must not be taken for that of the next one.
    if (!isServerAnswer(error)) session.isLost = true;
    throw error;
  }
}

/** A worker that is alone holds the lock as the only writer does. */
const writerLock = ({ isAlone = false }: PostgresPlace, mode: LockMode): string =>
  TRY_LOCK[isAlone ? 'exclusive' : mode];

async function tryLock(session: Session, text: string, values: readonly string[] = []): Promise<boolean> {
  const [row] = await sendInSession(session, { text, values: [...values] });
  return row?.['locked'] === 't';
}

/**
 * Checks what may have changed while this process had no lock.
 * @throws LedgerError LEDGER_COPIED; LEDGER_CONFLICT if the key was rotated; LEDGER_UNAVAILABLE if a newer version has
 * migrated the tables, or a rotation is not finished
 */
function checkMeta(place: PostgresPlace, meta: Row | undefined): void {
  if (meta?.['copied'] === 't' && place.isCopySource !== true) throw copiedError(place.schema);
  if (meta !== undefined) requireNewestFormat(place.format ?? FORMAT_VERSION, Number(meta['ledger_format']));
  checkRotations(place, meta);
}

/** @throws LedgerError LEDGER_CONFLICT if another worker has declared the worker over, or does so now */
async function resumeWorker(session: Session, worker_id: string): Promise<void> {
  const isLocked = await tryLock(session, TRY_WORKER_LOCK, [worker_id]);
  const [resumed] = await sendInSession(session, { text: RESUME_WORKER, values: [worker_id] });
  if (!isLocked || resumed === undefined) throw writerReplacedError(`worker ${worker_id} is over`);
}

/** Does not wait for a server that cannot be reached. */
async function endClient({ client, isLost }: Session): Promise<void> {
  const ended = client.end().catch(() => undefined);
  if (!isLost) await ended;
}

const lockedError = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_LOCKED', message: 'another process writes to this ledger: close it first' });

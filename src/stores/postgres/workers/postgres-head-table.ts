// The newest signed head of each worker, in a table of another database than the ledger's (decision 0044): a failover
// of the ledger's server does not set it back, and workers with copies of the key folder see each other's heads in it.
//
//   L1. One row for each worker and ledger, which a write only raises. A trigger refuses an older head.
//   L2. The highest row counts. One that the key of the ledger has not signed is an error, not a missing head.
//   L3. A worker that joins, and one that restarts, reads the table or is refused. One that runs does not wait for it:
//       at most one write is in flight, of the newest head, and a failed one is repeated. Until it succeeds, `problem`
//       says so.

import { setTimeout as delay } from 'node:timers/promises';
import { LedgerError } from '../../../core/errors.js';
import type { ExternalHead, HeadSeal, LogHead } from '../../../engine/ports/ledger/ledger-store.js';
import type { HeadPlace, HeadTable, SignedHeadStore } from '../../../engine/ports/ledger/shared-store.js';
import { tamperedError, unavailableError } from '../../ledger/store-errors.js';
import { checkServer, ReaderPool, sendOn, type SendStatement } from '../postgres-connection.js';
import type { Row } from '../postgres-values.js';
import { inMigration } from '../postgres-tables.js';

/** Of its own, so that the database may have a ledger too. Statements name it: a pooler may lose the search path. */
const SCHEMA = 'turnpike_heads';
/** Minimum time between the starts of two writes, in ms. */
const PAUSE_MS = 20;
/** Time until a failed write is repeated, in ms. */
const RETRY_MS = 1_000;
const PAGE_ROWS = 100;

// Not to_regclass: a session may remember that there was no table, until its transaction ends.
const EXISTS = `SELECT count(*) AS found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = '${SCHEMA}' AND c.relname = 'heads'`;
const TABLES = `
  CREATE SCHEMA IF NOT EXISTS ${SCHEMA};
  CREATE TABLE ${SCHEMA}.heads (
    ledger text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    note text NOT NULL CHECK (octet_length(note) <= 1024),
    PRIMARY KEY (ledger, worker)
  );
  CREATE INDEX heads_by_size ON ${SCHEMA}.heads (ledger, size, worker);
  CREATE FUNCTION ${SCHEMA}.refuse_older() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.size < OLD.size THEN RAISE EXCEPTION 'an older head cannot replace a newer one'; END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER guard_heads BEFORE UPDATE ON ${SCHEMA}.heads FOR EACH ROW
    EXECUTE FUNCTION ${SCHEMA}.refuse_older();`;

const SERVER = 'SELECT system_identifier AS server FROM pg_control_system()';

// Rows that were put aside have a dot in the name of their worker.
const HIGHEST = `SELECT worker, size, note FROM ${SCHEMA}.heads WHERE ledger = $1 AND strpos(worker, '.') = 0
  ORDER BY size DESC, worker DESC LIMIT 1`;
const ABOVE = `SELECT worker, size, note FROM ${SCHEMA}.heads WHERE ledger = $1 AND strpos(worker, '.') = 0
  AND (size, worker) > ($2, $3) ORDER BY size, worker LIMIT ${PAGE_ROWS}`;
const RAISE = `INSERT INTO ${SCHEMA}.heads AS h (ledger, worker, size, note) VALUES ($1, $2, $3, $4)
  ON CONFLICT (ledger, worker) DO UPDATE SET size = excluded.size, note = excluded.note WHERE h.size < excluded.size`;
// A worker of the lost log may have written its row again since it was put aside.
const PUT_ASIDE = `UPDATE ${SCHEMA}.heads AS h SET worker = worker || $2 ||
  (SELECT CASE count(*) WHEN 0 THEN '' ELSE '.' || count(*) END FROM ${SCHEMA}.heads AS o
    WHERE o.ledger = h.ledger AND starts_with(o.worker, h.worker || $2))
  WHERE ledger = $1 AND worker = ANY ($3::text[]) RETURNING worker`;

/**
 * Opens the table, and makes it if it is missing; a reader does not.
 * @param ledger a connection to the database of the ledger
 * @throws LedgerError LEDGER_UNAVAILABLE if the database cannot be used now; LEDGER_CONFLICT if it is on the server of
 * the ledger, or on a copy of that
 */
export async function openHeadTable(url: string, ledger: SendStatement, readOnly: boolean): Promise<PostgresHeadTable> {
  const pool = new ReaderPool({ url, schema: SCHEMA, readOnly });
  try {
    const client = await pool.connect();
    try {
      const send = sendOn(client);
      if ((await serverOf(send)) === (await serverOf(ledger))) throw sameServerError();
      await checkServer(send, readOnly);
      if (!readOnly && !(await isThere(send)))
        await inMigration(send, SCHEMA, async () => {
          if (!(await isThere(send))) await send({ text: TABLES });
        });
      return new PostgresHeadTable(pool, await isThere(send));
    } finally {
      client.release();
    }
  } catch (cause) {
    await pool.close();
    throw cause instanceof LedgerError && cause.code === 'LEDGER_CONFLICT' ? cause : awayError(cause);
  }
}

async function isThere(send: SendStatement): Promise<boolean> {
  const [row] = await send({ text: EXISTS });
  return row?.['found'] === '1';
}

/** What a server, its standbys and its base backups have in common. */
async function serverOf(send: SendStatement): Promise<string> {
  const [row] = await send({ text: SERVER });
  return row?.['server'] ?? '';
}

type Head = Pick<LogHead, 'size' | 'root'>;

/** The table, until it is closed. */
export class PostgresHeadTable implements HeadTable {
  readonly #pool: ReaderPool;
  /** False for a reader whose table no worker has made yet. */
  readonly #exists: boolean;

  constructor(pool: ReaderPool, exists: boolean) {
    this.#pool = pool;
    this.#exists = exists;
  }

  open(place: HeadPlace, seal: HeadSeal | null): SignedHeadStore {
    return new TableHeads(this, place, seal);
  }

  async putAside(
    ledger: string,
    end: string,
    seal: HeadSeal,
    isContained: (head: ExternalHead) => Promise<boolean>,
  ): Promise<readonly string[]> {
    const lost: string[] = [];
    for (let after = ['-1', '']; ;) {
      const rows = await this.#send(ABOVE, [ledger, ...after]);
      for (const row of rows) if (!(await isContained(headOf(row, seal)))) lost.push(row['worker'] ?? '');
      const last = rows.at(-1);
      if (last === undefined) break;
      after = [last['size'] ?? '', last['worker'] ?? ''];
    }
    // All at once: a head of the lost log that stayed would stop all workers.
    const rows = await this.#send(PUT_ASIDE, [ledger, `.${end}`, lost]);
    return rows.map((row) => `row ${row['worker'] ?? ''} of ${SCHEMA}.heads`);
  }

  async highest(ledger: string, seal: HeadSeal): Promise<ExternalHead | null> {
    const [row] = await this.#send(HIGHEST, [ledger]);
    return row === undefined ? null : headOf(row, seal);
  }

  async raise(ledger: string, worker: string, size: number, note: string): Promise<void> {
    await this.#send(RAISE, [ledger, worker, String(size), note]);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #send(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    if (!this.#exists) return [];
    try {
      return await this.#pool.send(text, values);
    } catch (cause) {
      throw awayError(cause);
    }
  }
}

/** The heads of a ledger in the table, for one worker. */
class TableHeads implements SignedHeadStore {
  readonly #table: PostgresHeadTable;
  readonly #place: HeadPlace;
  #seal: HeadSeal | null;
  #newest: Head | null = null;
  #written: Head | null = null;
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  #hasFailed = false;
  readonly #closing = new AbortController();

  constructor(table: PostgresHeadTable, place: HeadPlace, seal: HeadSeal | null) {
    this.#table = table;
    this.#place = place;
    this.#seal = seal;
  }

  sealWith(seal: HeadSeal): void {
    this.#seal = seal;
  }

  replaceSeal(seal: HeadSeal): void {
    this.#seal = seal;
  }

  async read(): Promise<ExternalHead | null> {
    const ledger = this.#place.ledger();
    // Without a key nothing was ever signed.
    return ledger === null || this.#seal === null ? null : this.#table.highest(ledger, this.#seal);
  }

  /** L3. Resolves at once. */
  write(head: Head): Promise<void> {
    if (head.size >= (this.#newest?.size ?? 0)) this.#newest = head;
    if (!this.#isWriting) this.#writing = this.#writeAll();
    return Promise.resolve();
  }

  readonly problem = (): string | null =>
    this.#hasFailed
      ? 'heads cannot be written to the other database: after a failover its loss would not be seen'
      : null;

  reopen(): Promise<void> {
    return Promise.resolve();
  }

  /** Writes the last head, or leaves it unwritten if the database is away. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    try {
      while (await this.#writeNewest()) await this.#pause(this.#hasFailed ? RETRY_MS : PAUSE_MS);
    } finally {
      this.#isWriting = false;
    }
  }

  /** @returns whether to go on: the head was written, or the write failed, and a newer head or a repetition follows */
  async #writeNewest(): Promise<boolean> {
    const [head, ledger, seal] = [this.#newest, this.#place.ledger(), this.#seal];
    if (head === null || head === this.#written || ledger === null || seal === null) return false;
    try {
      await this.#table.raise(ledger, this.#place.worker, head.size, seal.seal(head));
      this.#written = head;
      this.#hasFailed = false;
      return true;
    } catch {
      this.#hasFailed = true;
      return !this.#closing.signal.aborted;
    }
  }

  /** Ends early when the worker closes. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
  }
}

/** L2. @throws LedgerError LEDGER_TAMPERED */
function headOf(row: Row, seal: HeadSeal): ExternalHead {
  const head = seal.open(row['note'] ?? '');
  if (head !== null && String(head.size) === row['size']) return head;
  throw tamperedError(
    `the row of worker ${row['worker'] ?? ''} in ${SCHEMA}.heads has a head that the key of this ledger has not ` +
      'signed: if the key was rotated, copy the key folder again; otherwise find out who wrote the row, and remove it',
  );
}

const sameServerError = (): LedgerError =>
  new LedgerError({
    code: 'LEDGER_CONFLICT',
    message:
      'the database of heads is on the server of the ledger, or on a copy of it, so a failover would set both back: ' +
      'name a database of another server (heads)',
  });

const awayError = (cause: unknown): LedgerError =>
  unavailableError(
    'the database of heads cannot be used, and without it no worker can see whether the ledger has lost entries: ' +
      `start it, or correct its URL (heads): ${cause instanceof Error ? cause.message : String(cause)}`,
    cause,
  );

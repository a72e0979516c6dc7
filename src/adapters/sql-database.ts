// Records outside the ledger's own database: in a SQLite file or in PostgreSQL, in tables that are the user's.

import type { TargetDefinition } from '../contract/catalogue.js';
import type { EffectResult } from '../contract/effect.js';
import { RecordsError, UsageError } from '../errors.js';
import type { RecordDatabase, RecordRead, RecordWrite } from '../ports/records.js';
import { settleOnce, writeOnce, type Verdict } from './sql-effects.js';
import type { SqlHome } from './sql-home.js';
import { builderFor, kysely, type SqlSteps } from './sql-kysely.js';
import { PostgresHome } from './sql-postgres.js';
import { readRecords, type RecordPlace } from './sql-records.js';
import { detailOf, failedBy, isTaken, isTimeout, UNKNOWN, unreadBy } from './sql-refusal.js';
import { SqliteHome } from './sql-sqlite.js';
import { EFFECTS, SqlStatements } from './sql-statements.js';
import { tablesOf } from './sql-table.js';
import { openTables } from './sql-tables.js';

/** An upsert that met another one on its way to the same new row finds it there when it comes again. */
const UPSERTS_MAX = 3;
/** So that of two processes that open a database one makes its tables. Any number; "TPLR". */
const OPENING = 0x54504c52;

export interface SqlDatabaseOptions {
  /**
   * `sqlite:PATH`, or a connection URL that begins with `postgres://` or `postgresql://`, for which the package `pg`
   * must be installed.
   */
  readonly url: string;
  /** Make the tables of targets that are not there, and the SQLite file. @default false */
  readonly create?: boolean;
}

/**
 * A database of records, which is connected to when it is opened.
 *
 * `failed` speaks of this attempt: after `unknown`, settle the write before it is tried again. Waits at most 2 s for
 * another process that writes to a SQLite file; in PostgreSQL 5 s for one of 4 connections, 10 s for a statement.
 * @throws UsageError for a URL of another kind
 */
export function sqlDatabase({ url, create = false }: SqlDatabaseOptions): RecordDatabase {
  if (/^postgres(?:ql)?:\/\//.test(url)) return new SqlRecords(new PostgresHome(url), create);
  const [, path = ''] = /^sqlite:([^:\0][^\0]*)$/.exec(url) ?? [];
  if (path !== '') return new SqlRecords(new SqliteHome(path, create), create);
  throw new UsageError({ code: 'USAGE', message: 'a database is sqlite:PATH or postgres://...' });
}

class SqlRecords implements RecordDatabase {
  readonly #home: SqlHome;
  readonly #create: boolean;
  #known: RecordPlace | null = null;

  constructor(home: SqlHome, create: boolean) {
    this.#home = home;
    this.#create = create;
  }

  async open(targets: readonly TargetDefinition[]): Promise<void> {
    const { place, statements } = this.#place();
    const tables = tablesOf(targets, place);
    const create = this.#create;
    function* steps(): SqlSteps<void> {
      if (place === 'postgres') yield lockOpening();
      // Before the targets, whose tables may refer to it in no way: it is ours and made wherever it is not.
      yield* openTables(statements, [EFFECTS], true);
      yield* openTables(statements, tables, create);
    }
    const outcome = await this.#home.transact(steps, () => true);
    if (outcome.ended === 'certain') return;
    if (outcome.error instanceof RecordsError) throw outcome.error;
    const message = `the database of records cannot be opened: ${detailOf(outcome.error)}`;
    throw new RecordsError({ code: 'RECORDS_UNREACHABLE', message, cause: outcome.error });
  }

  async write(write: RecordWrite): Promise<EffectResult> {
    for (let attempt = 1; ; attempt += 1) {
      const progress = { noted: false };
      const outcome = await this.#home.transact(() => writeOnce(this.#place(), write, progress), isKept);
      if (outcome.ended === 'certain') return outcome.result.result;
      if (outcome.ended === 'unsure') return UNKNOWN;
      if (write.mode === 'upsert' && isTaken(outcome.error) && attempt < UPSERTS_MAX) continue;
      // Somebody else is about to note this very effect: it is theirs to say what becomes of it.
      return !progress.noted && isTimeout(outcome.error) ? UNKNOWN : failedBy(outcome.error);
    }
  }

  async read(read: RecordRead): Promise<EffectResult> {
    const outcome = await this.#home.ask(() => readRecords(this.#place(), read));
    return outcome.ended === 'certain' ? outcome.result : unreadBy(outcome.error);
  }

  async settle(write: RecordWrite): Promise<EffectResult> {
    const outcome = await this.#home.transact(() => settleOnce(this.#place(), write), isKept);
    return outcome.ended === 'certain' ? outcome.result.result : UNKNOWN;
  }

  close(): Promise<void> {
    return this.#home.close();
  }

  #place(): RecordPlace {
    const { dialect } = this.#home;
    this.#known ??= { place: dialect, statements: new SqlStatements(dialect) };
    return this.#known;
  }
}

const isKept = ({ keep }: Verdict): boolean => keep;

function lockOpening() {
  return kysely().sql`select pg_advisory_xact_lock(${OPENING})`.compile(builderFor('postgres'));
}

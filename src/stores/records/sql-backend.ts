import type { SqlDialect, SqlSteps } from './sql-kysely.js';

/** The outcome of a transaction or query. `failed`: it changed nothing. `unsure`: it may have been committed. */
export type SqlOutcome<T> =
  { readonly ended: 'certain'; readonly result: T } | { readonly ended: 'failed' | 'unsure'; readonly error: unknown };

/** A database for records, connected on first use. None of its methods rejects. */
export interface SqlBackend {
  readonly dialect: SqlDialect;
  /** Runs one transaction, rolled back if `shouldCommit` returns false. It is durable when this resolves. */
  transact<T>(steps: () => SqlSteps<T>, shouldCommit: (result: T) => boolean): Promise<SqlOutcome<T>>;
  /** Runs the steps without a transaction. */
  query<T>(steps: () => SqlSteps<T>): Promise<SqlOutcome<T>>;
  close(): Promise<void>;
}

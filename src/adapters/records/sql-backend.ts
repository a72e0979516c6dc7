import type { SqlDialect, SqlSteps } from './sql-kysely.js';

/** What became of a transaction, or of a question. `failed`: nothing of it happened. `unsure`: it may have. */
export type SqlOutcome<T> =
  { readonly ended: 'certain'; readonly result: T } | { readonly ended: 'failed' | 'unsure'; readonly error: unknown };

/** A database that records are kept in. It is connected to when it is first needed; none of its methods rejects. */
export interface SqlBackend {
  readonly dialect: SqlDialect;
  /** One transaction, taken back where `keep` says no. It is durable when this resolves. */
  transact<T>(steps: () => SqlSteps<T>, shouldCommit: (result: T) => boolean): Promise<SqlOutcome<T>>;
  /** Without a transaction. */
  query<T>(steps: () => SqlSteps<T>): Promise<SqlOutcome<T>>;
  close(): Promise<void>;
}

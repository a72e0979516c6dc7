// Statements on the databases of records, and the query builder that compiles them. It is loaded with the first target:
// a service without records does not load it.

import { createRequire } from 'node:module';
import type { CompiledQuery, Dialect, Kysely } from 'kysely';

/** The databases that can store records. */
export type SqlDialect = 'sqlite' | 'postgres';

/** The value of a column as it is sent to the database. */
export type SqlValue = string | number | bigint | boolean | null;
/** Values by column name. */
export type SqlRow = Readonly<Record<string, SqlValue>>;
/** The result of one statement; rows are untrusted. */
export interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Number of inserted or changed rows. */
  readonly changes: number;
}

/**
 * A sequence of statements, in which each may depend on the result of the one before. The same steps run on a
 * synchronous database and on one over a network.
 */
export type SqlSteps<T> = Generator<CompiledQuery, T, SqlResult>;

/** Runs the steps on a synchronous database. */
export function runSteps<T>(steps: SqlSteps<T>, execute: (query: CompiledQuery) => SqlResult): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next(execute(step.value));
  return step.value;
}

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

/** Tables and columns are known only at run time, from the targets. */
type AnyTables = Record<string, Record<string, SqlValue>>;
export type SqlBuilder = Kysely<AnyTables>;

type KyselyModule = typeof import('kysely');

let kyselyModule: KyselyModule | null = null;

/** Loads the builder's module. Uses require, not import, because the ledger's own records are opened synchronously. */
export function kysely(): KyselyModule {
  kyselyModule ??= createRequire(import.meta.url)('kysely') as KyselyModule;
  return kyselyModule;
}

/** A builder that only compiles statements: the code that sends them must know the outcome of each COMMIT. */
export function builderFor(name: SqlDialect): SqlBuilder {
  const module = kysely();
  const [Adapter, Introspector, Compiler] =
    name === 'sqlite'
      ? [module.SqliteAdapter, module.SqliteIntrospector, module.SqliteQueryCompiler]
      : [module.PostgresAdapter, module.PostgresIntrospector, module.PostgresQueryCompiler];
  const dialect: Dialect = {
    createAdapter: () => new Adapter(),
    createDriver: () => new module.DummyDriver(),
    createIntrospector: (db) => new Introspector(db),
    createQueryCompiler: () => new Compiler(),
  };
  return new module.Kysely<AnyTables>({ dialect });
}

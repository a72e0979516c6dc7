// The query builder, loaded with the first target: a service without records does not load it.

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
  const { Kysely } = kysely();
  return new Kysely<AnyTables>({ dialect: name === 'sqlite' ? sqliteDialect() : postgresDialect() });
}

function sqliteDialect(): Dialect {
  const { DummyDriver, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } = kysely();
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

function postgresDialect(): Dialect {
  const { DummyDriver, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } = kysely();
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

// The query builder, loaded with the first target and not before: a service without records does without.

import { createRequire } from 'node:module';
import type { CompiledQuery, Dialect, Kysely } from 'kysely';

/** The databases that records can be kept in. */
export type SqlDialect = 'sqlite' | 'postgres';

/** What a column holds on its way to the database. */
export type SqlValue = string | number | bigint | boolean | null;
/** Column by column. */
export type SqlRow = Readonly<Record<string, SqlValue>>;
/** What a database answers to one statement; nothing of a row is trusted. */
export interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** How many rows it inserted or changed. */
  readonly changes: number;
}

/**
 * Statements one after the other, each made when the answer to the former is known. It is the same work for a database
 * that answers at once and for one that is asked over a network.
 */
export type SqlSteps<T> = Generator<CompiledQuery, T, SqlResult>;

/** Does the steps with a database that answers at once. */
export function runSteps<T>(steps: SqlSteps<T>, execute: (query: CompiledQuery) => SqlResult): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next(execute(step.value));
  return step.value;
}

/** Tables and columns are known only when targets are. */
type AnyTables = Record<string, Record<string, SqlValue>>;
export type SqlBuilder = Kysely<AnyTables>;

type KyselyModule = typeof import('kysely');

let kyselyModule: KyselyModule | null = null;

/** The builder's module. It is required and not imported, because the ledger's own records are opened at once. */
export function kysely(): KyselyModule {
  kyselyModule ??= createRequire(import.meta.url)('kysely') as KyselyModule;
  return kyselyModule;
}

/** A builder that only writes statements down: what sends them must know what became of each COMMIT. */
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

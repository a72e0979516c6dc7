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
export interface SqlAnswer {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** How many rows it inserted or changed. */
  readonly changes: number;
}

/**
 * Statements one after the other, each made when the answer to the former is known. It is the same work for a database
 * that answers at once and for one that is asked over a network.
 */
export type SqlSteps<T> = Generator<CompiledQuery, T, SqlAnswer>;

/** Does the steps with a database that answers at once. */
export function stepNow<T>(steps: SqlSteps<T>, ask: (query: CompiledQuery) => SqlAnswer): T {
  let turn = steps.next();
  while (turn.done !== true) turn = steps.next(ask(turn.value));
  return turn.value;
}

/** Tables and columns are known only when targets are. */
type Tables = Record<string, Record<string, SqlValue>>;
export type SqlBuilder = Kysely<Tables>;

type KyselyModule = typeof import('kysely');

let loaded: KyselyModule | null = null;

/** The builder's module. It is required and not imported, because the ledger's own records are opened at once. */
export function kysely(): KyselyModule {
  loaded ??= createRequire(import.meta.url)('kysely') as KyselyModule;
  return loaded;
}

/** A builder that only writes statements down: what sends them must know what became of each COMMIT. */
export function builderFor(name: SqlDialect): SqlBuilder {
  const { Kysely } = kysely();
  return new Kysely<Tables>({ dialect: name === 'sqlite' ? sqlite() : postgres() });
}

function sqlite(): Dialect {
  const { DummyDriver, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } = kysely();
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

function postgres(): Dialect {
  const { DummyDriver, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } = kysely();
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

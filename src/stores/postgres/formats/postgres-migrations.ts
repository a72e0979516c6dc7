// The formats of a ledger in PostgreSQL.

import { newestFormat, type Migration } from '../../ledger/migrations.js';
import type { Queryable } from '../postgres-connection.js';
import { createLedgerSql } from '../postgres-schema.js';

export type PostgresMigration = Migration<Queryable, Promise<void>>;

/**
 * The tables have one format more for each of these; `meta.ledger_format` records it. Workers of the format before go
 * on meanwhile, so a migration must leave them what they use.
 */
export const MIGRATIONS: readonly PostgresMigration[] = [
  {
    from: 0,
    to: 1,
    apply: async (client) => {
      await client.query({ text: createLedgerSql() });
    },
  },
];

/** The format of the tables that this version writes. */
export const FORMAT_VERSION = newestFormat(MIGRATIONS);

// The entry `turnpike/postgres` of the package. It needs the package pg.

export { createPostgresStore, openPostgresStore, type PostgresStoreOptions } from './postgres-ledger-store.js';
export type { SharedLedgerStore } from '../../engine/ports/ledger/shared-store.js';

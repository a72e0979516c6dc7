import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { createMemoryDatabase } from '../sqlite/sqlite-database.js';
import { SqliteLedgerStore } from '../sqlite/sqlite-ledger-store.js';
import type { LedgerMedium } from '../sqlite/sqlite-medium.js';

/**
 * Creates an empty ledger in memory, for tests and for services that store none: an SQLite database that ends with its
 * store. It fulfils the contract of the port except durability. It writes no file, so it encrypts nothing and has no
 * records.
 * @throws LedgerError LEDGER_UNAVAILABLE where the installed SQLite binding would crash this process
 */
export const memoryStore = (): LedgerStore => new SqliteLedgerStore(memoryMedium());

function memoryMedium(): LedgerMedium {
  const connection = { db: createMemoryDatabase(), isCurrent: () => true };
  return {
    name: 'the ledger in memory',
    access: 'write',
    storage: null,
    connect: () => connection,
    // Closing the connection would end the ledger.
    reconnect: () => connection,
    // No other process has this memory.
    lock: () => ({ release: () => undefined }),
    checkWritable: () => undefined,
    tidy: () => undefined,
  };
}

import type { ArchiveTable } from '../../engine/ports/ledger/archives.js';
import { unavailableError } from '../ledger/store-errors.js';

const NO_ARCHIVES =
  'a ledger in PostgreSQL cannot be archived: its entries stay in the database. ' +
  'Write evidence with `turnpike ledger export`, or copy the ledger to SQLite with `turnpike home copy` and archive it';

/** The archives of a ledger whose rows are never removed. @param answer rejects once the store is closed */
export const noArchives = (answer: <T>(value: T) => Promise<T>): ArchiveTable => ({
  obstacle: NO_ARCHIVES,
  parts: () => answer([]),
  tree: () => answer(null),
  treeCount: () => answer(0),
  hasCase: () => answer(false),
  remove: () => Promise.reject(unavailableError(NO_ARCHIVES)),
  tidy: () => answer(undefined),
});

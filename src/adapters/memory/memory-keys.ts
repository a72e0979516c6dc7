// What the store in memory is made with.

import { LedgerError } from '../../errors.js';

/** Not `slice`: a Buffer's shares its memory. */
export const copyBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);

export const scopedKey = (scope: string | null, id: string): string => JSON.stringify([scope, id]);

export const hasRepeated = (keys: readonly string[], known: ReadonlyMap<string, unknown>): boolean =>
  new Set(keys).size < keys.length || keys.some((key) => known.has(key));

export const memoryUnavailableError = (message: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message });

export const memoryWriterReplacedError = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_CONFLICT', message: `another writer has moved the ledger on: ${why}` });

export const memoryNotWriterError = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_CONFLICT', message: 'this store is not the writer: acquire it first' });

// What the SQLite store says where it writes nothing.

import { InvariantError, LedgerError } from '../../errors.js';

export const unavailableError = (message: string, cause?: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });

export const writerReplacedError = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_CONFLICT', message: `another writer has moved the ledger on: ${why}` });

export const notWriterError = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_CONFLICT', message: 'this store is not the writer: acquire it first' });

export const duplicateMarkError = (): InvariantError =>
  new InvariantError('a proposal or an input is marked already: a mark never changes');

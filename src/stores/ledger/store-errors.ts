// Errors of both ledger stores: failed and refused writes, marks, tampering, archived entries.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { InvariantError, LedgerError } from '../../core/errors.js';

export const unavailableError = (message: string, cause?: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message, cause });

export const writerReplacedError = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_CONFLICT', message: `another writer has moved the ledger on: ${why}` });

export const notWriterError = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_CONFLICT', message: 'this store is not the writer: acquire it first' });

export const duplicateMarkError = (): InvariantError =>
  new InvariantError('a proposal or an input is marked already: a mark never changes');

export const tamperedError = (message: string): LedgerError => new LedgerError({ code: 'LEDGER_TAMPERED', message });

export const archivedEntryError = (log_index: number, size: number): LedgerError =>
  archivedError(`entry ${nameInLedger(log_index)} is archived: the log continues at entry ${nameInLedger(size)}`);

export const archivedTreeError = (tree_id: string): LedgerError =>
  archivedError(`${tree_id} is archived: its entries are in an archive file, no longer in this ledger`);

export const archivedContentError = (sha256: string): LedgerError =>
  archivedError(`the content ${sha256} is not in this ledger, and may be in an archive file`);

const archivedError = (message: string): LedgerError => new LedgerError({ code: 'LEDGER_ARCHIVED', message });

export const straddlingError = (size: number, tree_id: string): InvariantError =>
  new InvariantError(`the boundary ${size} does not fall between trees: ${tree_id} is on the wrong side`);

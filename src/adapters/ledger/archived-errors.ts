// What a store says of something that it has no more, because it is in an archive file.

import { InvariantError, LedgerError } from '../../errors.js';

export const archivedEntryError = (log_index: number, size: number): LedgerError =>
  archivedError(`entry ${log_index} is archived: the log goes on from entry ${size}`);

export const archivedTreeError = (tree_id: string): LedgerError =>
  archivedError(`${tree_id} is archived: its entries are in an archive file, and no more in this ledger`);

export const archivedContentError = (sha256: string): LedgerError =>
  archivedError(`the content ${sha256} is not in this ledger, and may be in an archive file`);

const archivedError = (message: string): LedgerError => new LedgerError({ code: 'LEDGER_ARCHIVED', message });

export const straddlingError = (size: number, tree_id: string): InvariantError =>
  new InvariantError(`the boundary ${size} does not fall between trees: ${tree_id} is on the wrong side`);

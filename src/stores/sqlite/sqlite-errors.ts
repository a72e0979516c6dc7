import { LedgerError } from '../../core/errors.js';
import { NotAFile } from '../../system/files/open-file.js';
import { errorCode } from '../../system/error-code.js';

/** Includes SQLITE_ERROR: our statements never change, so if one is wrong, the table was changed. */
const TAMPERED = /^SQLITE_(?:CORRUPT|NOTADB|ERROR)/;

/** Maps an SQLite error to a LedgerError; returns every other error unchanged. */
export function asLedgerError(cause: unknown, message: string): unknown {
  const code = errorCode(cause);
  if (!code.startsWith('SQLITE_') && !(cause instanceof NotAFile)) return cause;
  return new LedgerError({ code: TAMPERED.test(code) ? 'LEDGER_TAMPERED' : 'LEDGER_UNAVAILABLE', message, cause });
}

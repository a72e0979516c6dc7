// Whether a process may write that has read the key folder before: it may not once the key was rotated since.

import { LedgerError } from '../../../core/errors.js';
import { unavailableError } from '../../ledger/store-errors.js';
import type { KnownRotations, PostgresPlace, Queryable, Row } from '../postgres-connection.js';

/** Columns of a query of the table meta. */
export const ROTATION_COLUMNS = 'rotations, is_rotating';

/** The rotations that have begun so far. */
export async function readRotations(client: Queryable): Promise<KnownRotations> {
  const [row] = (await client.query({ text: `SELECT ${ROTATION_COLUMNS} FROM meta` })).rows as Row[];
  return { number: row?.['rotations'] ?? '0' };
}

/**
 * @param meta the columns `ROTATION_COLUMNS`, read under the writer lock
 * @throws LedgerError LEDGER_CONFLICT if the key was rotated; LEDGER_UNAVAILABLE while a rotation is not finished
 */
export function checkRotations({ isAlone = false, rotations }: PostgresPlace, meta: Row | undefined): void {
  if (rotations !== undefined && meta?.['rotations'] !== rotations.number) throw rotatedError();
  if (meta?.['is_rotating'] === 't' && !isAlone) throw unfinishedError();
}

const rotatedError = (): LedgerError =>
  new LedgerError({
    code: 'LEDGER_CONFLICT',
    message:
      'the key of the ledger was rotated after this process had read it: start the process again, with the key folder ' +
      'of the ledger as it is now',
  });

const unfinishedError = (): LedgerError =>
  unavailableError(
    'a rotation of the key of the ledger is not finished: start a command or a worker that writes, which finishes it, ' +
      'or open the store with `alone: true`',
  );

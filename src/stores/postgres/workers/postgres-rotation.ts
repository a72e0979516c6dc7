// How a rotation of the ledger's key keeps all other writers out (decision 0022).
//
//   K1. It needs the writer lock alone, so that no worker signs with the old key.
//   K2. `is_rotating` is durable before the key history can name the new key, and ends when everything is finished.
//       Meanwhile only a process that is alone becomes a writer: it finishes what an interrupted rotation has left.
//   K3. `rotations` counts the beginnings. A process that has read the key folder before one of them is refused, also
//       when it restores a lost session.

import { LedgerError, usageError } from '../../../core/errors.js';
import type { RotationGate } from '../../../engine/ports/ledger/ledger-store.js';
import { unavailableError } from '../../ledger/store-errors.js';
import { inTransaction, type KnownRotations, type PostgresPlace, type SendStatement } from '../postgres-connection.js';
import type { Row } from '../postgres-values.js';

const BEGIN_ROTATION = 'UPDATE meta SET rotations = rotations + 1, is_rotating = true RETURNING rotations';
const SET_KEY = 'UPDATE installation SET vkey = $1 WHERE vkey <> $1';
const END_ROTATION = 'UPDATE meta SET is_rotating = false WHERE is_rotating';

/** Runs statements on the session of the writer. */
type OnSession = <T>(work: (send: SendStatement) => Promise<T>) => Promise<T>;

/** See `RotationGate`. */
export const rotationGate = (onSession: OnSession, place: PostgresPlace): RotationGate => ({
  isAlone: place.isAlone === true,
  begin: async () => {
    requireAlone(place);
    await onSession((send) => beginRotation(send, place));
  },
  end: async (vkey) => {
    requireAlone(place);
    await onSession((send) => endRotation(send, vkey));
  },
});

/** K2, K3. */
async function beginRotation(send: SendStatement, { rotations }: PostgresPlace): Promise<void> {
  const [row] = await send({ text: BEGIN_ROTATION });
  if (rotations !== undefined) rotations.number = row?.['rotations'] ?? rotations.number;
}

/** Records the key in use, and lets others write again. */
async function endRotation(send: SendStatement, vkey: string): Promise<void> {
  const [meta] = await send({ text: 'SELECT rotations FROM meta' });
  if (meta?.['rotations'] === '0') return;
  await inTransaction(send, async () => {
    await send({ text: SET_KEY, values: [vkey] });
    await send({ text: END_ROTATION });
  });
}

/** K1. @throws UsageError for a worker that is not alone */
function requireAlone({ isAlone }: PostgresPlace): void {
  if (isAlone === true) return;
  throw usageError(
    'this key is rotated while no other process can write: stop all workers, and run `turnpike keys rotate --signing`, ' +
      'or open the store with `alone: true`',
  );
}

// K3: whether a process may write that has read the key folder before.

/** Columns of a query of the table meta. */
export const ROTATION_COLUMNS = 'rotations, is_rotating';

/** The rotations that have begun so far. */
export async function readRotations(send: SendStatement): Promise<KnownRotations> {
  const [row] = await send({ text: `SELECT ${ROTATION_COLUMNS} FROM meta` });
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

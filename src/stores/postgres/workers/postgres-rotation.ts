// How a rotation of the ledger's key keeps all other writers out (decision 0022).
//
//   K1. It needs the writer lock alone, so that no worker signs with the old key.
//   K2. `is_rotating` is durable before the key history can name the new key, and ends when everything is finished.
//       Meanwhile only a process that is alone becomes a writer: it finishes what an interrupted rotation has left.
//   K3. `rotations` counts the beginnings. A process that has read the key folder before one of them is refused, also
//       when it restores a lost session.

import { usageError } from '../../../core/errors.js';
import type { RotationGate } from '../../../engine/ports/ledger/ledger-store.js';
import type { PostgresPlace } from '../postgres-connection.js';
import { inTransaction, type SendStatement } from '../writer-session.js';

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

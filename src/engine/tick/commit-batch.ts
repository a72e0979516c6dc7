import { LedgerError } from '../../core/errors.js';
import type { CommitMeter } from '../tree-engine.js';
import type { Batch, CommitResult, LedgerStore } from '../ports/ledger/ledger-store.js';

/** Maximum number of times to send one batch. */
export const SENDS_MAX = 5;

/** Whether the store could not tell if it has committed. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof LedgerError && error.code === 'LEDGER_COMMIT_UNKNOWN';

/**
 * Commits a batch. If the store cannot tell whether it has committed, sends the same batch again: decisions are never
 * made twice, and the store recognizes a batch that it already has.
 * @throws LedgerError as `commit` does; LEDGER_COMMIT_UNKNOWN after the last send
 */
export async function commitBatch(
  store: Pick<LedgerStore, 'commit'>,
  batch: Batch,
  meter?: CommitMeter,
): Promise<CommitResult> {
  meter?.prepare(batch);
  const result = await sendUntilKnown(() => store.commit(batch));
  meter?.onCommitted(batch);
  return result;
}

/** Sends again while the outcome is unknown. @throws LedgerError as `send` does; the last one too if still unknown */
export async function sendUntilKnown<T>(send: () => Promise<T>): Promise<T> {
  for (let sends = 1; ; sends += 1) {
    try {
      return await send();
    } catch (error) {
      if (sends === SENDS_MAX || !isOutcomeUnknown(error)) throw error;
    }
  }
}

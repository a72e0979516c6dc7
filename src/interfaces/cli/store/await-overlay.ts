// Waits until a change of the emergency overlay is in force in every worker.

import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterDirectory, ClusterWorker } from '../../../engine/ports/ledger/cluster.js';

/** How long to wait, in ms. Workers report every second, and a lost one is declared over after a few seconds. */
export const ACKNOWLEDGE_MS = 30_000;
const POLL_MS = 100;

/** The workers that are not over and have not reported this epoch, or a later one. */
export const withoutEpoch = (workers: readonly ClusterWorker[], epoch: number): readonly ClusterWorker[] =>
  workers.filter(({ over_at, overlay_epoch }) => over_at === null && (overlay_epoch ?? 0) < epoch);

/**
 * Waits until every worker has reported the epoch, or is over. A worker that has lost its session is declared over.
 * @returns the workers that have not within `ACKNOWLEDGE_MS`
 * @throws LedgerError LEDGER_UNAVAILABLE
 */
export async function awaitOverlay(
  cluster: Pick<ClusterDirectory, 'status' | 'endLost'>,
  epoch: number,
  waitMs = ACKNOWLEDGE_MS,
): Promise<readonly ClusterWorker[]> {
  for (let waited = 0; ; waited += POLL_MS) {
    await cluster.endLost();
    const missing = withoutEpoch((await cluster.status()).workers, epoch);
    if (missing.length === 0 || waited >= waitMs) return missing;
    await delay(POLL_MS);
  }
}

// Which restores of a ledger are acknowledged. All effects of a ledger that was restored from a backup are suspended
// until an operator acknowledges it (decision 0044): `SuspendableEffects` in effect-runner.ts. Effects may have
// happened after the backup, under idempotency keys that the restored ledger does not know: a caller that repeats its
// request would execute them a second time.
//
//   U1. The state is in the ledger itself: an input `restored` without a later `acknowledged` in the tree of that
//       restore. So no file can be lost or removed that ends a suspension.
//   U2. The engine reads it when it becomes the writer. Until then, and if it cannot be read, nothing is executed.

import { sha256 } from '../core/contract/hash.js';
import type { LedgerStore } from './ports/ledger/ledger-store.js';

/** The number of drawn characters in the id of a run tree. */
const ID_CHARS = 21;

/** The input ids of the two records of a restore in its tree. */
export const RESTORED = 'restored' as const;
export const ACKNOWLEDGED = 'acknowledged' as const;

/** The tree that records the n-th restore in the history of a log. Its id follows from the number. */
export const restoreTreeId = (lineage: number): string => ledgerEventTreeId(`turnpike restore ${lineage}`);

/** The tree that records an event of the whole ledger, which its text names. */
export const ledgerEventTreeId = (text: string): string =>
  `run_${Buffer.from(sha256(text), 'hex').toString('base64url').replaceAll('-', '_').slice(0, ID_CHARS)}`;

/** The restores in the history of a log. */
interface RestoreHistory {
  /** How often the ledger was restored. */
  readonly restores: number;
  /** The first restore without an acknowledgement; null if all are acknowledged. */
  readonly unacknowledged: number | null;
}

/** @throws LedgerError */
export async function readRestoreHistory(store: Pick<LedgerStore, 'marks'>): Promise<RestoreHistory> {
  let unacknowledged: number | null = null;
  for (let lineage = 1; ; lineage += 1) {
    const tree_id = restoreTreeId(lineage);
    const ids = [RESTORED, ACKNOWLEDGED].map((input_id) => ({ tree_id, input_id }));
    const [restored, acknowledged] = await store.marks(ids);
    if (restored == null) return { restores: lineage - 1, unacknowledged };
    if (acknowledged == null) unacknowledged ??= lineage;
  }
}

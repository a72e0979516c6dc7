// The restores that a ledger records. They explain why a ledger does not continue an older checkpoint of itself.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { parseOwnJson } from '../../core/contract/json.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { InvariantError } from '../../core/errors.js';
import type { LedgerStore, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import { readRestoreHistory, RESTORED, restoreTreeId } from '../../engine/restore-history.js';
import type { NewInput } from '../../engine/tree-engine.js';

export type RestoreRecord = Extract<NewInput, { kind: 'restore' }>;

/** The facts of a recorded restore. */
export async function readRestoreRecord(
  store: Pick<LedgerStore, 'marks' | 'tree'>,
  tree_id: string,
): Promise<RestoreRecord> {
  const [mark] = await store.marks([{ tree_id, input_id: RESTORED }]);
  for await (const { text } of store.tree(tree_id, mark?.seq ?? 0)) {
    const { body } = parseOwnJson(text) as Entry;
    if (!('kind' in body) || body.kind !== 'restore') break;
    const { kind, run_id, input_id, event, lineage, kept, lost, backup_sha256, actor, role_id } = body;
    return { kind, run_id, input_id, event, lineage, kept, lost, backup_sha256, actor, role_id };
  }
  throw new InvariantError(`the tree ${tree_id} does not contain the restore that its mark names`);
}

/**
 * Why a ledger does not continue an older checkpoint of itself: it was restored from a backup that ends before it.
 * @returns null if no restore explains it
 */
export async function explainFork(
  store: Pick<LedgerStore, 'marks' | 'tree'>,
  checkpoint: Pick<LogHead, 'size' | 'root'>,
): Promise<string | null> {
  const { restores } = await readRestoreHistory(store);
  for (let lineage = 1; lineage <= restores; lineage += 1) {
    const tree_id = restoreTreeId(lineage);
    const { kept, backup_sha256 } = await readRestoreRecord(store, tree_id);
    if (kept.size >= checkpoint.size) continue;
    const how = backup_sha256 === null ? 'has lost entries in a failover, after' : 'was restored from a backup of';
    return (
      `this ledger ${how} ${kept.size} entries (restore ${lineage}, recorded in ${tree_id}): ` +
      `it does not have the entries ${nameInLedger(kept.size)} to ${nameInLedger(checkpoint.size - 1)} of the checkpoint`
    );
  }
  return null;
}

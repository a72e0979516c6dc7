// The decisions that one entry of a ledger records or belongs to.

import { requireContent } from '../../core/ledger/require-content.js';
import { readContentToFold } from '../../kernel/fold.js';
import type { ReplayEntry, ReplaySource } from '../../kernel/replay/replay.js';
import { DecisionFold } from './decision-fold.js';
import type { RecordedDecision } from './recorded-decision.js';

export interface EntryDecisions {
  /** Whether the tree has a matching entry. */
  readonly found: boolean;
  /** The decision that the entry records; if it records no decision, all decisions of the same input. */
  readonly decisions: readonly RecordedDecision[];
}

/**
 * Folds a tree up to an entry and returns the decisions of its input. Awaits `pause` between entries, so that a service
 * can process other requests.
 * @throws LedgerError LEDGER_TAMPERED, or LEDGER_ERASED if content that the fold needs is withheld or erased
 */
export async function readDecisionsAt(
  source: Pick<ReplaySource, 'tree' | 'artifactsOf'>,
  tree_id: string,
  isEntry: (place: Pick<ReplayEntry, 'seq' | 'log_index'>) => boolean,
  pause: () => Promise<void> | undefined = () => undefined,
): Promise<EntryDecisions> {
  const fold = new DecisionFold(tree_id);
  let [turnDecisions, found]: [RecordedDecision[], boolean] = [[], false];
  for await (const entry of source.tree(tree_id)) {
    if (entry.type === 'input') {
      if (found) break;
      turnDecisions = [];
    }
    const artifacts = requireContent(await readContentToFold(entry, source));
    const decision = fold.take(entry, artifacts);
    if (decision !== null) turnDecisions.push(decision);
    found ||= isEntry(entry);
    await pause();
  }
  if (!found) return { found, decisions: [] };
  const exact = turnDecisions.filter(isEntry);
  return { found, decisions: exact.length > 0 ? exact : turnDecisions };
}

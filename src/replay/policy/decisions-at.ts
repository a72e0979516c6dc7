// The decisions that one entry of a ledger is about.

import { needed } from '../../ledger/withheld.js';
import type { ReplayEntry, ReplaySource } from '../replay.js';
import { DecisionFold } from './collect.js';
import type { RecordedDecision } from './decision.js';

export interface DecisionsAt {
  /** Whether the tree has such an entry. */
  readonly found: boolean;
  /** The decision that the entry records; where it records none, those that came of the same input. */
  readonly decisions: readonly RecordedDecision[];
}

/**
 * Folds a tree up to an entry. `pause` is awaited between entries, so that others have their turns.
 * @throws LedgerError LEDGER_TAMPERED, and LEDGER_ERASED where content is needed that is not to be had
 */
export async function decisionsAt(
  source: Pick<ReplaySource, 'tree' | 'artifactsOf'>,
  tree_id: string,
  isIt: (place: Pick<ReplayEntry, 'seq' | 'log_index'>) => boolean,
  pause: () => Promise<void> | undefined = () => undefined,
): Promise<DecisionsAt> {
  const fold = new DecisionFold(tree_id);
  let [of, found]: [RecordedDecision[], boolean] = [[], false];
  for await (const entry of source.tree(tree_id)) {
    if (entry.type === 'input') {
      if (found) break;
      of = [];
    }
    const artifacts = entry.type === 'input' ? needed(await source.artifactsOf(entry)) : [];
    const decision = fold.take(entry, artifacts);
    if (decision !== null) of.push(decision);
    found ||= isIt(entry);
    await pause();
  }
  if (!found) return { found, decisions: [] };
  const exact = of.filter(isIt);
  return { found, decisions: exact.length > 0 ? exact : of };
}

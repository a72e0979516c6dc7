// What a replay of a file has found, for the page: a proof over hashes does not repeat any decision.

import { archivedText, nameInLedger } from '../../core/contract/entry-name.js';
import type { ReplayedInfo } from '../../core/contract/inspection/inspection.js';
import type { ReplayReport, UnrecomputedTree } from '../../kernel/replay/replay.js';

/** How many reasons are listed. */
const NOTES_MAX = 20;

export function toReplayedInfo({ verdict, difference, not_recomputed = [], archived }: ReplayReport): ReplayedInfo {
  if (difference !== null) {
    const place =
      difference.log_index === null ? 'after the last entry' : `at entry ${nameInLedger(difference.log_index)}`;
    return { verdict, notes: [`the decisions differ ${place}: ${difference.rule}`] };
  }
  if (verdict === 'nothing') return { verdict, notes: ['there is no input to replay'] };
  const trees = new Map<string, number>();
  for (const tree of not_recomputed) trees.set(reasonOf(tree), (trees.get(reasonOf(tree)) ?? 0) + 1);
  const notes = [...trees].map(([why, count]) => `${count === 1 ? '1 run tree' : `${count} run trees`}: ${why}`);
  if (archived !== undefined) notes.unshift(archivedText(archived));
  return { verdict, notes: notes.slice(0, NOTES_MAX) };
}

const reasonOf = ({ withheld, needs }: UnrecomputedTree): string =>
  needs ?? (withheld === 'erased' ? 'content was erased with its case' : 'a lane withholds content');

import { expect, test } from '@jest/globals';
import { Fold } from '../../src/kernel/fold.js';
import { proposal, TreeDriver } from '../fixtures/tree.js';

/** Folds the record of a tree. @returns the first difference, by its rule and place, or null */
function foldOf({ decisions, tree_id }: TreeDriver): { rule: string; seq: number } | null {
  const fold = new Fold(tree_id);
  for (const { entries, artifacts } of decisions) {
    for (const { entry, text } of entries) {
      const brought = entry.type === 'input' ? artifacts : [];
      const applied = fold.apply({ seq: entry.seq, text }, brought);
      if ('difference' in applied) return { rule: applied.difference.rule, seq: applied.difference.seq };
    }
  }
  return null;
}

test('C19: folding reveals an earlier proposal id that the store was made to forget', () => {
  const driver = new TreeDriver().ready();
  const again = proposal('THINK', {});
  driver.propose(again);
  expect(foldOf(driver)).toBeNull();
  const { seq } = driver.tree.head;
  driver.propose(again, null);
  expect(foldOf(driver)).toEqual({ rule: 'seen.differs', seq });
});

test('C19: folding reveals a new proposal id that the store was made to know', () => {
  const driver = new TreeDriver().ready();
  const { seq } = driver.tree.head;
  driver.propose(proposal('THINK', {}), {
    step_index: 1,
    run_id: `${driver.tree_id}.1`,
    payload_sha256: '0'.repeat(64),
    outcome: null,
    error_code: null,
    response: null,
  });
  expect(foldOf(driver)).toEqual({ rule: 'seen.differs', seq });
});

import { expect, test } from '@jest/globals';
import { Fold } from '../../src/kernel/fold.js';
import { proposal, TreeDriver } from '../fixtures/tree.js';

/** Folds what a tree has recorded. @returns the first difference, by its rule and place, or null */
function foldOf({ decisions, tree_id }: TreeDriver): { rule: string; seq: number } | null {
  const fold = new Fold(tree_id);
  for (const { entries, artifacts } of decisions) {
    for (const { entry, text } of entries) {
      const brought = entry.type === 'input' ? artifacts : [];
      const taken = fold.apply({ seq: entry.seq, text }, brought);
      if ('difference' in taken) return { rule: taken.difference.rule, seq: taken.difference.seq };
    }
  }
  return null;
}

test('C19: an id that was proposed before, and that somebody made the store forget, is found by folding', () => {
  const driver = new TreeDriver().ready();
  const again = proposal('THINK', {});
  driver.propose(again);
  expect(foldOf(driver)).toBeNull();
  const { seq } = driver.tree.head;
  driver.propose(again, null);
  expect(foldOf(driver)).toEqual({ rule: 'seen.differs', seq });
});

test('C19: an id that is said to have been proposed before, and was not, is found by folding', () => {
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

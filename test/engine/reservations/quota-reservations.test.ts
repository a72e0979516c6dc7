// The engine's reservations for real trees: while an effect is pending, between attempts, and after a restart.

import { expect, test } from '@jest/globals';
import { QuotaReservations } from '../../../src/engine/reservations/quota-reservations.js';
import { nextRecoveryHint } from '../../../src/engine/trees/live-trees.js';
import { restoreTree, listDecidedChanges } from '../../../src/kernel/tree.js';
import { ABSENT, AGENT, editedPolicy, TreeDriver } from '../../fixtures/tree.js';

const RETRYING = editedPolicy({ actions: [['knobs:\n', 'retries: { max: 1, backoff_ms: 10000 }\nknobs:\n']] });
const EMPTY = { paths: [ABSENT], usage: { bytes: 0, files: 0 } };
const FIRST = `${AGENT}.1.1`;
const SECOND = `${AGENT}.2.1`;

/** A tree that has decided to write, and its reservations. */
function writing() {
  const driver = new TreeDriver({ policies: RETRYING }).ready();
  const reservations = new QuotaReservations();
  const follow = (...decisions: readonly Parameters<QuotaReservations['applyDecision']>[1][]): void => {
    for (const decision of decisions) reservations.applyDecision(driver.tree, decision);
  };
  follow(driver.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x'.repeat(9) }, EMPTY));
  return { driver, reservations, follow };
}

const keysOf = (driver: TreeDriver): string[] =>
  listDecidedChanges(driver.tree).map((change) => change.idempotency_key);

test('C82: a change counts as decided until its result arrives, and also while its step waits for a retry', () => {
  const { driver } = writing();
  expect(keysOf(driver)).toEqual([FIRST]);
  driver.failed(FIRST, 'IO_ERROR');
  // The key of the effect is that of its first attempt.
  expect(keysOf(driver)).toEqual([FIRST]);
  expect(nextRecoveryHint(driver.tree, null, []).recoveryHint).toMatchObject({ unfinished: true });
  driver.wait(10_000).wake();
  expect(keysOf(driver)).toEqual([FIRST]);
  driver.done(SECOND);
  expect(keysOf(driver)).toEqual([]);
});

test('C82: it stays reserved over a failed attempt, and not beyond the end of its step', () => {
  const { driver, reservations, follow } = writing();
  const [command] = driver.commands.filter(({ kind }) => kind === 'perform');
  const effect = command?.kind === 'perform' ? command.effect : null;
  expect(effect?.idempotency_key).toBe(FIRST);
  reservations.onEffectRun(effect!, { status: 'failed', cause: 'IO_ERROR', partial: null });
  follow(driver.failed(FIRST, 'IO_ERROR'));
  expect(reservations.size).toBe(1);
  follow(driver.wait(10_000).wake(), driver.failed(SECOND, 'IO_ERROR'));
  expect([reservations.size, driver.traces.length]).toEqual([0, 1]);
});

test('C82: a completed change is in the usage, and no longer reserved', () => {
  const { driver, reservations } = writing();
  const effects = driver.commands.flatMap((command) => (command.kind === 'perform' ? [command.effect] : []));
  for (const effect of effects) reservations.onEffectRun(effect, { status: 'done', json: '{}' });
  expect(reservations.size).toBe(0);
});

test('C82: a tree that fails in a tick loses its reservations of that tick', () => {
  const { driver, reservations } = writing();
  reservations.undo(driver.tree_id);
  expect(reservations.size).toBe(0);
  const later = writing();
  later.reservations.startTick();
  later.reservations.undo(later.driver.tree_id);
  expect(later.reservations.size).toBe(1);
});

test("C82: reservations in the batch stay when the tree's next input of the tick fails", () => {
  const { driver, reservations } = writing();
  reservations.join(driver.tree_id);
  reservations.undo(driver.tree_id);
  expect(reservations.size).toBe(1);
});

test.each(['pending', 'waiting for another attempt'])(
  "D8 C82: recovery reserves a tree's decided changes again, with the effect %s",
  (how) => {
    const { driver } = writing();
    if (how !== 'pending') driver.failed(FIRST, 'IO_ERROR');
    const folded = restoreTree(driver.tree.snapshot(), [...driver.openingMaterials()]);
    const reservations = new QuotaReservations();
    reservations.restore(folded);
    reservations.restore(folded);
    expect(reservations.size).toBe(1);
  },
);

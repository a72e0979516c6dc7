import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CounterAccount, type CountedStep } from '../../../../src/features/conditions/counters/counter-account.js';

type Change =
  | { readonly kind: 'add' | 'remove'; readonly at: number; readonly adds: number }
  | { readonly kind: 'read'; readonly window: string; readonly length: number; readonly at: number }
  | { readonly kind: 'drop'; readonly at: number };

const time = fc.integer({ min: 0, max: 200 });
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), at: time, adds: fc.integer({ min: -3, max: 5 }) }),
  fc.record({ kind: fc.constant('remove' as const), at: time, adds: fc.integer({ min: -3, max: 5 }) }),
  fc.record({
    kind: fc.constant('read' as const),
    window: fc.constantFrom('a', 'b', 'c'),
    length: fc.integer({ min: 1, max: 60 }),
    at: time,
  }),
  fc.record({ kind: fc.constant('drop' as const), at: time }),
);

test('sums are those of all steps in the window, in whatever order steps come, go and are read', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 120 }), (changes) => {
      const account = new CounterAccount();
      let steps: CountedStep[] = [];
      let dropped = -Infinity;
      for (const next of changes) {
        if (next.kind === 'add' && next.at >= dropped) {
          account.add(next);
          steps.push(next);
        } else if (next.kind === 'remove') {
          const index = steps.findIndex(({ at, adds }) => at === next.at && adds === next.adds);
          if (index < 0) continue;
          account.remove(next);
          steps.splice(index, 1);
        } else if (next.kind === 'drop') {
          dropped = Math.max(dropped, next.at);
          account.dropBefore(dropped);
          steps = steps.filter(({ at }) => at >= dropped);
        } else if (next.kind === 'read') {
          const from = Math.max(dropped, next.at - next.length);
          const expected = steps.reduce((sum, { at, adds }) => sum + (at >= from ? adds : 0), 0);
          expect(account.sumSince(next.window, from)).toBe(expected);
        }
      }
    }),
    { numRuns: 2_000, seed: 1 },
  );
});

test('the total keeps what was dropped', () => {
  const account = new CounterAccount();
  for (let at = 0; at < 10; at += 1) account.add({ at, adds: 2 });
  account.dropBefore(8);
  account.remove({ at: 1, adds: 2 });
  expect([account.total, account.sumSince('w', 0)]).toEqual([18, 4]);
});

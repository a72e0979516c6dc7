// The events of a tree, as plain JSON that fast-check can shrink: numbers choose among the possibilities at that point,
// so that a turn keeps a meaning when earlier ones are removed.

import fc from 'fast-check';
import { POLICY_NAMES, type PolicyName } from './policies.js';

export type Turn =
  | { t: 'agent'; role: number; lane: number; remote: boolean; limit: number }
  | { t: 'propose'; agent: number; act: number; n: number; path: number; tokens: number; again: boolean; same: boolean }
  | { t: 'facts'; pick: number; stands: number }
  | { t: 'answer'; pick: number; how: number }
  | { t: 'cancel' | 'end' | 'interrupt'; run: number }
  | { t: 'wake'; pick: number; early: boolean }
  | { t: 'start'; promotion: boolean; who: number; target: number; flags: number }
  | { t: 'vote'; asked: number; who: number; no: boolean; twist: number }
  | { t: 'resolve'; pick: number; done: boolean }
  | { t: 'overlay'; rule: number }
  | { t: 'wait'; s: number }
  | { t: 'stray'; what: number; run: number };

export interface Plot {
  readonly policy: PolicyName;
  /** 0: no case; 1: a case. */
  readonly cased: boolean;
  /** 0 to 2: a missing pin; others: none missing. */
  readonly problem: number;
  readonly scoped: boolean;
  /** The lane of the first agent. */
  readonly lane: number;
  readonly turns: readonly Turn[];
  /** Whether it is brought to its end. */
  readonly close: boolean;
}

const upTo = (max: number) => fc.nat({ max });
const of = <T extends object>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(shape) as fc.Arbitrary<T>;
const turn = (t: Turn['t'], shape: object, weight: number) => ({
  arbitrary: of({ t: fc.constant(t), ...shape }) as unknown as fc.Arbitrary<Turn>,
  weight,
});

/** Most actions can be repeated, for retries, approvals and unknown outcomes. */
const ACT = fc.oneof(
  { arbitrary: upTo(27), weight: 3 },
  { arbitrary: fc.constantFrom(1, 2, 3, 4, 5, 8, 9, 18), weight: 4 },
);
const WHO = fc.oneof({ arbitrary: upTo(2), weight: 3 }, { arbitrary: upTo(7), weight: 1 });
const PROPOSAL = { act: ACT, n: upTo(2), path: upTo(3), tokens: upTo(12), again: chance(14), same: chance(3) };

const TURN = fc.oneof(
  turn('answer', { pick: upTo(3), how: upTo(13) }, 20),
  turn('propose', { agent: upTo(3), ...PROPOSAL }, 28),
  turn('facts', { pick: upTo(3), stands: upTo(6) }, 8),
  turn('agent', { role: upTo(13), lane: upTo(15), remote: chance(4), limit: upTo(8) }, 4),
  turn('wake', { pick: upTo(3), early: chance(4) }, 9),
  turn('vote', { asked: upTo(1), who: WHO, no: chance(7), twist: upTo(20) }, 12),
  turn('start', { promotion: fc.boolean(), who: upTo(4), target: upTo(4), flags: upTo(9) }, 2),
  turn('overlay', { rule: upTo(17) }, 2),
  turn('resolve', { pick: upTo(3), done: fc.boolean() }, 2),
  turn('wait', { s: fc.constantFrom(1, 5, 61, 130, 400) }, 1),
  turn('stray', { what: upTo(5), run: upTo(9) }, 1),
  turn('end', { run: upTo(9) }, 1),
  turn('cancel', { run: upTo(9) }, 1),
  turn('interrupt', { run: upTo(9) }, 1),
);

/** True once in this number; shrinks to false. */
function chance(times: number): fc.Arbitrary<boolean> {
  return fc.nat({ max: times - 1 }).map((drawn) => drawn === times - 1);
}

export const PLOT: fc.Arbitrary<Plot> = fc.record({
  policy: fc.constantFrom(...POLICY_NAMES),
  cased: chance(16).map((none) => !none),
  problem: upTo(60).map((drawn) => 60 - drawn),
  scoped: chance(30),
  lane: upTo(6),
  turns: fc.array(TURN, { minLength: 1, maxLength: 48, size: 'max' }),
  close: chance(5).map((open) => !open),
});

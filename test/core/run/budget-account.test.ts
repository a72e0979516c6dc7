// Goal: no subtree of runs ever spends more than its root was granted, and all amounts add up. Method: literal cases
// for each function, then random trees of accounts whose runs act in any order, compared after each turn with exact
// sums. A failure prints its seed and path, and the shortest failing list of turns. To repeat it, pass the same seed
// and path as options of `fc.assert`.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../src/core/contract/json.js';
import {
  Account,
  AMOUNT_MAX,
  Amounts,
  BUDGET_KINDS,
  BudgetLimits,
  Limits,
  type BudgetKind,
} from '../../../src/core/contract/run/budget.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import { InvariantError } from '../../../src/core/errors.js';
import {
  amountsOf,
  availableLimits,
  charge,
  exhaustedKind,
  lackingKind,
  limitsOf,
  openAccount,
  reserve,
  settle,
  spend,
} from '../../../src/core/run/budget-account.js';
import { sized } from '../../fixtures/campaign.js';

const UNLIMITED = limitsOf({});
const account = (limit: Parameters<typeof limitsOf>[0]): Account => openAccount(limitsOf(limit));
const NO_AMOUNTS = [-1, 0.5, NaN, Infinity, -Infinity, AMOUNT_MAX + 1, '1', true, {}];

/** The result of `reserve` and `spend` if they do not refuse. */
function granted<T extends object>(outcome: T): Exclude<T, { readonly exhausted: BudgetKind }> {
  if ('exhausted' in outcome) throw new Error(`exhausted: ${JSON.stringify(outcome)}`);
  return outcome as Exclude<T, { readonly exhausted: BudgetKind }>;
}

describe('the schemas', () => {
  const all = (value: unknown) => Object.fromEntries(BUDGET_KINDS.map((kind) => [kind, value]));

  test.each([
    ['nothing', {}, true],
    ['one kind', { tokens: 5 }, true],
    ['0', all(0), true],
    ['the largest amount', all(9_007_199_254_740_991), true],
    ['more than the largest amount', { steps: 9_007_199_254_740_992 }, false],
    ['a negative amount', { steps: -1 }, false],
    ['a fraction', { steps: 0.5 }, false],
    ['null, for which a file omits the kind', { steps: null }, false],
    ['a string', { steps: '5' }, false],
    ['an unknown kind', { money: 5 }, false],
    ['a list', [], false],
  ])('a policy file with %s', (_what, value, expected) => {
    expect(isConforming(BudgetLimits, value)).toBe(expected);
  });

  test('limits and amounts have every kind, and only limits may be null', () => {
    expect(
      [all(0), all(AMOUNT_MAX)].map((value) => [isConforming(Limits, value), isConforming(Amounts, value)]),
    ).toEqual([
      [true, true],
      [true, true],
    ]);
    expect([isConforming(Limits, all(null)), isConforming(Amounts, all(null))]).toEqual([true, false]);
    for (const kind of BUDGET_KINDS) {
      const others = Object.fromEntries(Object.entries(all(1)).filter(([other]) => other !== kind));
      expect([isConforming(Limits, others), isConforming(Amounts, others)]).toEqual([false, false]);
    }
    expect([isConforming(Limits, { ...all(1), money: 1 }), isConforming(Amounts, { ...all(1), money: 1 })]).toEqual([
      false,
      false,
    ]);
  });
});

describe('limits of several sources', () => {
  test('a kind that no source names is unlimited', () => {
    expect(limitsOf({})).toEqual({ steps: null, tool_calls: null, wall_ms: null, bytes: null, tokens: null });
    expect(limitsOf({ steps: undefined, bytes: null }, { tokens: undefined })).toEqual(UNLIMITED);
  });

  test('the lower limit of each kind applies, in either order of the sources', () => {
    const some = { steps: 5, tool_calls: 9, wall_ms: 0, tokens: null };
    const others = { steps: 7, tool_calls: 2, wall_ms: 4, bytes: 3 };
    const both = { steps: 5, tool_calls: 2, wall_ms: 0, bytes: 3, tokens: null };
    expect([limitsOf(some, others), limitsOf(others, some)]).toEqual([both, both]);
  });
});

describe('an account', () => {
  test('is opened with nothing spent, and its members are in the order of the contract', () => {
    const opened = openAccount({ tokens: 5, bytes: 4, wall_ms: null, tool_calls: 2, steps: 1 });
    const nothing = '{"steps":0,"tool_calls":0,"wall_ms":0,"bytes":0,"tokens":0}';
    expect(JSON.stringify(opened)).toBe(
      `{"limit":{"steps":1,"tool_calls":2,"wall_ms":null,"bytes":4,"tokens":5},"spent":${nothing},"reserved":${nothing}}`,
    );
    expect(isConforming(Account, opened)).toBe(true);
  });

  test('spends the whole amount or nothing, and names the first kind that lacks', () => {
    const start = account({ tool_calls: 2, bytes: 10 });
    const after = granted(spend(start, amountsOf({ steps: 1, tool_calls: 2, bytes: 9 }))).account;
    expect(after.spent).toEqual(amountsOf({ steps: 1, tool_calls: 2, bytes: 9 }));
    expect(availableLimits(after)).toEqual(limitsOf({ tool_calls: 0, bytes: 1 }));
    expect(spend(after, amountsOf({ steps: 1, bytes: 1, tool_calls: 1 }))).toEqual({ exhausted: 'tool_calls' });
    expect(spend(after, amountsOf({ bytes: 2, tool_calls: 1 }))).toEqual({ exhausted: 'tool_calls' });
    expect(spend(after, amountsOf({ bytes: 2 }))).toEqual({ exhausted: 'bytes' });
    expect(granted(spend(after, amountsOf({ bytes: 1 }))).account.spent.bytes).toBe(10);
    expect(start).toEqual(account({ tool_calls: 2, bytes: 10 }));
  });

  test('with a limit of 0 permits only an amount of 0', () => {
    const none = account({ tokens: 0 });
    expect(spend(none, amountsOf({ tokens: 1 }))).toEqual({ exhausted: 'tokens' });
    expect(granted(spend(none, amountsOf({ steps: 1 }))).account.spent).toEqual(amountsOf({ steps: 1 }));
    expect(exhaustedKind(none)).toBe('tokens');
  });

  test('books past usage beyond its limit; then 0 is available, never less', () => {
    const over = charge(account({ bytes: 10 }), amountsOf({ bytes: 15, wall_ms: 3 }));
    expect(over.spent).toEqual(amountsOf({ bytes: 15, wall_ms: 3 }));
    expect(availableLimits(over)).toEqual(limitsOf({ bytes: 0 }));
    expect(exhaustedKind(over)).toBe('bytes');
    expect(spend(over, amountsOf({ bytes: 1 }))).toEqual({ exhausted: 'bytes' });
    expect(granted(spend(over, amountsOf({ steps: 1 }))).account.spent.bytes).toBe(15);
  });

  test('names the first kind with nothing available, or none', () => {
    const filled = (part: Parameters<typeof amountsOf>[0]) =>
      exhaustedKind(charge(account({ steps: 1, tool_calls: 1, wall_ms: 1, bytes: 1, tokens: 1 }), amountsOf(part)));
    expect(BUDGET_KINDS.map((kind) => filled({ [kind]: 1, tokens: 1 }))).toEqual(BUDGET_KINDS);
    expect([filled({}), exhaustedKind(openAccount(UNLIMITED))]).toEqual([null, null]);
    expect(exhaustedKind(charge(openAccount(UNLIMITED), amountsOf({ steps: AMOUNT_MAX })))).toBeNull();
  });
});

describe('a child', () => {
  test('gets the requested grant; its parent has that much less, and gets the rest back', () => {
    const { account: parent, grant } = granted(reserve(account({ steps: 10 }), limitsOf({ steps: 4 })));
    expect(grant).toEqual(limitsOf({ steps: 4 }));
    expect([availableLimits(parent).steps, parent.reserved.steps]).toEqual([6, 4]);
    expect(spend(parent, amountsOf({ steps: 7 }))).toEqual({ exhausted: 'steps' });
    const child = granted(spend(openAccount(grant), amountsOf({ steps: 3, bytes: 8 }))).account;
    expect(settle(parent, grant, child.spent)).toEqual({
      limit: limitsOf({ steps: 10 }),
      spent: amountsOf({ steps: 3, bytes: 8 }),
      reserved: amountsOf({}),
    });
  });

  test('that requests more than is available gets nothing, and the first lacking kind is named', () => {
    const parent = granted(spend(account({ steps: 10, tokens: 5 }), amountsOf({ steps: 4 }))).account;
    expect(reserve(parent, limitsOf({ steps: 7 }))).toEqual({ exhausted: 'steps' });
    expect(reserve(parent, limitsOf({ tokens: 6, steps: 7 }))).toEqual({ exhausted: 'steps' });
    expect(reserve(parent, limitsOf({ tokens: 6, steps: 6 }))).toEqual({ exhausted: 'tokens' });
    expect(granted(reserve(parent, limitsOf({ steps: 6, tokens: 5 }))).grant).toEqual(
      limitsOf({ steps: 6, tokens: 5 }),
    );
  });

  test('that requests everything gets what is available as its limit; the next child gets a grant of 0', () => {
    const parent = granted(spend(account({ steps: 10 }), amountsOf({ steps: 4 }))).account;
    const first = granted(reserve(parent, UNLIMITED));
    expect(first.grant).toEqual(limitsOf({ steps: 6 }));
    expect(exhaustedKind(first.account)).toBe('steps');
    const second = granted(reserve(first.account, UNLIMITED));
    expect(second.grant).toEqual(limitsOf({ steps: 0 }));
    expect(exhaustedKind(openAccount(second.grant))).toBe('steps');
  });

  test('of an unlimited parent may be limited or not; its usage is counted, and nothing is reserved', () => {
    const parent = openAccount(UNLIMITED);
    const some = granted(reserve(parent, limitsOf({ steps: AMOUNT_MAX })));
    const all = granted(reserve(some.account, UNLIMITED));
    expect([some.grant, all.grant]).toEqual([limitsOf({ steps: AMOUNT_MAX }), UNLIMITED]);
    expect(all.account).toEqual(parent);
    const settled = settle(
      settle(all.account, all.grant, amountsOf({ steps: 2 })),
      some.grant,
      amountsOf({ steps: 3 }),
    );
    expect(settled).toEqual({ limit: UNLIMITED, spent: amountsOf({ steps: 5 }), reserved: amountsOf({}) });
  });

  test('that was charged beyond its grant charges its parent that much, and its sibling keeps its grant', () => {
    const first = granted(reserve(account({ bytes: 10 }), limitsOf({ bytes: 4 })));
    const second = granted(reserve(first.account, limitsOf({ bytes: 6 })));
    const child = charge(openAccount(first.grant), amountsOf({ bytes: 9 }));
    const parent = settle(second.account, first.grant, child.spent);
    expect([parent.spent.bytes, parent.reserved.bytes, availableLimits(parent).bytes]).toEqual([9, 6, 0]);
    const sibling = granted(spend(openAccount(second.grant), amountsOf({ bytes: 6 }))).account;
    expect(settle(parent, second.grant, sibling.spent)).toMatchObject({ spent: { bytes: 15 }, reserved: { bytes: 0 } });
  });

  test('that settles twice, or with more than its grant, is an invariant error', () => {
    const { account: parent, grant } = granted(reserve(account({ steps: 10 }), limitsOf({ steps: 4 })));
    const settled = settle(parent, grant, amountsOf({ steps: 4 }));
    expect(() => settle(settled, grant, amountsOf({ steps: 4 }))).toThrow(InvariantError);
    expect(() => settle(parent, limitsOf({ steps: 5 }), amountsOf({}))).toThrow(InvariantError);
    expect(() => settle(parent, UNLIMITED, amountsOf({}))).toThrow(InvariantError);
  });
});

describe('amounts', () => {
  test('a missing kind is 0', () => {
    expect(amountsOf({ bytes: 5, steps: undefined })).toEqual({
      steps: 0,
      tool_calls: 0,
      wall_ms: 0,
      bytes: 5,
      tokens: 0,
    });
  });

  test('sums stop at the largest amount', () => {
    const full = charge(openAccount(UNLIMITED), amountsOf({ bytes: AMOUNT_MAX }));
    expect(charge(full, amountsOf({ bytes: AMOUNT_MAX })).spent.bytes).toBe(AMOUNT_MAX);
    expect(granted(spend(full, amountsOf({ bytes: 1 }))).account.spent.bytes).toBe(AMOUNT_MAX);
    expect(settle(full, UNLIMITED, amountsOf({ bytes: 2 })).spent.bytes).toBe(AMOUNT_MAX);
    const { account: holding } = granted(reserve(account({ bytes: AMOUNT_MAX }), limitsOf({ bytes: AMOUNT_MAX })));
    expect(availableLimits(charge(holding, amountsOf({ bytes: AMOUNT_MAX }))).bytes).toBe(0);
  });

  test.each(NO_AMOUNTS)('%p is rejected in every argument', (value) => {
    const bad = { ...amountsOf({}), tokens: value } as Amounts;
    const good = account({ tokens: 5 });
    const uses: readonly (() => unknown)[] = [
      () => openAccount(bad),
      () => limitsOf(bad),
      () => limitsOf({}, bad),
      () => amountsOf(bad),
      () => reserve(good, bad),
      () => spend(good, bad),
      () => charge(good, bad),
      () => settle(good, bad, amountsOf({})),
      () => settle(openAccount(UNLIMITED), bad, amountsOf({})),
      () => settle(good, limitsOf({ steps: 0, tokens: 0 }), bad),
    ];
    for (const use of uses) expect(use).toThrow(InvariantError);
  });

  test('negative zero, which JSON can contain, becomes 0', () => {
    const limits = JSON.parse('{"steps":-0}') as { steps: number };
    const opened = charge(account(limits), amountsOf(limits));
    const { account: parent, grant } = granted(reserve(account({ steps: 3 }), { ...UNLIMITED, steps: -0 }));
    for (const value of [opened, parent, grant]) expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value);
  });
});

/** One turn of one run. `at` counts back from the run that was opened last, so that small values make deep trees. */
type Turn =
  /** A modest child requests no more than is available; otherwise most requests would be refused in shallow trees. */
  | { readonly act: 'open'; readonly at: number; readonly want: Limits; readonly modest: boolean }
  | { readonly act: 'spend' | 'charge'; readonly at: number; readonly amounts: Amounts }
  | { readonly act: 'settle'; readonly at: number };

interface Run {
  readonly parent: Run | null;
  readonly depth: number;
  readonly grant: Limits;
  readonly children: Run[];
  account: Account;
  settled: boolean;
  /** The exact amounts that this run requested and was charged, without those of its children. */
  readonly asked: Record<BudgetKind, bigint>;
  readonly charged: Record<BudgetKind, bigint>;
}

const DEPTH_MAX = 5;
const zeros = (): Record<BudgetKind, bigint> => ({ steps: 0n, tool_calls: 0n, wall_ms: 0n, bytes: 0n, tokens: 0n });
const capped = (exact: bigint): number => Number(exact > BigInt(AMOUNT_MAX) ? BigInt(AMOUNT_MAX) : exact);
const add = (to: Record<BudgetKind, bigint>, amounts: Amounts): void => {
  for (const kind of BUDGET_KINDS) to[kind] += BigInt(amounts[kind]);
};

const newRun = (parent: Run | null, grant: Limits): Run => ({
  parent,
  depth: parent === null ? 1 : parent.depth + 1,
  grant,
  children: [],
  account: openAccount(grant),
  settled: false,
  asked: zeros(),
  charged: zeros(),
});

const withAll = (run: Run): readonly Run[] => [run, ...run.children.flatMap(withAll)];
/** The runs whose usage this run accounts for: itself, and all runs below it that have settled up to it. */
const known = (run: Run): readonly Run[] => [run, ...run.children.filter(({ settled }) => settled).flatMap(known)];
const total = (runs: readonly Run[], of: 'asked' | 'charged', kind: BudgetKind): bigint =>
  runs.reduce((so_far, run) => so_far + run[of][kind], 0n);
const heldBack = (run: Run, kind: BudgetKind): bigint =>
  run.children.reduce((held, { settled, grant }) => (settled ? held : held + BigInt(grant[kind] ?? 0)), 0n);

/** The available amount by exact arithmetic. */
function left(run: Run, kind: BudgetKind): number {
  const limit = run.grant[kind];
  if (limit === null) return Infinity;
  const used = total(known(run), 'asked', kind) + total(known(run), 'charged', kind) + heldBack(run, kind);
  return used >= BigInt(limit) ? 0 : Number(BigInt(limit) - used);
}

const lacking = (run: Run, wanted: Limits): BudgetKind | undefined =>
  BUDGET_KINDS.find((kind) => (wanted[kind] ?? 0) > left(run, kind));

function settleAll(run: Run): void {
  for (const child of run.children) if (!child.settled) settleAll(child);
  if (run.parent === null) return;
  run.parent.account = settle(run.parent.account, run.grant, run.account.spent);
  run.settled = true;
}

/** Executes a turn. @returns the exhausted kind, if any */
function take(turn: Turn, run: Run): BudgetKind | undefined {
  if (turn.act === 'settle') {
    settleAll(run);
    return undefined;
  }
  if (turn.act === 'charge') {
    run.account = charge(run.account, turn.amounts);
    add(run.charged, turn.amounts);
    return undefined;
  }
  const leftBefore = limitsOf(
    Object.fromEntries(BUDGET_KINDS.map((kind) => [kind, run.grant[kind] === null ? null : left(run, kind)])),
  );
  expect(availableLimits(run.account)).toEqual(leftBefore);
  if (!('want' in turn)) return ask(run, turn.amounts);
  return open(run, turn.modest ? halfAtMost(turn.want, leftBefore) : turn.want, leftBefore);
}

const halfAtMost = (want: Limits, leftBefore: Limits): Limits =>
  limitsOf(
    Object.fromEntries(BUDGET_KINDS.map((kind) => [kind, Math.ceil((leftBefore[kind] ?? AMOUNT_MAX) / 2)])),
    want,
  );

function open(run: Run, want: Limits, leftBefore: Limits): BudgetKind | undefined {
  const refused = lacking(run, want);
  const outcome = reserve(run.account, want);
  if ('exhausted' in outcome) {
    expect(outcome).toEqual({ exhausted: refused });
    return refused;
  }
  expect(refused).toBeUndefined();
  expect(outcome.grant).toEqual(limitsOf(leftBefore, want));
  run.account = outcome.account;
  run.children.push(newRun(run, outcome.grant));
  return undefined;
}

function ask(run: Run, amounts: Amounts): BudgetKind | undefined {
  const refused = lacking(run, amounts);
  const outcome = spend(run.account, amounts);
  if ('exhausted' in outcome) {
    expect(outcome).toEqual({ exhausted: refused });
    return refused;
  }
  expect(refused).toBeUndefined();
  run.account = outcome.account;
  add(run.asked, amounts);
  return undefined;
}

/** The violations of B1 to B3 by one run of the tree. Plain comparisons, because there are a million of them. */
function violations(run: Run): readonly string[] {
  const { account: own, grant } = run;
  const found: string[] = [];
  const must = (holds: boolean, what: string): void => {
    if (!holds) found.push(`${what}: ${JSON.stringify(own)}`);
  };
  must(JSON.stringify(own.limit) === JSON.stringify(grant), 'the limit is the grant');
  must(isConforming(Account, own), 'conforms');
  for (const kind of BUDGET_KINDS) {
    const [asked, charged] = [total(known(run), 'asked', kind), total(known(run), 'charged', kind)];
    const [limit, held] = [grant[kind], heldBack(run, kind)];
    must(own.spent[kind] === capped(asked + charged), `${kind}: nothing is lost or made`);
    must(own.reserved[kind] === (limit === null ? 0 : Number(held)), `${kind}: held back is what open children have`);
    if (limit === null) continue;
    must(asked + held <= BigInt(limit), `${kind}: asked for and held back is within the limit`);
    must(charged > 0n || own.spent[kind] + own.reserved[kind] <= limit, `${kind}: without charges spent is as well`);
    must(total(withAll(run), 'asked', kind) <= BigInt(limit), `${kind}: all that was asked for below is as well`);
  }
  return found;
}

const weighed = <T>(...options: readonly (readonly [number, fc.Arbitrary<T>])[]): fc.Arbitrary<T> =>
  fc.oneof(...options.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const every = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<Record<BudgetKind, T>> =>
  fc.record({ steps: value, tool_calls: value, wall_ms: value, bytes: value, tokens: value });

// A turn draws five kinds at once: mostly small amounts, otherwise nearly every turn would be refused.
const huge = fc.constantFrom(AMOUNT_MAX, AMOUNT_MAX - 1);
const amount = weighed([40, fc.constant(0)], [20, fc.nat(8)], [1, huge]);
const limits = every(weighed<number | null>([12, fc.nat(60)], [6, fc.constant(null)], [1, huge]));
const wants = every(weighed<number | null>([60, fc.nat(6)], [4, fc.constant(null)], [1, huge]));
const at = weighed([1, fc.constant(0)], [2, fc.nat(7)]);
const openTurn: fc.Arbitrary<Turn> = fc.record({
  act: fc.constant('open' as const),
  at,
  want: weighed([1, wants], [1, limits]),
  modest: fc.boolean(),
});
const settleTurn: fc.Arbitrary<Turn> = fc.record({ act: fc.constant('settle' as const), at });
const useTurn = (act: 'spend' | 'charge', used: fc.Arbitrary<number>): fc.Arbitrary<Turn> =>
  fc.record({ act: fc.constant(act), at, amounts: every(used) });
const turn = weighed([5, openTurn], [4, useTurn('spend', amount)], [1, useTurn('charge', amount)], [1, settleTurn]);
const greedyTurn = weighed([6, useTurn('spend', fc.constantFrom(1, 2, 3))], [3, openTurn], [1, settleTurn]);

/** Executes all turns, then settles everything; `seen` counts what happened. */
function execute(limit: Limits, turns: readonly Turn[], seen: Record<string, number>): Run {
  const count = (what: string): void => {
    seen[what] = (seen[what] ?? 0) + 1;
  };
  const root = newRun(null, limit);
  for (const next of turns) {
    const open = withAll(root).filter(({ settled }) => !settled);
    const run = open[open.length - 1 - (next.at % open.length)]!;
    if (next.act === 'open' && run.depth === DEPTH_MAX) continue;
    const refused = take(next, run);
    count(`${next.act}${refused === undefined ? '' : ' refused'}`);
    if (run.parent !== null && run.parent.children.filter(({ settled }) => !settled).length > 1) count('concurrent');
    expect(withAll(root).flatMap(violations)).toEqual([]);
  }
  count(`depth ${Math.max(...withAll(root).map(({ depth }) => depth))}`);
  settleAll(root);
  return root;
}

describe('B1 B2 B3: random trees of runs that act in any order', () => {
  test('nothing is ever overspent, and after all settlements the sums match', () => {
    const seen: Record<string, number> = {};
    fc.assert(
      fc.property(limits, fc.array(turn, { maxLength: 40, size: 'max' }), (limit, turns) => {
        const root = execute(limit, turns, seen);
        expect(violations(root)).toEqual([]);
        expect(JSON.parse(JSON.stringify(root.account))).toStrictEqual(root.account);
        for (const kind of BUDGET_KINDS) {
          const all = withAll(root);
          expect(root.account.reserved[kind]).toBe(0);
          expect(root.account.spent[kind]).toBe(capped(total(all, 'asked', kind) + total(all, 'charged', kind)));
        }
      }),
      { numRuns: sized(80, 250), seed: 1 },
    );
    // The random trees covered every kind of turn.
    const needed = ['open', 'open refused', 'spend', 'spend refused', 'charge', 'settle', 'concurrent', 'depth 5'];
    expect(needed.filter((what) => (seen[what] ?? 0) < 10)).toEqual([]);
  });

  test('without charges no root spends more than its limit, whatever its runs request', () => {
    const turns = fc.array(greedyTurn, { maxLength: 60, size: 'max' });
    let full = 0;
    fc.assert(
      fc.property(every(fc.integer({ min: 0, max: 12 })), turns, (limit, taken) => {
        const { account: root } = execute(limit, taken, {});
        for (const kind of BUDGET_KINDS) expect(root.spent[kind]).toBeLessThanOrEqual(limit[kind]);
        if (exhaustedKind(root) !== null) full += 1;
      }),
      { numRuns: sized(40, 100), seed: 1 },
    );
    expect(full).toBeGreaterThan(10);
  });

  test('canonical JSON of an account round-trips', () => {
    fc.assert(
      fc.property(limits, every(amount), (limit, amounts) => {
        const used = charge(openAccount(limit), amounts);
        expect(JSON.parse(canonicalJson(used))).toStrictEqual(used);
      }),
    );
  });
});

test('the lacking kind of a step is the kind that spending would be refused for, also after excess charges', () => {
  const account = charge(openAccount(limitsOf({ tool_calls: 2, tokens: 5 })), amountsOf({ tool_calls: 3 }));
  for (const want of [
    {},
    { tokens: 5 },
    { tokens: 6 },
    { tool_calls: 1 },
    { tool_calls: 1, tokens: 9 },
    { bytes: 7 },
  ]) {
    const outcome = spend(account, amountsOf(want));
    expect([want, lackingKind(account, amountsOf(want))]).toEqual([
      want,
      'exhausted' in outcome ? outcome.exhausted : null,
    ]);
  }
});

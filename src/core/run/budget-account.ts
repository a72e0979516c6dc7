// Budgets along the run tree. A parent reserves an amount for a child, and the child spends only from that grant. When
// the child ends, the parent is charged for what was spent, and gets the rest back.
//
// Invariants:
//   B1. What `spend` took and what is reserved for children never exceed the limit together. So no subtree spends more
//       than its root was granted, in whatever order its runs execute.
//   B2. `charge` books past usage even beyond the limit. It reduces what is available, but never a grant of a child.
//   B3. Nothing is lost or created: a parent has spent what it spent itself and what its settled children spent.
//
// Objects are written with all members, never spread (decision 0009), and never changed.

import {
  AMOUNT_MAX,
  BUDGET_KINDS,
  type Account,
  type Amounts,
  type BudgetKind,
  type Limits,
} from '../contract/run/budget.js';
import { InvariantError } from '../errors.js';

/** A refused request: the first kind, in the order of kinds, with too little left. Nothing was booked. */
export interface BudgetExhaustion {
  readonly exhausted: BudgetKind;
}

/** Limits with optional kinds: a section of a policy file, the options of a caller, or complete limits. */
export type LimitParts = { readonly [K in BudgetKind]?: number | null | undefined };
/** Amounts with optional kinds. A missing kind is 0. */
export type AmountParts = { readonly [K in BudgetKind]?: number | undefined };

/** An account with nothing spent. @throws InvariantError for an invalid limit */
export const openAccount = (limit: Limits): Account => ({
  limit: everyKind((kind) => limitIn(limit, kind)),
  spent: everyKind(() => 0),
  reserved: everyKind(() => 0),
});

/** What is available of every kind: neither spent nor reserved. Null without a limit, never below 0. */
export const availableLimits = (account: Account): Limits =>
  everyKind((kind) => {
    const limit = account.limit[kind];
    return limit === null ? null : Math.max(0, limit - cappedSum(account.spent[kind], account.reserved[kind]));
  });

/**
 * Complete limits: for each kind the lower of both; a kind that neither names is unlimited. So several sources can
 * limit a run (the limits of the actions policy, its budgets, a caller), and none can widen another.
 * @throws InvariantError for an invalid limit
 */
export const limitsOf = (policyPart: LimitParts, narrower: LimitParts = {}): Limits =>
  everyKind((kind) => lesserLimit(limitIn(policyPart, kind), limitIn(narrower, kind)));

/** Complete amounts: a missing kind is 0. @throws InvariantError for an invalid amount */
export const amountsOf = (part: AmountParts): Amounts => everyKind((kind) => checkAmount(part[kind] ?? 0, kind));

/**
 * Reserves an amount for a child, whose account is opened with the grant. Null requests everything available. That may
 * be nothing, and then the grant is 0; the grant is null only if the account itself has no limit. So a child of a
 * limited run is always limited.
 * @throws InvariantError for an invalid amount
 */
export function reserve(
  account: Account,
  wanted: Limits,
): { readonly account: Account; readonly grant: Limits } | BudgetExhaustion {
  const left = availableLimits(account);
  const lacking = firstKind((kind) => !isEnough(left[kind], limitIn(wanted, kind) ?? 0));
  if (lacking !== null) return { exhausted: lacking };
  const grant = everyKind((kind) => lesserLimit(left[kind], limitIn(wanted, kind)));
  const reserved = everyKind((kind) =>
    account.limit[kind] === null ? 0 : account.reserved[kind] + (grant[kind] ?? 0),
  );
  return { account: { limit: account.limit, spent: account.spent, reserved }, grant };
}

/**
 * Spends an amount that is about to be used: all of it, or nothing. An amount of 0 is always available.
 * @throws InvariantError for an invalid amount
 */
export function spend(account: Account, amounts: Amounts): { readonly account: Account } | BudgetExhaustion {
  const left = availableLimits(account);
  const lacking = firstKind((kind) => !isEnough(left[kind], checkAmount(amounts[kind], kind)));
  return lacking === null ? { account: charge(account, amounts) } : { exhausted: lacking };
}

/** The first kind with less available than the amount, or null. Every step calls it. */
export function lackingKind({ limit, spent, reserved }: Account, amounts: Amounts): BudgetKind | null {
  for (const kind of BUDGET_KINDS) {
    const most = limit[kind];
    // A charge beyond the limit leaves 0, and 0 covers an amount of 0.
    if (most !== null && Math.max(0, most - cappedSum(spent[kind], reserved[kind])) < amounts[kind]) return kind;
  }
  return null;
}

/**
 * Books usage that could not be reserved before: the bytes of a result, time. It may exceed the limit; then nothing of
 * that kind is available. @throws InvariantError for an invalid amount
 */
export const charge = (account: Account, amounts: Amounts): Account => ({
  limit: account.limit,
  spent: everyKind((kind) => cappedSum(account.spent[kind], checkAmount(amounts[kind], kind))),
  reserved: account.reserved,
});

/**
 * The parent's account after the end of a child: it is charged for what the child spent, even beyond the grant, and the
 * rest of the grant is available again. A child settles once, after its own children.
 * @throws InvariantError if the parent has no such reservation, or for an invalid amount
 */
export const settle = (parent: Account, grant: Limits, childSpent: Amounts): Account => ({
  limit: parent.limit,
  spent: everyKind((kind) => cappedSum(parent.spent[kind], checkAmount(childSpent[kind], kind))),
  reserved: everyKind((kind) => withoutGrant(parent, grant, kind)),
});

/** The first kind with nothing available, or null. Reserved amounts are not available; a limit of 0 counts. */
export function exhaustedKind(account: Account): BudgetKind | null {
  const left = availableLimits(account);
  return firstKind((kind) => left[kind] === 0);
}

function withoutGrant(parent: Account, grant: Limits, kind: BudgetKind): number {
  const [reserved, granted] = [parent.reserved[kind], limitIn(grant, kind)];
  if (parent.limit[kind] === null) return 0;
  if (granted !== null && granted <= reserved) return reserved - granted;
  throw new InvariantError(`of ${kind} ${reserved} is reserved, and ${granted ?? 'everything'} was to be given back`);
}

const isEnough = (left: number | null, wanted: number): boolean => left === null || wanted <= left;

/** The lower of two limits. */
const lesserLimit = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.min(one, other);

/** A sum up to the largest amount, above which numbers are not exact. */
const cappedSum = (one: number, other: number): number => Math.min(AMOUNT_MAX, one + other);

const limitIn = (limits: LimitParts, kind: BudgetKind): number | null => {
  const limit = limits[kind] ?? null;
  return limit === null ? null : checkAmount(limit, kind);
};

function checkAmount(value: number, kind: BudgetKind): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new InvariantError(`${value} is not a valid amount of ${kind}`);
  // JSON can contain -0 and is rewritten as 0: an account must be equal after a round trip.
  return value === 0 ? 0 : value;
}

const firstKind = (matches: (kind: BudgetKind) => boolean): BudgetKind | null => BUDGET_KINDS.find(matches) ?? null;

/** Creates all amounts and limits, so that they share one shape. */
const everyKind = <T>(compute: (kind: BudgetKind) => T): Record<BudgetKind, T> => ({
  steps: compute('steps'),
  tool_calls: compute('tool_calls'),
  wall_ms: compute('wall_ms'),
  bytes: compute('bytes'),
  tokens: compute('tokens'),
});

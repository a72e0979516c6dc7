// Budgets along the run tree: a parent reserves a part for a child, the child spends from that part only, and at its
// end the parent commits what was spent and gets the rest back.
//
// Invariants:
//   B1. What was spent by asking, and what is held back for children, is together never more than the limit. So no
//       subtree spends more than its root was given, in whichever order its runs take turns.
//   B2. What happened without asking (`charge`) is booked even past the limit. It takes from what is left; it never
//       takes back what a child was already granted.
//   B3. Nothing is lost or made: a parent has spent what it spent itself and what its settled children spent.
//
// Objects are written out, never spread (decision 0009), and never changed.

import {
  AMOUNT_MAX,
  BUDGET_KINDS,
  type Account,
  type Amounts,
  type BudgetKind,
  type Limits,
} from '../contract/run/budget.js';
import { InvariantError } from '../errors.js';

/** A refusal: there is not enough of this kind, the first in the order of kinds. Nothing was booked. */
export interface BudgetExhaustion {
  readonly exhausted: BudgetKind;
}

/** Limits of which some may be missing: a section of a policy file, a caller's wish, or whole limits. */
export type LimitParts = { readonly [K in BudgetKind]?: number | null | undefined };
/** Amounts of which some may be missing, which are 0. */
export type AmountParts = { readonly [K in BudgetKind]?: number | undefined };

/** An account from which nothing has been spent. @throws InvariantError if a limit is no amount */
export const openAccount = (limit: Limits): Account => ({
  limit: everyKind((kind) => limitIn(limit, kind)),
  spent: everyKind(() => 0),
  reserved: everyKind(() => 0),
});

/**
 * What is left of every kind: neither spent nor held back for a child. Null where there is no limit, never below 0.
 */
export const availableLimits = (account: Account): Limits =>
  everyKind((kind) => {
    const limit = account.limit[kind];
    return limit === null ? null : Math.max(0, limit - cappedSum(account.spent[kind], account.reserved[kind]));
  });

/**
 * Whole limits, of each kind the narrower of both; a kind that neither names is unlimited. So may several sources
 * limit a run (the limits of the actions policy, its budgets, a caller), and none of them can widen another.
 * @throws InvariantError if a limit is no amount
 */
export const limitsOf = (policyPart: LimitParts, narrower: LimitParts = {}): Limits =>
  everyKind((kind) => lesserLimit(limitIn(policyPart, kind), limitIn(narrower, kind)));

/** Whole amounts: what is left out is 0. @throws InvariantError if one is no amount */
export const amountsOf = (part: AmountParts): Amounts => everyKind((kind) => checkAmount(part[kind] ?? 0, kind));

/**
 * Holds back a part for a child, whose account is opened with the grant. Null wants all that is there: everything that
 * is left (which may be nothing, and then the grant is 0), and null only where the account itself has no limit. So a
 * child of a limited run is always limited.
 * @throws InvariantError if what is wanted is no amount
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
 * Spends what is about to be used: all of it, or nothing. An amount of 0 is always there.
 * @throws InvariantError if an amount is none
 */
export function spend(account: Account, amounts: Amounts): { readonly account: Account } | BudgetExhaustion {
  const left = availableLimits(account);
  const lacking = firstKind((kind) => !isEnough(left[kind], checkAmount(amounts[kind], kind)));
  return lacking === null ? { account: charge(account, amounts) } : { exhausted: lacking };
}

/** The first kind of which the account has not so much left, or null: the question of every step. */
export function lackingKind({ limit, spent, reserved }: Account, amounts: Amounts): BudgetKind | null {
  for (const kind of BUDGET_KINDS) {
    const most = limit[kind];
    // What was charged beyond the limit leaves nothing, and nothing is always enough for nothing.
    if (most !== null && Math.max(0, most - cappedSum(spent[kind], reserved[kind])) < amounts[kind]) return kind;
  }
  return null;
}

/**
 * Books what has been used already and could not be asked for before: the bytes of a result, time. It may exceed the
 * limit; then nothing of that kind is left. @throws InvariantError if an amount is none
 */
export const charge = (account: Account, amounts: Amounts): Account => ({
  limit: account.limit,
  spent: everyKind((kind) => cappedSum(account.spent[kind], checkAmount(amounts[kind], kind))),
  reserved: account.reserved,
});

/**
 * The parent after the end of a child: what the child spent is committed, also where it was charged past its grant, and
 * the rest of the grant is there again. A child settles once, after its own children.
 * @throws InvariantError if the parent does not hold the grant back, or an amount is none
 */
export const settle = (parent: Account, grant: Limits, childSpent: Amounts): Account => ({
  limit: parent.limit,
  spent: everyKind((kind) => cappedSum(parent.spent[kind], checkAmount(childSpent[kind], kind))),
  reserved: everyKind((kind) => withoutGrant(parent, grant, kind)),
});

/** The first kind of which nothing is left, or null. What children hold back is not left; a limit of 0 counts. */
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

/** Of two limits the one that binds. */
const lesserLimit = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.min(one, other);

/** A sum that stops at the largest amount, where numbers stop being exact. */
const cappedSum = (one: number, other: number): number => Math.min(AMOUNT_MAX, one + other);

const limitIn = (limits: LimitParts, kind: BudgetKind): number | null => {
  const limit = limits[kind] ?? null;
  return limit === null ? null : checkAmount(limit, kind);
};

function checkAmount(value: number, kind: BudgetKind): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new InvariantError(`${value} is no amount of ${kind}`);
  // JSON can say -0, and says 0 of it when it is written again: an account must read as it was written.
  return value === 0 ? 0 : value;
}

const firstKind = (matches: (kind: BudgetKind) => boolean): BudgetKind | null => BUDGET_KINDS.find(matches) ?? null;

/** The one place where amounts and limits are made, so that all of them have one shape. */
const everyKind = <T>(compute: (kind: BudgetKind) => T): Record<BudgetKind, T> => ({
  steps: compute('steps'),
  tool_calls: compute('tool_calls'),
  wall_ms: compute('wall_ms'),
  bytes: compute('bytes'),
  tokens: compute('tokens'),
});

// The operators of conditions, on exact values: what Cedar's specification says of them, or uncertain.

import {
  asBoolean,
  asEntity,
  asExtension,
  asLong,
  asSet,
  throwUncertain,
  contains,
  containsAll,
  type ExactEntity,
  ExactExtension,
  exactLong,
  type ExactRecord,
  type ExactValue,
  isEqual,
  isSet,
} from './exact-value.js';

/** A request, converted. */
export interface ExactRequest {
  readonly principal: ExactEntity;
  readonly action: ExactEntity;
  readonly resource: ExactEntity;
  readonly context: ExactRecord;
  /** By the key of the entity. */
  readonly entities: ReadonlyMap<string, KnownEntity>;
}
export interface KnownEntity {
  readonly attributes: ExactRecord;
  readonly parents: readonly ExactEntity[];
}

/** @throws UncertainError */
type UnaryOperator = (value: ExactValue) => ExactValue;
type BinaryOperator = (left: ExactValue, right: ExactValue, request: ExactRequest) => ExactValue;

const DAY_MS = 86_400_000;
/** Milliseconds since midnight, before 1970 too. */
const timeOfDay = (at: number): number => ((at % DAY_MS) + DAY_MS) % DAY_MS;

const amountOf = (value: ExactValue, kind: ExactExtension['kind']): number => {
  const found = asExtension(value);
  return found.kind === kind ? found.amount : throwUncertain();
};

const extension = (kind: ExactExtension['kind'], amount: number): ExactExtension =>
  new ExactExtension(kind, exactLong(amount));

/** What is left over is dropped, also of a negative duration. */
const wholeUnits =
  (milliseconds: number): UnaryOperator =>
  (value) =>
    Math.trunc(amountOf(value, 'duration') / milliseconds);

export const UNARY_OPERATORS: ReadonlyMap<string, UnaryOperator> = new Map<string, UnaryOperator>([
  ['!', (value) => !asBoolean(value)],
  ['neg', (value) => -asLong(value)],
  ['isEmpty', (value) => asSet(value).length === 0],
  ['toDate', (value) => dateOf(amountOf(value, 'datetime'))],
  ['toTime', (value) => extension('duration', timeOfDay(amountOf(value, 'datetime')))],
  ['toMilliseconds', wholeUnits(1)],
  ['toSeconds', wholeUnits(1_000)],
  ['toMinutes', wholeUnits(60_000)],
  ['toHours', wholeUnits(3_600_000)],
  ['toDays', wholeUnits(DAY_MS)],
]);

const dateOf = (at: number): ExactExtension => extension('datetime', at - timeOfDay(at));

type Comparison = (left: number, right: number) => boolean;

/** Longs, datetimes and durations are compared with their own type only. */
const compared =
  (compare: Comparison): BinaryOperator =>
  (left, right) => {
    if (typeof left === 'number') return compare(left, asLong(right));
    const { kind, amount } = asExtension(left);
    return kind === 'decimal' ? throwUncertain() : compare(amount, amountOf(right, kind));
  };

const comparedDecimals =
  (compare: Comparison): BinaryOperator =>
  (left, right) =>
    compare(amountOf(left, 'decimal'), amountOf(right, 'decimal'));

const calculated =
  (calculate: (left: number, right: number) => number): BinaryOperator =>
  (left, right) =>
    exactLong(calculate(asLong(left), asLong(right)));

const isLess: Comparison = (left, right) => left < right;
const isAtMost: Comparison = (left, right) => left <= right;
const isMore: Comparison = (left, right) => left > right;
const isAtLeast: Comparison = (left, right) => left >= right;

export const BINARY_OPERATORS: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  ['==', isEqual],
  ['!=', (left, right) => !isEqual(left, right)],
  ['<', compared(isLess)],
  ['<=', compared(isAtMost)],
  ['>', compared(isMore)],
  ['>=', compared(isAtLeast)],
  ['lessThan', comparedDecimals(isLess)],
  ['lessThanOrEqual', comparedDecimals(isAtMost)],
  ['greaterThan', comparedDecimals(isMore)],
  ['greaterThanOrEqual', comparedDecimals(isAtLeast)],
  ['+', calculated((left, right) => left + right)],
  ['-', calculated((left, right) => left - right)],
  ['*', calculated((left, right) => left * right)],
  ['in', (left, right, request) => isIn(asEntity(left), right, request)],
  ['contains', (left, right) => contains(asSet(left), right)],
  ['containsAll', (left, right) => containsAll(asSet(left), asSet(right))],
  ['containsAny', (left, right) => containsAny(asSet(left), asSet(right))],
  ['offset', (at, by) => extension('datetime', amountOf(at, 'datetime') + amountOf(by, 'duration'))],
  ['durationSince', (at, since) => extension('duration', amountOf(at, 'datetime') - amountOf(since, 'datetime'))],
]);

const containsAny = (set: readonly ExactValue[], values: readonly ExactValue[]): boolean =>
  values.some((value) => contains(set, value));

/** An entity is in itself, in its parents, and in what they are in. */
function isIn(entity: ExactEntity, ancestors: ExactValue, { entities }: ExactRequest): boolean {
  const wanted = new Set((isSet(ancestors) ? ancestors : [ancestors]).map((ancestor) => asEntity(ancestor).key));
  const seen = new Set([entity.key]);
  for (const key of seen) {
    if (wanted.has(key)) return true;
    for (const parent of entities.get(key)?.parents ?? []) seen.add(parent.key);
  }
  return false;
}

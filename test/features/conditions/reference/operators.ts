// What each operator and function of Cedar means (docs.cedarpolicy.com, "Operators and functions to use in Cedar").
// An operator gets its operands unevaluated, and decides which of them it evaluates: a test replaces one operator in
// this table by a wrong one, and expects the campaign to notice it.

import { parseDatetime, parseDecimal, parseDuration, parseIp } from './extensions.js';
import type { EntityData, EvaluationRequest } from './request.js';
import {
  boolOf,
  contains,
  containsAll,
  type EntityUid,
  errorOf,
  type Evaluated,
  type IpAddress,
  isEqual,
  keyOf,
  numberOf,
  type Value,
} from './values.js';

export type Operand = () => Evaluated;
export type Operator = (operands: readonly Operand[], request: EvaluationRequest) => Evaluated;

type ValueOf<Type extends Value['type']> = Extract<Value, { readonly type: Type }>;
type Strict<Types extends readonly Value['type'][]> = (
  values: { readonly [Index in keyof Types]: ValueOf<Types[Index]> },
  request: EvaluationRequest,
) => Evaluated;

/** An operator that evaluates all operands, from the left, and then requires their types. */
function typed<const Types extends readonly Value['type'][]>(types: Types, operate: Strict<Types>): Operator {
  return withValues((values, request) => {
    const isTyped = types.every((type, index) => values[index]?.type === type);
    return isTyped ? operate(values as unknown as Parameters<Strict<Types>>[0], request) : errorOf('type');
  });
}

function withValues(operate: (values: readonly Value[], request: EvaluationRequest) => Evaluated): Operator {
  return (operands, request) => {
    const values: Value[] = [];
    for (const operand of operands) {
      const value = operand();
      if (value.type === 'error') return value;
      values.push(value);
    }
    return operate(values, request);
  };
}

/** An operand that has to be a bool. */
function boolean(operand: Operand | undefined): Evaluated {
  const value = operand?.() ?? errorOf('type');
  return value.type === 'bool' || value.type === 'error' ? value : errorOf('type');
}

const isTrue = (value: Evaluated): boolean => value.type === 'bool' && value.value;
const isFalse = (value: Evaluated): boolean => value.type === 'bool' && !value.value;

const equality = (equal: boolean): Operator =>
  withValues(([left, right]) =>
    left === undefined || right === undefined ? errorOf('type') : boolOf(isEqual(left, right) === equal),
  );

/** Longs, datetimes and durations are compared with their own type only. */
const comparison = (compare: (left: bigint, right: bigint) => boolean): Operator =>
  withValues(([left, right]) => {
    if (left?.type !== 'long' && left?.type !== 'datetime' && left?.type !== 'duration') return errorOf('type');
    return right?.type === left.type ? boolOf(compare(left.value, right.value)) : errorOf('type');
  });

const decimalComparison = (compare: (left: bigint, right: bigint) => boolean): Operator =>
  typed(['decimal', 'decimal'], ([left, right]) => boolOf(compare(left.value, right.value)));

const arithmetic = (calculate: (left: bigint, right: bigint) => bigint): Operator =>
  typed(['long', 'long'], ([left, right]) => numberOf('long', calculate(left.value, right.value)));

const extension = (parse: (text: string) => Evaluated): Operator => typed(['string'], ([{ value }]) => parse(value));

/** Whole units in a duration. What is left over is dropped, also of a negative duration. */
const wholeUnits = (milliseconds: bigint): Operator =>
  typed(['duration'], ([{ value }]) => numberOf('long', value / milliseconds));

/** In its own hierarchy an entity is always, whether it exists or not. */
function isDescendant(entity: EntityUid, ancestor: EntityUid, { entities }: EvaluationRequest): boolean {
  const seen = new Set([keyOf(entity)]);
  for (const key of seen) for (const parent of entities.get(key)?.parents ?? []) seen.add(keyOf(parent));
  return seen.has(keyOf(ancestor));
}

const isIn = withValues(([entity, right], request) => {
  if (entity?.type !== 'entity') return errorOf('type');
  if (right?.type === 'entity') return boolOf(isDescendant(entity, right, request));
  if (right?.type !== 'set') return errorOf('type');
  // A member that is no entity is an error, wherever it stands.
  const ancestors = right.members.filter((member): member is EntityUid => member.type === 'entity');
  if (ancestors.length < right.members.length) return errorOf('type');
  return boolOf(ancestors.some((ancestor) => isDescendant(entity, ancestor, request)));
});

type Lookup = (data: EntityData, name: string) => Value | undefined;
const attribute: Lookup = ({ attributes }, name) => attributes.get(name);
const tag: Lookup = ({ tags }, name) => tags.get(name);

/** The value of a name in a record or entity. Null if the value is neither. */
function lookUp(
  value: Value | undefined,
  name: string,
  { entities }: EvaluationRequest,
  get: Lookup,
): Value | null | undefined {
  if (value?.type === 'record' && get === attribute) return value.fields.get(name);
  if (value?.type !== 'entity') return null;
  const data = entities.get(keyOf(value));
  return data === undefined ? undefined : get(data, name);
}

const presence = (get: Lookup): Operator =>
  withValues(([value, name], request) => {
    if (name?.type !== 'string') return errorOf('type');
    const found = lookUp(value, name.value, request, get);
    return found === null ? errorOf('type') : boolOf(found !== undefined);
  });

const access = (get: Lookup): Operator =>
  withValues(([value, name], request) => {
    if (name?.type !== 'string') return errorOf('type');
    const found = lookUp(value, name.value, request, get);
    return found === null ? errorOf('type') : (found ?? errorOf('missing'));
  });

/** Each part is searched behind the one before it; the first is at the beginning, and the last at the end. */
function matches(text: string, parts: readonly string[]): boolean {
  const [first = '', ...others] = parts;
  const last = others.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

/** The first address of a range. */
const networkOf = ({ version, address }: IpAddress, prefix: number): bigint =>
  address >> BigInt((version === 4 ? 32 : 128) - prefix);

const isInRange = (ip: IpAddress, range: IpAddress): boolean =>
  ip.version === range.version &&
  ip.prefix >= range.prefix &&
  networkOf(ip, range.prefix) === networkOf(range, range.prefix);

/** Whether an address is in the range that its version has for a purpose. */
const isInRangeOf = (range4: string, range6: string): Operator =>
  typed(['ip'], ([ip]) => {
    const range = parseIp(ip.version === 4 ? range4 : range6);
    return boolOf(range.type === 'ip' && isInRange(ip, range));
  });

const DAY = 86_400_000n;
/** Milliseconds since midnight, before 1970 too. */
const timeOfDay = (value: bigint): bigint => ((value % DAY) + DAY) % DAY;

const LOGIC = {
  '!': typed(['bool'], ([{ value }]) => boolOf(!value)),
  '&&': ([left, right]) => {
    const first = boolean(left);
    return isTrue(first) ? boolean(right) : first;
  },
  '||': ([left, right]) => {
    const first = boolean(left);
    return isFalse(first) ? boolean(right) : first;
  },
  if: ([condition, then, otherwise]) => {
    const value = boolean(condition);
    if (value.type === 'error') return value;
    return (isTrue(value) ? then : otherwise)?.() ?? errorOf('type');
  },
} satisfies Record<string, Operator>;

const COMPARISONS = {
  '==': equality(true),
  '!=': equality(false),
  '<': comparison((left, right) => left < right),
  '<=': comparison((left, right) => left <= right),
  '>': comparison((left, right) => left > right),
  '>=': comparison((left, right) => left >= right),
  lessThan: decimalComparison((left, right) => left < right),
  lessThanOrEqual: decimalComparison((left, right) => left <= right),
  greaterThan: decimalComparison((left, right) => left > right),
  greaterThanOrEqual: decimalComparison((left, right) => left >= right),
  like: typed(['string', 'pattern'], ([{ value }, { parts }]) => boolOf(matches(value, parts))),
} satisfies Record<string, Operator>;

const ARITHMETIC = {
  '+': arithmetic((left, right) => left + right),
  '-': arithmetic((left, right) => left - right),
  '*': arithmetic((left, right) => left * right),
  negate: typed(['long'], ([{ value }]) => numberOf('long', -value)),
} satisfies Record<string, Operator>;

const ENTITIES_AND_SETS = {
  in: isIn,
  is: typed(['entity', 'string'], ([{ entityType }, { value }]) => boolOf(entityType === value)),
  has: presence(attribute),
  '.': access(attribute),
  hasTag: presence(tag),
  getTag: access(tag),
  contains: withValues(([set, value]) =>
    set?.type === 'set' && value !== undefined ? boolOf(contains(set, value)) : errorOf('type'),
  ),
  containsAll: typed(['set', 'set'], ([set, members]) => boolOf(containsAll(set, members))),
  containsAny: typed(['set', 'set'], ([set, { members }]) => boolOf(members.some((member) => contains(set, member)))),
  isEmpty: typed(['set'], ([{ members }]) => boolOf(members.length === 0)),
} satisfies Record<string, Operator>;

const EXTENSIONS = {
  decimal: extension(parseDecimal),
  datetime: extension(parseDatetime),
  duration: extension(parseDuration),
  ip: extension(parseIp),
  offset: typed(['datetime', 'duration'], ([at, by]) => numberOf('datetime', at.value + by.value)),
  durationSince: typed(['datetime', 'datetime'], ([at, since]) => numberOf('duration', at.value - since.value)),
  toDate: typed(['datetime'], ([{ value }]) => numberOf('datetime', value - timeOfDay(value))),
  toTime: typed(['datetime'], ([{ value }]) => numberOf('duration', timeOfDay(value))),
  toMilliseconds: wholeUnits(1n),
  toSeconds: wholeUnits(1_000n),
  toMinutes: wholeUnits(60_000n),
  toHours: wholeUnits(3_600_000n),
  toDays: wholeUnits(DAY),
  isIpv4: typed(['ip'], ([{ version }]) => boolOf(version === 4)),
  isIpv6: typed(['ip'], ([{ version }]) => boolOf(version === 6)),
  isLoopback: isInRangeOf('127.0.0.0/8', '::1/128'),
  isMulticast: isInRangeOf('224.0.0.0/4', 'ff00::/8'),
  isInRange: typed(['ip', 'ip'], ([ip, range]) => boolOf(isInRange(ip, range))),
} satisfies Record<string, Operator>;

export const OPERATORS = { ...LOGIC, ...COMPARISONS, ...ARITHMETIC, ...ENTITIES_AND_SETS, ...EXTENSIONS } as const;

export type OperatorName = keyof typeof OPERATORS;
export type Operators = Readonly<Record<OperatorName, Operator>>;

// One wrong operator for each operator of the reference. The campaign has to notice each of them: a comparison that
// notices no fault in an operator shows nothing of that operator.

import { type Operator, OPERATORS, type OperatorName, type Operators } from './reference/operators.js';
import { parseIp } from './reference/extensions.js';
import { boolOf, errorOf, type Evaluated, isEqual, keyOf, type Value } from './reference/values.js';

/** The operator with another result for some operands. Null leaves the result. */
const changed = (
  name: OperatorName,
  change: (values: readonly Evaluated[], result: Evaluated) => Evaluated | null,
): Operator => {
  return (operands, request) => {
    const result = OPERATORS[name](operands, request);
    return (
      change(
        operands.map((operand) => operand()),
        result,
      ) ?? result
    );
  };
};

const isError = ({ type }: Evaluated): boolean => type === 'error';

/** Evaluates every operand, also where the result does not depend on it. */
const eager = (name: OperatorName): Operator =>
  changed(name, (values) => (values.some(isError) ? errorOf('type') : null));

/** Answers where an evaluation has to fail. */
const lenient = (name: OperatorName, instead: Value = boolOf(false)): Operator =>
  changed(name, (values, result) => (isError(result) && !values.some(isError) ? instead : null));

const otherTypesFail = (name: OperatorName): Operator =>
  changed(name, ([left, right]) => (left?.type === right?.type ? null : errorOf('type')));

/** Calculates with as many bits as the result needs, and then drops all but 64. */
const wrapping = (name: OperatorName, calculate: (left: bigint, right: bigint) => bigint): Operator =>
  changed(name, ([left, right], result) => {
    if (result.type !== 'error' || result.cause !== 'overflow') return null;
    const numbers = [left, right].map((value) => (value?.type === 'long' ? value.value : 0n));
    return { type: 'long', value: BigInt.asIntN(64, calculate(numbers[0] ?? 0n, numbers[1] ?? 0n)) };
  });

/** Rounds a negative number down, where Cedar rounds it to zero. */
const roundingDown = (name: OperatorName, unit: bigint): Operator =>
  changed(name, ([value], result) =>
    value?.type === 'duration' && result.type === 'long' && value.value < 0n && value.value % unit !== 0n
      ? { type: 'long', value: result.value - 1n }
      : null,
  );

const DAY = 86_400_000n;

/** Rounds a time before 1970 up, where Cedar rounds it down. */
const roundingUp = (name: 'toDate' | 'toTime'): Operator =>
  changed(name, ([value], result) => {
    if (value?.type !== 'datetime' || value.value >= 0n || result.type === 'error') return null;
    const rest = value.value % DAY;
    return name === 'toDate' ? { type: 'datetime', value: value.value - rest } : { type: 'duration', value: rest };
  });

const swapped =
  (name: OperatorName): Operator =>
  (operands, request) =>
    OPERATORS[name]([...operands].reverse(), request);

/** Looks at the address of a range only. */
const withoutPrefix =
  (name: OperatorName): Operator =>
  ([ip, range], request) => {
    const value = ip?.() ?? errorOf('type');
    const operand = (): Evaluated =>
      value.type === 'ip' ? { ...value, prefix: value.version === 4 ? 32 : 128 } : value;
    return OPERATORS[name](range === undefined ? [operand] : [operand, range], request);
  };

const LOCALHOST = parseIp('127.0.0.1') as Value;

const ONE_FOR_EACH: Operators = {
  '!': changed('!', ([value]) => value ?? null),
  '&&': eager('&&'),
  '||': eager('||'),
  if: eager('if'),
  '==': otherTypesFail('=='),
  '!=': otherTypesFail('!='),
  '<': OPERATORS['<='],
  '<=': OPERATORS['<'],
  '>': OPERATORS['>='],
  '>=': OPERATORS['>'],
  lessThan: OPERATORS.lessThanOrEqual,
  lessThanOrEqual: OPERATORS.lessThan,
  greaterThan: OPERATORS.greaterThanOrEqual,
  greaterThanOrEqual: OPERATORS.greaterThan,
  // Ignores what follows the last wildcard.
  like: ([text, pattern], request) => {
    const value = pattern?.() ?? errorOf('type');
    const parts = value.type === 'pattern' && value.parts.length > 1 ? [...value.parts.slice(0, -1), ''] : null;
    const open = (): Evaluated => (parts === null ? value : { type: 'pattern', parts });
    return OPERATORS.like(text === undefined ? [] : [text, open], request);
  },
  '+': wrapping('+', (left, right) => left + right),
  '-': wrapping('-', (left, right) => left - right),
  '*': wrapping('*', (left, right) => left * right),
  negate: wrapping('negate', (value) => -value),
  // Accepts a set with members that are no entities.
  in: lenient('in'),
  is: lenient('is'),
  has: lenient('has'),
  '.': lenient('.'),
  hasTag: lenient('hasTag'),
  getTag: lenient('getTag'),
  contains: lenient('contains'),
  containsAll: OPERATORS.containsAny,
  containsAny: OPERATORS.containsAll,
  isEmpty: lenient('isEmpty'),
  decimal: lenient('decimal', { type: 'decimal', value: 0n }),
  datetime: lenient('datetime', { type: 'datetime', value: 0n }),
  duration: lenient('duration', { type: 'duration', value: 0n }),
  ip: lenient('ip', LOCALHOST),
  offset: changed('offset', ([at]) => at ?? null),
  durationSince: swapped('durationSince'),
  toDate: roundingUp('toDate'),
  toTime: roundingUp('toTime'),
  toMilliseconds: OPERATORS.toSeconds,
  toSeconds: roundingDown('toSeconds', 1_000n),
  toMinutes: roundingDown('toMinutes', 60_000n),
  toHours: roundingDown('toHours', 3_600_000n),
  toDays: roundingDown('toDays', DAY),
  isIpv4: OPERATORS.isIpv6,
  isIpv6: OPERATORS.isIpv4,
  isLoopback: withoutPrefix('isLoopback'),
  isMulticast: withoutPrefix('isMulticast'),
  isInRange: withoutPrefix('isInRange'),
};

const setsHaveOrder = changed('==', ([left, right]) => {
  if (left?.type !== 'set' || right?.type !== 'set') return null;
  const isSameLength = left.members.length === right.members.length;
  return boolOf(isSameLength && left.members.every((each, at) => isEqual(each, right.members[at] ?? each)));
});

const onlyParents: Operator = (operands, request) => {
  const entity = operands[0]?.() ?? errorOf('type');
  const own = entity.type === 'entity' ? request.entities.get(keyOf(entity)) : undefined;
  const entities = new Map(entity.type === 'entity' && own !== undefined ? [[keyOf(entity), own]] : []);
  return OPERATORS.in(operands, { ...request, entities });
};

/** A name of a fault, and the operators that have it. */
export const OPERATOR_FAULTS: ReadonlyMap<string, Operators> = new Map([
  ...Object.entries(ONE_FOR_EACH).map(([name, fault]) => [name, { ...OPERATORS, [name]: fault }] as const),
  ['sets have an order', { ...OPERATORS, '==': setsHaveOrder }],
  ['an entity is in its parents only', { ...OPERATORS, in: onlyParents }],
  [
    'an entity is not in itself',
    { ...OPERATORS, in: changed('in', ([left, right]) => (isSameEntity(left, right) ? boolOf(false) : null)) },
  ],
]);

function isSameEntity(left: Evaluated | undefined, right: Evaluated | undefined): boolean {
  return left?.type === 'entity' && right?.type === 'entity' && isEqual(left, right);
}

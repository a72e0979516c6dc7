// The values of Cedar (docs.cedarpolicy.com, "Data types supported by Cedar"), for the reference evaluator.

export interface EntityUid {
  readonly type: 'entity';
  /** With its namespace: `Shop::User`. */
  readonly entityType: string;
  readonly id: string;
}

export interface IpAddress {
  readonly type: 'ip';
  readonly version: 4 | 6;
  readonly address: bigint;
  readonly prefix: number;
}

export interface SetValue {
  readonly type: 'set';
  readonly members: readonly Value[];
}

export interface RecordValue {
  readonly type: 'record';
  readonly fields: ReadonlyMap<string, Value>;
}

type NumberType = 'long' | 'decimal' | 'datetime' | 'duration';
/** A decimal counts ten thousandths, a datetime milliseconds since 1970, and a duration milliseconds. */
type NumberValue = { readonly [Type in NumberType]: { readonly type: Type; readonly value: bigint } }[NumberType];

export type Value =
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | NumberValue
  /** The right operand of `like`, and of nothing else. */
  | { readonly type: 'pattern'; readonly parts: readonly string[] }
  | EntityUid
  | SetValue
  | RecordValue
  | IpAddress;

/** An evaluation that has failed. It is a value, so that an operator decides which operands it evaluates. */
export interface EvaluationError {
  readonly type: 'error';
  readonly cause: 'type' | 'missing' | 'overflow' | 'format';
}

export type Evaluated = Value | EvaluationError;

export const errorOf = (cause: EvaluationError['cause']): EvaluationError => ({ type: 'error', cause });
export const boolOf = (value: boolean): Value => ({ type: 'bool', value });
export const stringOf = (value: string): Value => ({ type: 'string', value });

const LEAST = -(2n ** 63n);
const GREATEST = 2n ** 63n - 1n;

/** Whether a number fits into 64 bits with a sign. */
export const isLong = (value: bigint): boolean => LEAST <= value && value <= GREATEST;

export const numberOf = (type: NumberType, value: bigint): Evaluated =>
  isLong(value) ? { type, value } : errorOf('overflow');

/** Names an entity in a map. No entity type contains a quotation mark. */
export const keyOf = ({ entityType, id }: EntityUid): string => `${entityType}::"${id}`;

/** Same type and same value. Sets have neither order nor repetition. */
export function isEqual(left: Value, right: Value): boolean {
  if (left.type === 'entity' && right.type === 'entity') return keyOf(left) === keyOf(right);
  if (left.type === 'set' && right.type === 'set') return containsAll(left, right) && containsAll(right, left);
  if (left.type === 'record' && right.type === 'record') return isSameRecord(left, right);
  if (left.type === 'ip' && right.type === 'ip') {
    return left.version === right.version && left.address === right.address && left.prefix === right.prefix;
  }
  return left.type === right.type && 'value' in left && 'value' in right && left.value === right.value;
}

export const contains = ({ members }: SetValue, value: Value): boolean =>
  members.some((member) => isEqual(member, value));

export const containsAll = (set: SetValue, { members }: SetValue): boolean =>
  members.every((member) => contains(set, member));

function isSameRecord({ fields: left }: RecordValue, { fields: right }: RecordValue): boolean {
  if (left.size !== right.size) return false;
  return [...left].every(([name, value]) => {
    const other = right.get(name);
    return other !== undefined && isEqual(value, other);
  });
}

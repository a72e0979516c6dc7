// Values as the unmet check holds them. Only what it holds exactly as Cedar does is a value here. Anything else, and
// any mistake of an evaluation, is uncertain: Cedar is asked.

import type { CedarUid, CedarValue } from './cedar.js';

export type ExactValue =
  | boolean
  /** A Long that a number holds exactly. */
  | number
  | string
  | ExactEntity
  | ExactExtension
  /** A set: its members in any order, with repetitions. */
  | readonly ExactValue[]
  | ExactRecord;

export type ExactRecord = ReadonlyMap<string, ExactValue>;

export class ExactEntity {
  /** Different for different entities: a type contains no quotation mark. */
  readonly key: string;
  readonly type: string;

  constructor(type: string, id: string) {
    this.key = `${type}"${id}`;
    this.type = type;
  }
}

const EXTENSIONS = ['decimal', 'datetime', 'duration'] as const;
type ExtensionKind = (typeof EXTENSIONS)[number];

export const isExtensionName = (name: string): boolean => EXTENSIONS.some((known) => known === name);

/** `amount`: ten-thousandths of a decimal, milliseconds since 1970 of a datetime, or milliseconds of a duration. */
export class ExactExtension {
  readonly kind: ExtensionKind;
  readonly amount: number;

  constructor(kind: ExtensionKind, amount: number) {
    this.kind = kind;
    this.amount = amount;
  }
}

/** Says that only Cedar knows the answer. It is thrown for each such request, so it is made once, without its place. */
class UncertainError extends Error {}
const UNCERTAIN = new UncertainError('only Cedar knows');

/** @throws UncertainError */
export function throwUncertain(): never {
  throw UNCERTAIN;
}

/** Whether an error says that only Cedar knows the answer. */
export const isUncertain = (error: unknown): boolean => error === UNCERTAIN;

/** An agent chooses how many values a request has. Sets are compared member by member, so larger ones are for Cedar. */
const VALUES_MAX = 256;

/** Converts the values of one request, or of one policy. */
export class ValueReader {
  #count = 0;

  read(json: CedarValue): ExactValue {
    this.#count += 1;
    if (this.#count > VALUES_MAX) return throwUncertain();
    if (typeof json === 'boolean') return json;
    if (typeof json === 'number') return exactLong(json);
    if (typeof json === 'string') return wellFormed(json);
    if (json === null) return throwUncertain();
    if (Array.isArray(json)) return json.map((member) => this.read(member));
    if ('__extn' in json) return readExtension(json['__extn']);
    if ('__entity' in json) return readEntity(json as { readonly __entity: CedarUid });
    return this.readRecord(json);
  }

  readRecord(json: Readonly<Record<string, CedarValue>>): ExactRecord {
    return new Map(Object.entries(json).map(([name, value]) => [attributeName(name), this.read(value)]));
  }
}

export function readEntity(json: CedarUid | { readonly __entity: CedarUid }): ExactEntity {
  const { type, id } = '__entity' in json ? json.__entity : json;
  return new ExactEntity(type, wellFormed(id));
}

export const exactLong = (value: number): number => (Number.isSafeInteger(value) ? value : throwUncertain());

/** Cedar reads UTF-8, which cannot hold a half of a pair. */
const wellFormed = (text: string): string => (text.isWellFormed() ? text : throwUncertain());

/** Names with this beginning mean something else to Cedar. */
const attributeName = (name: string): string => (name.startsWith('__') ? throwUncertain() : wellFormed(name));

function readExtension(json: unknown): ExactValue {
  const { fn, arg } = json as { readonly fn: string; readonly arg?: unknown };
  return typeof arg === 'string' ? parseExtension(fn, arg) : throwUncertain();
}

/** The value that a function of Cedar makes of a text. Forms that conditions seldom have are uncertain. */
export function parseExtension(name: string, text: string): ExactExtension {
  switch (name) {
    case 'decimal':
      return new ExactExtension(name, parseDecimal(text));
    case 'datetime':
      return new ExactExtension(name, parseDatetime(text));
    case 'duration':
      return new ExactExtension(name, parseDuration(text));
    default:
      return throwUncertain();
  }
}

const DECIMAL = /^(-?)(\d{1,11})\.(\d{1,4})$/;

function parseDecimal(text: string): number {
  const [, sign, whole, fraction = ''] = DECIMAL.exec(text) ?? [];
  if (whole === undefined) return throwUncertain();
  const magnitude = Number(whole) * 10_000 + Number(fraction.padEnd(4, '0'));
  return sign === '-' ? -magnitude : magnitude;
}

const DATETIME = /^[1-9]\d{3}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{3})?Z)?$/;

function parseDatetime(text: string): number {
  const at = DATETIME.test(text) ? Date.parse(text) : NaN;
  // JavaScript has a 30 February and an hour 24, which Cedar refuses.
  if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(text.slice(0, 19))) return throwUncertain();
  return at;
}

const DURATION = /^(-?)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?$/;
const UNITS = [86_400_000, 3_600_000, 60_000, 1_000, 1];

function parseDuration(text: string): number {
  const [, sign, ...amounts]: readonly (string | undefined)[] = DURATION.exec(text) ?? [];
  if (amounts.every((amount) => amount === undefined)) return throwUncertain();
  const magnitude = UNITS.reduce((sum, unit, at) => sum + unit * Number(amounts[at] ?? 0), 0);
  return exactLong(sign === '-' ? -magnitude : magnitude);
}

/** Values of different types are different, and no mistake. */
export function isEqual(one: ExactValue, other: ExactValue): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object') return false;
  if (one instanceof ExactEntity) return other instanceof ExactEntity && one.key === other.key;
  if (one instanceof ExactExtension) {
    return other instanceof ExactExtension && one.kind === other.kind && one.amount === other.amount;
  }
  if (isSet(one)) return isSet(other) && containsAll(one, other) && containsAll(other, one);
  return isRecord(other) && isRecord(one) && isSameRecord(one, other);
}

export const isSet = (value: ExactValue): value is readonly ExactValue[] => Array.isArray(value);
export const isRecord = (value: ExactValue): value is ExactRecord => value instanceof Map;

export const contains = (set: readonly ExactValue[], value: ExactValue): boolean =>
  set.some((member) => isEqual(member, value));

export const containsAll = (set: readonly ExactValue[], values: readonly ExactValue[]): boolean =>
  values.every((value) => contains(set, value));

function isSameRecord(one: ExactRecord, other: ExactRecord): boolean {
  if (one.size !== other.size) return false;
  for (const [name, value] of one) {
    const found = other.get(name);
    if (found === undefined || !isEqual(value, found)) return false;
  }
  return true;
}

export const asBoolean = (value: ExactValue): boolean => (typeof value === 'boolean' ? value : throwUncertain());
export const asLong = (value: ExactValue): number => (typeof value === 'number' ? value : throwUncertain());
export const asString = (value: ExactValue): string => (typeof value === 'string' ? value : throwUncertain());
export const asEntity = (value: ExactValue): ExactEntity => (value instanceof ExactEntity ? value : throwUncertain());
export const asSet = (value: ExactValue): readonly ExactValue[] => (isSet(value) ? value : throwUncertain());
export const asExtension = (value: ExactValue): ExactExtension =>
  value instanceof ExactExtension ? value : throwUncertain();

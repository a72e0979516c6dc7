// JSON: the one canonical text of a value, the parser of texts that this program has written, and the strict scanner of
// all others. The page of the inspector imports this file, so it has no packages.

import { InvariantError } from '../errors.js';

/** A JSON value from the strict scanner: objects have no prototype, numbers are finite. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Parses JSON that this program has written: an entry or a response of the ledger, whose hash is compared elsewhere, or
 * a message of its own. For text that something else has written, use `readJson`: JSON.parse takes the last of two
 * equal members. `test/borders.test.ts` says where neither is a choice.
 * @throws SyntaxError
 */
export const parseOwnJson = (text: string): unknown => JSON.parse(text);

// Canonical JSON: RFC 8785 (JCS). This is part of the contract because every layer needs the same function: a hash in a
// ledger entry, a request hash and a pin all mean the hash of a value's one canonical text.

/** Maximum depth of a value. Proposals are limited to 32 levels; entries wrap them in a few more. */
const DEPTH_MAX = 128;

/**
 * The canonical text of a JSON value: keys sorted by UTF-16 code unit, no white space, ECMAScript numbers. Members that
 * are `undefined` are left out, as in JSON.stringify.
 * @throws InvariantError for a value that JSON cannot express: NaN, Infinity, a lone surrogate, a function, depth over
 * 128
 */
export const canonicalJson = (value: unknown): string => write(value, 0);

function write(value: unknown, depth: number): string {
  if (depth > DEPTH_MAX) throw new InvariantError('value is too deep for canonical JSON');
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'number':
      if (!Number.isFinite(value)) throw new InvariantError('a number in canonical JSON must be finite');
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? writeArray(value, depth) : writeObject(value as Record<string, unknown>, depth);
    default:
      throw new InvariantError(`canonical JSON cannot hold a ${typeof value}`);
  }
}

const writeArray = (items: readonly unknown[], depth: number): string =>
  `[${Array.from(items, (item) => write(item, depth + 1)).join(',')}]`;

function writeObject(object: Record<string, unknown>, depth: number): string {
  let text = '';
  for (const key of Object.keys(object).sort()) {
    const member = object[key];
    if (member === undefined) continue;
    text += `${text === '' ? '' : ','}${quote(key)}:${write(member, depth + 1)}`;
  }
  return `{${text}}`;
}

/** Characters that JSON may have to escape. Most ids, hashes, names and times contain none of them. */
const SPECIAL = /[^ !#-[\]-~]/;

/**
 * A string in canonical JSON.
 * @throws InvariantError for a lone surrogate
 */
export function quote(text: string): string {
  if (!SPECIAL.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw new InvariantError('canonical JSON cannot hold a lone surrogate');
  return JSON.stringify(text);
}

// C89: a number is parsed into a double and serialized as the shortest decimal that denotes this double. Below 2^53
// every integer survives this, and only fractions are rounded. From 2^53 on, integers are rounded too:
// 9007199254740993 becomes 9007199254740992, which can be the number of another account.

/** Doubles represent every integer below this bound. */
const EXACT_BELOW = 2 ** 53;

/** Whether the decimal `written` survives the conversion to a double. @param value `written` as a finite double */
export const isExactNumber = (written: string, value: number): boolean =>
  Math.abs(value) < EXACT_BELOW || normalizeDecimal(written) === normalizeDecimal(String(value));

/** Returns the digits without zeros at either end, and the position of the point: equal numbers give equal texts. */
function normalizeDecimal(decimal: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(decimal) ?? [];
  const digits = `${whole}${fraction}`;
  const significant = digits.replace(/^0+/, '');
  const point = whole.length + Number(exponent) - (digits.length - significant.length);
  return `${sign}${significant.replace(/0+$/, '')}e${point}`;
}
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

// The strict JSON scanner of PARSE (C12). JSON.parse takes the last of two equal keys, accepts `__proto__` as a key,
// turns 1e999 into Infinity, accepts lone surrogates and has no limit of depth. Each of these can make two readers of
// one text disagree, or crash one of them. The whole text is attacker-controlled.

/** Why the scanner rejects a text. The value is part of a rule id, so it is recorded and must not change. */
export type JsonProblem =
  | 'syntax'
  | 'byte_order_mark'
  | 'control_character'
  | 'lone_surrogate'
  | 'duplicate_key'
  | 'reserved_key'
  | 'number_not_finite'
  | 'number_not_exact'
  | 'too_deep'
  | 'text_after_value';

type ScanResult = { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly problem: JsonProblem };

/** Returned in place of a value, after the cursor's `problem` is set. */
const SCAN_FAILED = Symbol('refused');

/** C89: `exact` rejects a number that a double cannot represent; `rounded` rounds it as JSON.parse does. */
type NumberMode = 'exact' | 'rounded';

/** The state of one call of `scanJson`. Nothing else in this file is mutable. */
interface ScanCursor {
  readonly text: string;
  at: number;
  problem: JsonProblem;
  readonly numbers: NumberMode;
}

const BYTE_ORDER_MARK = 0xfeff;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const UPPER_E = 0x45;
const LOWER_E = 0x65;
const LOWER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Parses `text` as exactly one RFC 8259 value. Besides syntax errors it rejects duplicate keys (also if one of them is
 * escaped), the key `__proto__`, lone surrogates, a byte order mark, numbers that are not finite, and more than
 * `depth_max` nested arrays and objects.
 *
 * The recursion is `depth_max` levels deep, so it must be small: the contract limits it to 64.
 * @param numbers `exact` rejects, from 2^53 on, a number whose digits a double does not preserve (C89)
 * @returns a value whose objects have no prototype, or the problem
 */
export function scanJson(text: string, depth_max: number, numbers: NumberMode = 'rounded'): ScanResult {
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) return { ok: false, problem: 'byte_order_mark' };
  const cursor: ScanCursor = { text, at: 0, problem: 'syntax', numbers };
  const value = scanValue(cursor, depth_max);
  if (value === SCAN_FAILED) return { ok: false, problem: cursor.problem };
  skipSpace(cursor);
  return cursor.at === text.length ? { ok: true, value } : { ok: false, problem: 'text_after_value' };
}

/** Returns the index in `text` near which `scanJson` rejects it, to help an author correct the text. */
export function findErrorPosition(text: string, depth_max: number): number {
  const cursor: ScanCursor = { text, at: 0, problem: 'syntax', numbers: 'rounded' };
  if (scanValue(cursor, depth_max) !== SCAN_FAILED) skipSpace(cursor);
  return Math.min(cursor.at, text.length);
}

function fail(cursor: ScanCursor, problem: JsonProblem): typeof SCAN_FAILED {
  cursor.problem = problem;
  return SCAN_FAILED;
}

/** Moves the cursor past white space. @returns the code of the next character, or NaN at the end */
function skipSpace(cursor: ScanCursor): number {
  const { text } = cursor;
  let code = text.charCodeAt(cursor.at);
  while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = text.charCodeAt(++cursor.at);
  return code;
}

/** @param depthLeft how many more levels may be opened */
function scanValue(cursor: ScanCursor, depthLeft: number): Json | typeof SCAN_FAILED {
  const code = skipSpace(cursor);
  switch (code) {
    case QUOTE:
      return scanString(cursor);
    case OPEN_OBJECT:
      return depthLeft === 0 ? fail(cursor, 'too_deep') : scanObject(cursor, depthLeft - 1);
    case OPEN_ARRAY:
      return depthLeft === 0 ? fail(cursor, 'too_deep') : scanArray(cursor, depthLeft - 1);
    case 0x74:
      return scanWord(cursor, 'true', true);
    case 0x66:
      return scanWord(cursor, 'false', false);
    case 0x6e:
      return scanWord(cursor, 'null', null);
    default:
      return code === MINUS || isDigit(code) ? scanNumber(cursor) : fail(cursor, 'syntax');
  }
}

function scanWord(cursor: ScanCursor, word: string, value: Json): Json | typeof SCAN_FAILED {
  if (!cursor.text.startsWith(word, cursor.at)) return fail(cursor, 'syntax');
  cursor.at += word.length;
  return value;
}

function scanObject(cursor: ScanCursor, depthLeft: number): JsonObject | typeof SCAN_FAILED {
  const object = Object.create(null) as Record<string, Json>;
  cursor.at++;
  if (skipSpace(cursor) === CLOSE_OBJECT) {
    cursor.at++;
    return object;
  }
  for (;;) {
    if (skipSpace(cursor) !== QUOTE) return fail(cursor, 'syntax');
    const key = scanString(cursor);
    if (key === SCAN_FAILED) return SCAN_FAILED;
    if (key === '__proto__') return fail(cursor, 'reserved_key');
    // The object has no prototype and no undefined member, so this tests for an own key.
    if (object[key] !== undefined) return fail(cursor, 'duplicate_key');
    if (skipSpace(cursor) !== COLON) return fail(cursor, 'syntax');
    cursor.at++;
    const value = scanValue(cursor, depthLeft);
    if (value === SCAN_FAILED) return SCAN_FAILED;
    object[key] = value;
    const code = skipSpace(cursor);
    cursor.at++;
    if (code === CLOSE_OBJECT) return object;
    if (code !== COMMA) return fail(cursor, 'syntax');
  }
}

function scanArray(cursor: ScanCursor, depthLeft: number): readonly Json[] | typeof SCAN_FAILED {
  const items: Json[] = [];
  cursor.at++;
  if (skipSpace(cursor) === CLOSE_ARRAY) {
    cursor.at++;
    return items;
  }
  for (;;) {
    const value = scanValue(cursor, depthLeft);
    if (value === SCAN_FAILED) return SCAN_FAILED;
    items.push(value);
    const code = skipSpace(cursor);
    cursor.at++;
    if (code === CLOSE_ARRAY) return items;
    if (code !== COMMA) return fail(cursor, 'syntax');
  }
}

/** Scans a string. Without an escape, it is one slice of the text. */
function scanString(cursor: ScanCursor): string | typeof SCAN_FAILED {
  const start = cursor.at + 1;
  const end = scanPlain(cursor, start);
  if (end === SCAN_FAILED) return SCAN_FAILED;
  const plain = cursor.text.slice(start, end);
  if (cursor.text.charCodeAt(end) === BACKSLASH) return scanEscaped(cursor, plain, end);
  cursor.at = end + 1;
  return plain;
}

/** Scans the rest of a string after `head`, from the backslash at `at` to the closing quote. */
function scanEscaped(cursor: ScanCursor, head: string, at: number): string | typeof SCAN_FAILED {
  const { text } = cursor;
  let value = head;
  while (text.charCodeAt(at) === BACKSLASH) {
    const escaped = scanEscape(cursor, at + 1);
    if (escaped === SCAN_FAILED) return SCAN_FAILED;
    const start = cursor.at;
    const end = scanPlain(cursor, start);
    if (end === SCAN_FAILED) return SCAN_FAILED;
    value += escaped + text.slice(start, end);
    at = end;
  }
  cursor.at = at + 1;
  return value;
}

/** @returns the index of the next quote or backslash */
function scanPlain(cursor: ScanCursor, start: number): number | typeof SCAN_FAILED {
  const { text } = cursor;
  let surrogates = false;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === BACKSLASH) {
      return surrogates && !text.slice(start, at).isWellFormed() ? fail(cursor, 'lone_surrogate') : at;
    }
    if (code < 0x20) return fail(cursor, 'control_character');
    if (code >= 0xd800 && code <= 0xdfff) surrogates = true;
  }
  return fail(cursor, 'syntax');
}

/** Keyed by the code of the character after the backslash. */
const ESCAPES: ReadonlyMap<number, string> = new Map([
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
  [0x2f, '/'],
  [0x62, '\b'],
  [0x66, '\f'],
  [0x6e, '\n'],
  [0x72, '\r'],
  [0x74, '\t'],
]);

/** Scans the escape whose character after the backslash is at `at`, and moves the cursor past it. */
function scanEscape(cursor: ScanCursor, at: number): string | typeof SCAN_FAILED {
  const { text } = cursor;
  const letter = text.charCodeAt(at);
  cursor.at = at + 1;
  if (letter !== LOWER_U) return ESCAPES.get(letter) ?? fail(cursor, 'syntax');
  const unit = hexUnit(text, at + 1);
  if (unit === undefined) return fail(cursor, 'syntax');
  cursor.at = at + 5;
  if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
  const low =
    text.charCodeAt(at + 5) === BACKSLASH && text.charCodeAt(at + 6) === LOWER_U ? hexUnit(text, at + 7) : undefined;
  if (unit > 0xdbff || low === undefined || low < 0xdc00 || low > 0xdfff) return fail(cursor, 'lone_surrogate');
  cursor.at = at + 11;
  return String.fromCharCode(unit, low);
}

/** The UTF-16 code unit that the four hex digits at `at` denote; undefined if they are not hex digits. */
function hexUnit(text: string, at: number): number | undefined {
  let unit = 0;
  for (let index = at; index < at + 4; index++) {
    const code = text.charCodeAt(index);
    const lower = code | 0x20;
    if (isDigit(code)) unit = unit * 16 + code - ZERO;
    else if (lower >= 0x61 && lower <= 0x66) unit = unit * 16 + lower - 0x57;
    else return undefined;
  }
  return unit;
}

const isDigit = (code: number): boolean => code >= ZERO && code <= 0x39;

function skipDigits(text: string, at: number): number {
  while (isDigit(text.charCodeAt(at))) at++;
  return at;
}

function scanNumber(cursor: ScanCursor): number | typeof SCAN_FAILED {
  const { text, at: start } = cursor;
  const whole = text.charCodeAt(start) === MINUS ? start + 1 : start;
  // No digit may follow a leading zero: in "01" the number ends after the 0, and the caller rejects the 1.
  let at = text.charCodeAt(whole) === ZERO ? whole + 1 : skipDigits(text, whole);
  if (at === whole) return fail(cursor, 'syntax');
  if (text.charCodeAt(at) === POINT) {
    const fraction = at + 1;
    at = skipDigits(text, fraction);
    if (at === fraction) return fail(cursor, 'syntax');
  }
  const mark = text.charCodeAt(at);
  if (mark === UPPER_E || mark === LOWER_E) {
    const sign = text.charCodeAt(at + 1);
    const exponent = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = skipDigits(text, exponent);
    if (at === exponent) return fail(cursor, 'syntax');
  }
  cursor.at = at;
  const value = Number(text.slice(start, at));
  if (!Number.isFinite(value)) return fail(cursor, 'number_not_finite');
  return cursor.numbers === 'rounded' || isExactNumber(text.slice(start, at), value)
    ? value
    : fail(cursor, 'number_not_exact');
}

/** The nesting that a text from outside may have. */
export const OUTSIDE_DEPTH_MAX = 64;

/**
 * Reads JSON that something else has written: a service, a client, a file. A member that is there twice makes the text
 * invalid, because two readers of it could see two values.
 * @returns undefined for any text that is not exactly one strict value in UTF-8
 */
export function readJson(given: Uint8Array | string, depth_max = OUTSIDE_DEPTH_MAX): Json | undefined {
  const text = typeof given === 'string' ? given : decode(given);
  const scanned = text === undefined ? undefined : scanJson(text, depth_max);
  return scanned?.ok === true ? scanned.value : undefined;
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

// Values as PostgreSQL reads and writes them.

import { InvariantError } from '../../core/errors.js';
import { tamperedError } from '../ledger/store-errors.js';

/** A row as the server sent it: every value is its text. */
export type Row = Readonly<Record<string, string | null>>;

// Arrays of parameters: the driver would quote each element in several passes, and the arrays of a commit have an
// element for each tree, mark or content.

/** Parameters of a statement: arrays as text, everything else unchanged. @throws InvariantError as `arrayLiteral` */
export const toParameters = (values: readonly unknown[]): unknown[] =>
  values.map((value) => (Array.isArray(value) ? arrayLiteral(value) : value));

/** An array of strings, numbers, booleans and nulls. @throws InvariantError for anything else */
export function arrayLiteral(items: readonly unknown[]): string {
  let text = '';
  for (const item of items) text += `${text === '' ? '' : ','}${elementText(item)}`;
  return `{${text}}`;
}

const SPECIAL = /["\\]/;

function elementText(item: unknown): string {
  switch (typeof item) {
    case 'string':
      return SPECIAL.test(item) ? `"${item.replaceAll(/["\\]/g, '\\$&')}"` : `"${item}"`;
    case 'number':
    case 'boolean':
      return String(item);
    default:
      if (item === null || item === undefined) return 'NULL';
      throw new InvariantError(`an array parameter cannot hold a value of type ${typeof item}`);
  }
}

/** Collects bytes; positions are those of SQL, which begin at 1. */
export class ByteColumn {
  readonly at: number[] = [];
  readonly lengths: number[] = [];
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** @returns where the bytes are, and how many */
  add(bytes: Uint8Array): { readonly at: number; readonly bytes: number } {
    const place = { at: this.#length + 1, bytes: bytes.byteLength };
    this.at.push(place.at);
    this.lengths.push(place.bytes);
    this.#parts.push(bytes);
    this.#length += bytes.byteLength;
    return place;
  }

  toBuffer(): Buffer {
    return Buffer.concat(this.#parts, this.#length);
  }
}

// Values of rows. Stored rows are not trusted: a malformed value is LEDGER_TAMPERED.

/** @param what names the row in the message */
export function textOf(row: Row, column: string, what: string): string {
  const value = row[column];
  if (typeof value === 'string') return value;
  throw tamperedError(`${what} has no ${column}`);
}

export function integerOf(row: Row, column: string, what: string): number {
  const number = Number(row[column] ?? NaN);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw tamperedError(`${what} has an invalid ${column}: ${String(row[column])}`);
}

/** @returns null for a null */
export const integerOrNull = (row: Row, column: string, what: string): number | null =>
  (row[column] ?? null) === null ? null : integerOf(row, column, what);

const BYTES = /^\\x((?:[0-9a-f]{2})*)$/;

/** Bytes as lower-case hex. */
export function hexOf(row: Row, column: string, what: string): string {
  const [, hex] = BYTES.exec(row[column] ?? '') ?? [];
  if (hex !== undefined) return hex;
  throw tamperedError(`${what} has no ${column}`);
}

/** @returns null for a null */
export function bytesOf(row: Row, column: string): Buffer | null {
  const value = row[column];
  return typeof value === 'string' ? Buffer.from(value.slice(2), 'hex') : null;
}

/** Hashes in one column, each in lower-case hex. */
export const hashesOf = (row: Row, column: string, what: string): readonly string[] =>
  hexOf(row, column, what).match(/.{1,64}/g) ?? [];

/** An array of integers, as the server writes it; empty for a null. */
export function integersOf(row: Row, column: string, what: string): readonly number[] {
  const value = row[column] ?? '{}';
  const numbers = value === '{}' ? [] : value.slice(1, -1).split(',').map(Number);
  if (numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) return numbers;
  throw tamperedError(`${what} has invalid ${column}: ${value}`);
}

/** An id as a parameter: PostgreSQL refuses U+0000, which no stored id contains. */
export const idParameter = (id: string): string => id.replaceAll('\0', '\ufffd');

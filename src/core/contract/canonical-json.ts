// RFC 8785 (JCS). This is part of the contract because every layer needs the same function: a hash in a ledger entry, a
// request hash and a pin all mean the hash of a value's one canonical text.

import { InvariantError } from '../errors.js';

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

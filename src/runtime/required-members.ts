// Callers without types may omit any member of their options: the error then names it.

import { usageError } from '../core/errors.js';

const KINDS = {
  text: { words: 'a text', isKind: (value: unknown) => typeof value === 'string' },
  texts: {
    words: 'a list of texts',
    isKind: (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  },
  object: {
    words: 'an object',
    isKind: (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value),
  },
} as const;

/** @throws UsageError that names the first member which is missing or of another kind */
export function requireMembers(options: object, members: Readonly<Record<string, keyof typeof KINDS>>): void {
  const given: unknown = options;
  if (!KINDS.object.isKind(given)) throw usageError('options: they are missing');
  const values = given as Readonly<Record<string, unknown>>;
  for (const [name, kind] of Object.entries(members)) {
    const value = values[name];
    if (KINDS[kind].isKind(value)) continue;
    throw usageError(`${name}: it is ${value === undefined ? 'missing' : `not ${KINDS[kind].words}`}`);
  }
}

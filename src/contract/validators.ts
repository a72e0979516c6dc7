// Compiled validators of the contract's documents, each compiled on first use.

import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import {
  ENTRY_BODIES,
  INPUT_SCHEMAS,
  type EntryBody,
  type EntryType,
  type InputKind,
  type RecordedInput,
} from './run/entry.js';

const compiled = new Map<TSchema, (value: unknown) => boolean>();

/** Whether `value` is an instance of `schema`. Values must come from a parser: inherited members count as present. */
export function isConforming(schema: TSchema, value: unknown): boolean {
  let check = compiled.get(schema);
  if (check === undefined) {
    const validator = Compile(schema);
    check = (instance) => validator.Check(instance);
    compiled.set(schema, check);
  }
  return check(value);
}

export const isEntryBody = <T extends EntryType>(type: T, value: unknown): value is EntryBody<T> =>
  isConforming(ENTRY_BODIES[type], value);

export function isRecordedInput(value: unknown): value is RecordedInput {
  const kind = (value as { kind?: unknown } | null)?.kind;
  return (
    typeof kind === 'string' &&
    Object.hasOwn(INPUT_SCHEMAS, kind) &&
    isConforming(INPUT_SCHEMAS[kind as InputKind], value)
  );
}

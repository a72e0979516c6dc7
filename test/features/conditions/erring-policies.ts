// Policies whose evaluation always fails, whatever the request is.

import type { Chance } from './chance.js';
import type { PolicyText } from './generate-conditions.js';

export const ERRING_CLAUSES = [
  // Operands of another type.
  'when { 1 }',
  'unless { "text" }',
  'when { 1 < "1" }',
  'when { 1 in [] }',
  'when { true && 3 }',
  'when { if 1 then true else true }',
  'when { "a".containsAll([]) }',
  'when { datetime("1970-01-01") < 1 }',
  'when { decimal("1.0") < decimal("2.0") }',
  'when { true has a }',
  'unless { action is Action in 1 }',
  'when { ip("::1").lessThan(decimal("1.0")) }',
  // What is missing.
  'when { context.absent == 1 }',
  'unless { context.absent.also.absent }',
  'when { principal.absent like "*" }',
  'when { resource.getTag("absent") == "a" }',
  'unless { Actor::"ghost".team == "a" }',
  // Numbers that do not fit.
  'when { 9223372036854775807 + 1 == 0 }',
  'when { -9223372036854775807 - 2 == 0 }',
  'when { 4611686018427387904 * 2 == 0 }',
  'unless { -(-9223372036854775808) == 0 }',
  'when { datetime("9999-12-31").offset(duration("9223372036854775807ms")) == 0 }',
  // Texts that no function accepts.
  'when { decimal("1") == decimal("1.0") }',
  'when { datetime("2026-02-29") == 0 }',
  'when { duration("1s1m") == 0 }',
  'when { ip("10.0.0.1/33") == 0 }',
] as const;

export const PLANTED = 'planted';
export const policyOf = (clause: string): PolicyText => ({
  id: PLANTED,
  text: `forbid (principal, action, resource) ${clause};`,
});

/** Puts one of them anywhere into a set. */
export function plantErring(conditions: readonly PolicyText[], chance: Chance): readonly PolicyText[] {
  const planted = policyOf(chance.pick(ERRING_CLAUSES));
  return conditions.toSpliced(chance.below(conditions.length + 1), 0, planted);
}

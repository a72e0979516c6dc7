// Globs of call rules (0061).

import { expect, test } from '@jest/globals';
import { matchesGlob, matchesGlobInAnyCase } from '../../../../src/features/hooks/calls/glob.js';

test.each<[string, string, boolean]>([
  ['**', '.', true],
  ['**', 'a/b/c', true],
  ['**/.env*', '.env', true],
  ['**/.env*', 'a/b/.env.local', true],
  ['**/.env*', 'a/env', false],
  ['**/.git/**', '.git/config', true],
  ['**/.git/**', '.git', true],
  ['**/.git/**', 'a/.git/b/c', true],
  ['**/.git/**', '.github/x', false],
  ['src/*.ts', 'src/a.ts', true],
  ['src/*.ts', 'src/b/a.ts', false],
  ['src/**/*.ts', 'src/a.ts', true],
  ['src/**/*.ts', 'src/a/b/c.ts', true],
  ['a?c', 'abc', true],
  ['a?c', 'a/c', false],
  ['*a*b*', 'xxaxxbxx', true],
  ['*a*b*', 'xxbxxaxx', false],
  ['', '', true],
  ['a', 'a/', false],
  ['/etc/**', '/etc/passwd', true],
  ['etc/**', '/etc/passwd', false],
  ['A', 'a', false],
])('0061: %s on %s: %s', (glob, path, matches) => {
  expect(matchesGlob(glob, path)).toBe(matches);
});

test('0061: a rule that denies compares without case', () => {
  expect(matchesGlobInAnyCase('**/.env*', '.ENV.Local')).toBe(true);
});

test('0061: matching takes no more than the product of the lengths', () => {
  const stars = `${'*a'.repeat(190)}b`;
  expect(matchesGlob(stars, 'a'.repeat(4_000))).toBe(false);
  expect(matchesGlob(`${'**/a/'.repeat(70)}x`, `${'a/'.repeat(2_000)}y`)).toBe(false);
});

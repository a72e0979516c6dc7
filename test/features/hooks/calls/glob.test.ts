// Globs of call rules (0061).

import { expect, test, describe } from '@jest/globals';
import {
  matchesGlob,
  matchesGlobInAnyCase,
  namesDenied,
  searchedNames,
} from '../../../../src/features/hooks/calls/glob.js';

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

// Searches by the names of files (0061): which of them name what a rule denies.

const DENIED = ['**/.env*', '**/.git/**', '**/*.pem', '**/id_rsa*', '**/.docker/config.json'];
const names = (glob: string, path = '.'): boolean =>
  DENIED.some((rule) => namesDenied(searchedNames([glob]) ?? [], path, rule));

describe('0061: the names that a search asks for', () => {
  test.each([
    ...[
      '.env',
      '.env*',
      '.e*',
      '.*',
      '.??v',
      '[.]env',
      '.[e]nv',
      '{a,.env}',
      '{.,x}env',
      '.{e,f}{n,m}v',
      '**/.env.local',
    ],
    ...['a,.env', 'a .env', '*.ts,.e*', '.ENV', '/.env', './.env', 'src/.env', '????', '*env', '.env.local', '\\.env'],
    ...['*.pem', 's*r.pem', '*.{pem,ts}', '*.p?m', 'id_*', '*_rsa', '.git/**', '.git/config', '**/.git/*', '.docker/*'],
    ...['{{a,b},{c,.env}}', '.g*/config', 'a/{b,.git}/c'],
    ...['.e[[:alpha:]]v', '.e[]n]v', '.e[!]]v', '.[^]x]nv', '.@(env)', '?(.env)', '.+(e|n|v)', '.!(x)', '.*(env)'],
  ])('%s names one', (glob) => {
    expect(names(glob)).toBe(true);
  });

  test.each([
    ...['*', '**', '**/*', '*.ts', '**/*.{ts,tsx}', 'src/**', 'src/*', '*.json', '**/*.md', '!.env', '!**/.git/**'],
    ...['Makefile', 'environment.ts', 'a/env', '*.test.ts', 'packages/*/src/**/*.ts', ''],
  ])('%s names none', (glob) => {
    expect(names(glob)).toBe(false);
  });

  test('counts in its folder', () => {
    expect(names('config', '.git')).toBe(true);
    expect(names('config', 'src')).toBe(false);
    expect(names('config.json', '.docker')).toBe(true);
  });

  test('is bounded: globs with too many alternatives or segments have no reading', () => {
    expect(searchedNames(['{a,b}'.repeat(20)])).toBeNull();
    expect(searchedNames(['{a,b}'.repeat(8)])).toHaveLength(256 + 3);
    expect(searchedNames(Array.from({ length: 32 }, (_, at) => `${'a/'.repeat(127)}${at}`))).toHaveLength(32);
    expect(searchedNames(Array.from({ length: 33 }, (_, at) => `${'a/'.repeat(127)}${at}`))).toBeNull();
    expect(searchedNames(Array.from({ length: 12 }, (_, at) => `${'{a}'.repeat(400)}${at}`))).toHaveLength(24);
    expect(searchedNames(Array.from({ length: 14 }, (_, at) => `${'{a}'.repeat(400)}${at}`))).toBeNull();
    expect(names('a/'.repeat(200))).toBe(true);
    expect(names(`${'**/'.repeat(120)}x`)).toBe(false);
  });
});

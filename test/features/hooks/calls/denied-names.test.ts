// Searches by the names of files (0061): which of them name what a rule denies.

import { describe, expect, test } from '@jest/globals';
import { namesDenied, searchedNames } from '../../../../src/features/hooks/calls/denied-names.js';

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

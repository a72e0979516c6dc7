// Searches by the names of files (0061): which of them name what a rule denies.

import { describe, expect, test } from '@jest/globals';
import { namesDenied } from '../../../src/policy/calls/denied-names.js';

const DENIED = ['**/.env*', '**/.git/**', '**/*.pem', '**/id_rsa*', '**/.docker/config.json'];
const names = (glob: string, path = '.'): boolean => DENIED.some((rule) => namesDenied(glob, path, rule));

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

  test('is bounded: a glob with too many alternatives or segments names what is denied', () => {
    expect(names('{a,b}'.repeat(20))).toBe(true);
    expect(names('a/'.repeat(200))).toBe(true);
    expect(names(`${'**/'.repeat(120)}x`)).toBe(false);
  });
});

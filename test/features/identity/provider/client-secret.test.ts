// C98: the secret of a client comes from a file of its owner or from the environment, never from an argument.

import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { CLIENT_SECRET_VARIABLE, readClientSecret } from '../../../../src/features/identity/provider/code-exchange.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

afterEach(() => {
  Reflect.deleteProperty(process.env, CLIENT_SECRET_VARIABLE);
});

test('C98 a file that only its owner can read has the secret; one that others can read is refused', () => {
  const file = join(tempFolder(), 'secret');
  writeFileSync(file, 'the secret\n', { mode: 0o600 });
  process.env[CLIENT_SECRET_VARIABLE] = 'another';
  expect(readClientSecret(file)).toBe('the secret');
  chmodSync(file, 0o640);
  expect(() => readClientSecret(file)).toThrow(/secret/);
  writeFileSync(file, ' \n');
  chmodSync(file, 0o600);
  expect(() => readClientSecret(file)).toThrow(/must have the client secret/);
  expect(() => readClientSecret(`${file}-x`)).toThrow(/must have the client secret/);
});

test('C98 without a file the variable has it; without both the client is public', () => {
  process.env[CLIENT_SECRET_VARIABLE] = 'from the environment';
  expect(readClientSecret(undefined)).toBe('from the environment');
  for (const empty of ['', undefined]) {
    Reflect.deleteProperty(process.env, CLIENT_SECRET_VARIABLE);
    if (empty !== undefined) process.env[CLIENT_SECRET_VARIABLE] = empty;
    expect(readClientSecret(undefined)).toBeNull();
  }
});

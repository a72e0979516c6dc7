// If no mount namespace can be created, tests of full disks are skipped with a printed line, and fail in CI.

import { afterEach, expect, jest, test } from '@jest/globals';
import { mountNamespace } from './mount-namespace.js';

const { CI } = process.env;
afterEach(() => {
  jest.restoreAllMocks();
  if (CI === undefined) delete process.env['CI'];
  else process.env['CI'] = CI;
});

test('throws in CI if no mount namespace can be created', () => {
  process.env['CI'] = '1';
  expect(() => mountNamespace(() => false)).toThrow('CI must allow mount namespaces');
});

test('prints that the tests are skipped elsewhere', () => {
  delete process.env['CI'];
  const write = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
  expect(mountNamespace(() => false)).toBeNull();
  expect(write.mock.calls.map(([line]) => line)).toEqual([expect.stringMatching(/^skipped: what needs a mount/)]);
});

test('returns the first flags with which a mount namespace can be created', () => {
  expect(mountNamespace((flags) => flags.includes('-r'))).toEqual(['-r', '-m']);
});

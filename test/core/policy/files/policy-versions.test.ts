import { expect, test } from '@jest/globals';
import { Check } from 'typebox/value';
import { PIN_PROBLEMS, type Pin } from '../../../../src/core/contract/policy/pins.js';
import { PolicyVersions } from '../../../../src/core/contract/shapes.js';
import { policyVersions } from '../../../../src/core/policy/files/policy-versions.js';

const pin = (digit: string): Pin => ({ git_sha: digit.repeat(40), sha256: digit.repeat(64), source: 'git' });
const MACHINES = 'f'.repeat(64);

test('S4-27 S4-28 the versions are the Git SHAs and the hash of the machines', () => {
  const versions = policyVersions({ lanes: pin('a'), roles: pin('b'), actions: pin('c') }, MACHINES);
  expect(versions).toEqual({
    lanes: 'a'.repeat(40),
    roles: 'b'.repeat(40),
    actions: 'c'.repeat(40),
    machines: MACHINES,
  });
  expect(Check(PolicyVersions, versions)).toBe(true);
});

test.each(PIN_PROBLEMS)('C44 a file without a pin is UNPINNED, which an audit event can contain: %s', (problem) => {
  const versions = policyVersions({ lanes: pin('a'), roles: { problem }, actions: pin('c') }, MACHINES);
  expect(versions.roles).toBe('UNPINNED');
  expect(versions.lanes).toBe('a'.repeat(40));
  expect(Check(PolicyVersions, versions)).toBe(true);
});

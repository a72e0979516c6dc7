import { describe, expect, test } from '@jest/globals';
import { ACTIONS, RISK_CLASSES } from '../../../src/core/contract/policy/catalogue.js';
import { FAULTS } from '../../../src/core/contract/fault.js';
import { validateAction } from '../../../src/core/step/check-phases.js';
import { testPolicy } from '../../fixtures/policy.js';

const policy = testPolicy();
const DENIED = { ok: false, fault: { code: 'ACTION_NOT_ALLOWED', cause: null } };

// S0-36 and S1-19, as literals: the tables are the test, so it imports nothing of them.
const CATALOGUE = [
  ['THINK', 'none'],
  ['FINISH', 'none'],
  ['READ_FILE', 'read'],
  ['LIST_FILES', 'read'],
  ['WRITE_FILE', 'write'],
  ['CREATE_DIRECTORY', 'write'],
  ['DELETE_FILE', 'destructive'],
  ['RENAME_FILE', 'destructive'],
] as const;

describe('VALIDATE_ACTION', () => {
  test.each(CATALOGUE)('S0-35 S0-36 S1-05 S1-19: %s is allowed, with risk class %s', (name, risk) => {
    expect(validateAction(name, policy)).toMatchObject({ ok: true, value: { name, risk } });
  });

  test('S0-36 S1-19: there are no other actions, and no other risk classes', () => {
    expect(Object.keys(ACTIONS).sort()).toEqual(CATALOGUE.map(([name]) => name).sort());
    expect(RISK_CLASSES).toEqual(['none', 'read', 'write', 'destructive']);
  });

  test.each([
    ['LAUNCH', 'EXECUTE', 'SHELL', 'WRITE_RECORD'],
    ['', ' ', 'READ_FILE ', ' READ_FILE', 'READ_FILE\n', 'READ_FILE\0', 'READ-FILE'],
    ['constructor', '__proto__', 'toString', 'hasOwnProperty'],
  ])('S0-35 S0-38 S2-16: an action that is not in the allowlist is denied: %j', (...names) => {
    for (const name of names) expect(validateAction(name, policy)).toMatchObject(DENIED);
  });

  test.each(['read_file', 'Read_File', 'think', 'ﬁnish', 'thınk', 'liſt_files', 'ＴＨＩＮＫ', 'ТHINK'])(
    'S0-37 S0-38: the case is never folded: %s is denied',
    (name) => {
      expect(validateAction(name, policy)).toMatchObject({
        ok: false,
        fault: { code: 'ACTION_NOT_ALLOWED', rule_id: 'action.not_in_allowlist' },
      });
    },
  );

  test('S0-35 S2-16: an existing action that policy does not list is denied', () => {
    const actions = new Map(policy.actions);
    actions.delete('DELETE_FILE');
    expect(validateAction('DELETE_FILE', testPolicy({ actions }))).toMatchObject({
      ok: false,
      fault: { code: 'ACTION_NOT_ALLOWED', rule_id: 'action.not_in_allowlist' },
    });
  });

  test('S0-35: an unknown action that policy lists is denied', () => {
    const actions = new Map(policy.actions).set('LAUNCH', { action: 'LAUNCH' });
    expect(validateAction('LAUNCH', testPolicy({ actions }))).toMatchObject({
      ok: false,
      fault: { code: 'ACTION_NOT_ALLOWED', rule_id: 'action.not_in_catalogue' },
    });
  });

  test('S0-38: the outcome is DENIED, the code ACTION_NOT_ALLOWED', () => {
    expect(FAULTS.ACTION_NOT_ALLOWED).toMatchObject({ outcome: 'DENIED', phase: 'VALIDATE_ACTION' });
  });
});

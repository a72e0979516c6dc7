import { describe, expect, test } from '@jest/globals';
import { ACTIONS } from '../../../src/core/contract/policy/catalogue.js';
import { InvariantError } from '../../../src/core/errors.js';
import { effectLimits, unprivilegedResult } from '../../../src/core/step/mediated-request.js';
import { testPolicy } from '../../fixtures/policy.js';

describe('EXECUTE without an effect', () => {
  test('S1-09: THINK has an empty result', () => {
    expect(unprivilegedResult(ACTIONS.THINK, {})).toEqual({});
  });

  test.each(['done', ''])('S0-53 S1-10: FINISH returns the response as proposed: %j', (response) => {
    expect(unprivilegedResult(ACTIONS.FINISH, { response })).toEqual({ response });
  });

  test.each(['READ_FILE', 'LIST_FILES', 'WRITE_FILE', 'CREATE_DIRECTORY', 'DELETE_FILE', 'RENAME_FILE'] as const)(
    '%s is not executed here',
    (name) => {
      expect(unprivilegedResult(ACTIONS[name], { path: '/sandbox/a.txt' })).toBeNull();
    },
  );

  test('arguments that were never validated are a bug, not a result', () => {
    expect(() => unprivilegedResult(ACTIONS.FINISH, {})).toThrow(InvariantError);
  });

  test('an executor gets the limits of the policy', () => {
    const policy = testPolicy({ limits: { read_bytes_max: 7, list_entries_max: 9 } });
    expect(effectLimits(policy)).toEqual({ read_bytes_max: 7, list_entries_max: 9 });
  });
});

import { describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/core/contract/free-text.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { argumentNameRecorder, recordedIdentity } from '../../../src/core/step/check-phases.js';
import { withRecordedNames } from '../../../src/core/step/mediated-request.js';
import { testPolicy } from '../../fixtures/policy.js';
import { REQUEST } from '../../fixtures/privileged.js';

const policy: Policy = testPolicy();

describe('the recorded identity', () => {
  const recorded = (action: string | null, schema_version: string | null, under = policy) => {
    const identity = { proposal_id: null, reasoning: null, action, schema_version };
    return recordedIdentity(identity, under);
  };

  test('S4-62 C90: has the hash of an action that the platform does not know', () => {
    expect(recorded('LAUNCH', null).action).toBe(hashText('LAUNCH'));
    expect(recorded('constructor', null).action).toBe(hashText('constructor'));
  });

  test('C90: has the name of an action that only the policy or only the catalogue has', () => {
    const listing = { ...policy, actions: new Map([['LAUNCH', { action: 'LAUNCH' }]]) };
    expect(recorded('LAUNCH', null, listing).action).toBe('LAUNCH');
    expect(recorded('READ_FILE', null, listing).action).toBe('READ_FILE');
    expect(recorded('READ_FILE', null).action).toBe('READ_FILE');
  });

  test('has neither if the payload has neither', () => {
    expect(recorded(null, null)).toEqual({ action: null, schema_version: null });
  });

  test.each(['1.0.0', '123456.1.1', '1.123456.1', '1.1.123456'])('C90: has the version %s as it is', (version) => {
    expect(recorded(null, version).schema_version).toBe(version);
  });

  test.each(['', '1.0', 'x1.0.0', '1.0.0x', '1.0.0.0', '1234567.1.1', '1.1234567.1', '1.1.1234567', '1.0.0\n', '..'])(
    'S4-62 C90: has the hash of %j, which is not a version',
    (version) => {
      expect(recorded(null, version).schema_version).toBe(hashText(version));
    },
  );
});

describe('the recorded names of arguments', () => {
  test('S4-62 C90: are those of the action, and hashes of all others', () => {
    const recordName = argumentNameRecorder('WRITE_FILE', policy);
    expect(recordName('content')).toBe('content');
    for (const name of ['secret', 'constructor', '']) expect(recordName(name)).toBe(hashText(name));
  });

  test('S4-62 C90: are hashes for an action that does not exist', () => {
    expect(argumentNameRecorder('LAUNCH', policy)('path')).toBe(hashText('path'));
  });
});

describe('the recorded request', () => {
  const tool = { ...REQUEST, write: null, tool: 'secret', unregistered: 'tool.not_registered' } as const;
  const target = { ...REQUEST, tool: null, unregistered: 'target.not_registered' } as const;
  const write = { table: 'secret', mode: 'append' } as const;

  test('S4-62 C90: has the hash of a tool that is not registered', () => {
    expect(withRecordedNames(tool)).toEqual({ ...tool, tool: hashText('secret') });
  });

  test('S4-62 C90: has the hash of a written table that is not registered', () => {
    const request = { ...target, write };
    const hashed = { table: hashText('secret'), mode: 'append' };
    expect(withRecordedNames(request)).toEqual({ ...request, write: hashed, read: null });
  });

  test('S4-62 C90: has the hash of a read table that is not registered', () => {
    const request = { ...target, write: null, read: 'secret' };
    expect(withRecordedNames(request)).toEqual({ ...request, read: hashText('secret') });
  });

  test('C90: has every name that is registered', () => {
    for (const unregistered of [null, 'target.mode_not_registered'] as const) {
      const request = { ...REQUEST, write, read: 'facts', unregistered };
      expect(withRecordedNames(request)).toEqual(request);
    }
  });

  test('is unchanged if it names no tool', () => {
    const request = { ...tool, tool: null, write };
    expect(withRecordedNames(request)).toEqual(request);
  });
});

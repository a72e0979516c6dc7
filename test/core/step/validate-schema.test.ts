import { describe, expect, test } from '@jest/globals';
import type { SeenProposal } from '../../../src/core/contract/run/entry.js';
import { FAULTS } from '../../../src/core/contract/fault.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { Json } from '../../../src/core/contract/json.js';
import {
  parse,
  identify,
  UNKNOWN_IDENTITY,
  proposalKey,
  validateSchema,
  validateProposalId,
} from '../../../src/core/step/check-phases.js';
import { testPolicy } from '../../fixtures/policy.js';
import { bytesOf, ID, proposal } from './judge.js';

const policy = testPolicy();

function read(text: string): Json {
  const parsed = parse(text, policy);
  if (!parsed.ok) throw new Error(`not JSON: ${text}`);
  return parsed.value;
}

const validate = (differences: Record<string, unknown>) => validateSchema(read(proposal(differences)));
const refusedAs = (code: string) => ({ ok: false, fault: { code } });
const VIOLATION = refusedAs('SCHEMA_VIOLATION');

describe('VALIDATE_SCHEMA', () => {
  test('S0-06 S1-03 S2-15: a proposal with exactly the five fields passes unchanged', () => {
    expect(validate({})).toEqual({ ok: true, value: read(proposal()) });
  });

  test.each([
    ['S0-07 S0-33 S1-04', 'schema_version'],
    ['S0-08 S0-33 S1-07', 'id'],
    ['S0-09 S0-33 S1-06', 'reasoning'],
    ['S0-10 S0-33 S1-05', 'action'],
    ['S0-11 S0-33 S1-08', 'args'],
  ])('%s: without %s it is rejected', (_ids, field) => {
    expect(validate({ [field]: undefined })).toMatchObject({
      ok: false,
      fault: { code: 'SCHEMA_VIOLATION', rule_id: `schema.missing_${field}` },
    });
  });

  test.each([
    ['S0-27', 'schema_version', [1, null, true, {}, []]],
    ['S0-28', 'id', [1, null, true, {}, []]],
    ['S0-29', 'reasoning', [1, null, true, {}, []]],
    ['S0-30', 'action', [1, null, true, {}, ['READ_FILE']]],
    ['S0-31', 'args', [1, null, true, '{}', [], [{ path: '/sandbox/a' }]]],
  ])('%s S0-33: a %s of another type is rejected', (_id, field, values) => {
    for (const value of values) expect(validate({ [field]: value })).toMatchObject(VIOLATION);
  });

  test.each(['1.0.0', '1.0.1', '1.10.200', '1.00.0', `1.0.${'9'.repeat(28)}`])(
    'S0-27 S1-04: schema_version %s is accepted',
    (schema_version) => {
      expect(validate({ schema_version })).toMatchObject({ ok: true });
    },
  );

  test.each([
    ...[
      '1.x.x',
      '1.0',
      '1',
      '',
      '1.0.0.0',
      'v1.0.0',
      '1.0.0-beta',
      '1.0.0 ',
      ' 1.0.0',
      '1.0.0\n',
      '1..0',
      '11.0.',
      '01.0.0',
    ],
    ...['１.0.0', '1.٠.٠', '-1.0.0', `1.0.${'9'.repeat(29)}`, `2.0.${'9'.repeat(29)}`],
  ])('S0-27 S0-33 S1-04: schema_version %j is rejected', (schema_version) => {
    expect(validate({ schema_version })).toMatchObject(VIOLATION);
  });

  test.each(['0.1.0', '2.0.0', '10.0.0', '11.2.3', '999.0.0'])(
    'S0-33 S1-04: schema_version %s is another major version, with its own code',
    (schema_version) => {
      expect(validate({ schema_version })).toMatchObject(refusedAs('SCHEMA_VERSION_INCOMPATIBLE'));
      expect(validate({ schema_version, id: 7, reasoning: undefined, extra: 1 })).toMatchObject(
        refusedAs('SCHEMA_VERSION_INCOMPATIBLE'),
      );
    },
  );

  test.each(['2.10.0', '2.0.10', '10.10.10', `2.0.${'9'.repeat(28)}`])(
    'S0-33: schema_version %s is another major version, with the rule schema.other_major',
    (schema_version) => {
      expect(validate({ schema_version })).toMatchObject({ fault: { rule_id: 'schema.other_major' } });
    },
  );

  test.each(['2.0.0-beta', '2.0.0.0', '2.0', '02.0.0', `2.0.${'9'.repeat(29)}`, '1.x', 2])(
    'S0-33: schema_version %j is not a version, with the rule schema.invalid_field',
    (schema_version) => {
      expect(validate({ schema_version })).toMatchObject({
        fault: { code: 'SCHEMA_VIOLATION', rule_id: 'schema.invalid_field' },
      });
    },
  );

  test.each([
    ID,
    ID.toUpperCase(),
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    'c232ab00-9414-11ec-b3c8-9f6bdeced846',
    '018f4c1e-7b3a-7cc2-9d2f-0123456789ab',
  ])('S0-08 S0-28 S1-07: id %s is a UUID', (id) => {
    expect(validate({ id })).toMatchObject({ ok: true });
  });

  test.each([
    ...['', '123', '123...', ` ${ID}`, `${ID} `, `${ID}\n`, `{${ID}}`, `urn:uuid:${ID}`, ID.replaceAll('-', '')],
    ...[ID.slice(1), `${ID}0`, ID.replace('5', 'g'), ID.replace('5', '５'), ID.replaceAll('-', '_')],
  ])('S0-28 S0-33: id %j is not a UUID', (id) => {
    expect(validate({ id })).toMatchObject(VIOLATION);
  });

  test('S0-09 S0-29 S1-06: reasoning has at least one character, and at most 8192', () => {
    expect(validate({ reasoning: '' })).toMatchObject(VIOLATION);
    expect(validate({ reasoning: ' ' })).toMatchObject({ ok: true });
    expect(validate({ reasoning: 'x'.repeat(8_192) })).toMatchObject({ ok: true });
    expect(validate({ reasoning: 'x'.repeat(8_193) })).toMatchObject(VIOLATION);
    expect(validate({ reasoning: '😀'.repeat(8_192) })).toMatchObject({ ok: true });
    expect(validate({ reasoning: '😀'.repeat(8_193) })).toMatchObject(VIOLATION);
  });

  test.each([
    'priority',
    'override',
    'Action',
    'ACTION',
    'args ',
    '',
    'constructor',
    'toString',
    '$schema',
    'approved_by',
  ])('S0-32 S0-33 S1-02: the additional field %j is rejected, even with an empty value', (field) => {
    for (const value of [null, '', {}, true]) {
      expect(validate({ [field]: value })).toMatchObject({
        ok: false,
        fault: { code: 'SCHEMA_VIOLATION', rule_id: 'schema.unknown_field' },
      });
    }
  });

  test('S1-02: a field under another name does not replace the missing one', () => {
    expect(validate({ action: undefined, tool: 'READ_FILE' })).toMatchObject(VIOLATION);
  });

  test.each(['null', '[]', '"x"', '1', 'true', '[{}]', '{}'])(
    'S0-21 S0-33: %s parses, but is not a proposal',
    (text) => {
      expect(validateSchema(read(text))).toMatchObject(VIOLATION);
    },
  );

  test('S0-33: a value that is not an object is rejected with the rule schema.not_an_object', () => {
    for (const text of ['null', '[]', '"x"']) {
      expect(validateSchema(read(text))).toMatchObject({ fault: { rule_id: 'schema.not_an_object' } });
    }
  });

  test('S0-30: does not check whether an action exists', () => {
    for (const action of ['', 'read_file', 'LAUNCH']) expect(validate({ action })).toMatchObject({ ok: true });
  });

  test('S0-33: every rejection by this phase is a VALIDATION_ERROR', () => {
    for (const code of ['SCHEMA_VIOLATION', 'SCHEMA_VERSION_INCOMPATIBLE', 'DUPLICATE_PROPOSAL_ID'] as const) {
      expect(FAULTS[code]).toMatchObject({ outcome: 'VALIDATION_ERROR', phase: 'VALIDATE_SCHEMA' });
    }
  });
});

describe('the identity in the response and the record', () => {
  const who = (differences: Record<string, unknown>) => identify(read(proposal(differences)), policy);

  test('S0-70 S0-71: has id, version, action and the hash of the reasoning', () => {
    expect(who({ reasoning: 'né😀' })).toEqual({
      proposal_id: ID,
      schema_version: '1.0.0',
      action: 'READ_FILE',
      reasoning: { sha256: sha256('né😀'), chars: 3 },
    });
  });

  test.each([
    ['the first pair of surrogates', '\u{10000}', 1],
    ['the last low surrogate', '\u{103ff}', 1],
    ['characters after the surrogates', '\ue000\ufb01\uffff', 3],
    ['a character before the surrogates', '\ud7ff', 1],
  ])('S0-71: counts %s of the reasoning as characters', (_what, reasoning, chars) => {
    expect(who({ reasoning })).toMatchObject({ reasoning: { sha256: sha256(reasoning), chars } });
  });

  test('S0-70: echoes the id as received, even if everything else is wrong', () => {
    expect(identify(read(`{"id":"${ID.toUpperCase()}"}`), policy)).toEqual({
      ...UNKNOWN_IDENTITY,
      proposal_id: ID.toUpperCase(),
    });
  });

  test.each([[undefined], [null], [7], ['123'], [`${ID}\n`], [[ID]]])('S0-34: does not echo the id %j', (id) => {
    expect(who({ id })).toMatchObject({ proposal_id: null, action: 'READ_FILE' });
  });

  test.each(['READ_FILE', 'read_file', 'Launch_9', 'A', 'a'.repeat(64)])('S0-71: echoes the action %s', (action) => {
    expect(who({ action })).toMatchObject({ action });
  });

  test.each([
    '',
    'a'.repeat(65),
    '9A',
    '_A',
    'READ FILE',
    'READ_FILE\n',
    'ﬁnish',
    '<script>',
    '../x',
    7,
    null,
    ['THINK'],
  ])('does not echo the action %j, which is attacker-controlled text', (action) => {
    expect(who({ action })).toMatchObject({ action: null });
  });

  test('echoes an action of the policy even if it has an unusual form', () => {
    const odd = testPolicy({ actions: new Map([['9-odd', { action: '9-odd' }]]) });
    expect(identify(read(proposal({ action: '9-odd' })), odd)).toMatchObject({ action: '9-odd' });
  });

  test('has the first 32 characters of any schema_version', () => {
    expect(who({ schema_version: 'x'.repeat(32) })).toMatchObject({ schema_version: 'x'.repeat(32) });
    expect(who({ schema_version: 'x'.repeat(33) })).toMatchObject({ schema_version: null });
    expect(who({ schema_version: 1 })).toMatchObject({ schema_version: null });
  });

  test('has no hash for reasoning that is not a string', () => {
    for (const reasoning of [undefined, null, 1, ['x']]) expect(who({ reasoning })).toMatchObject({ reasoning: null });
    expect(who({ reasoning: '' })).toMatchObject({ reasoning: { sha256: sha256(''), chars: 0 } });
  });

  test.each(['null', '[]', '"x"', `["${ID}"]`])('is empty for %s', (text) => {
    expect(identify(read(text), policy)).toEqual(UNKNOWN_IDENTITY);
  });
});

describe('a repeated id', () => {
  const HASH = sha256('this payload');
  const response = { artifact_id: 'sha256:00', artifact_kind: 'response', hash_sha256: '0'.repeat(64) };
  const seen: SeenProposal = {
    step_index: 3,
    run_id: 'run_abcdefgh.1',
    payload_sha256: HASH,
    outcome: 'SUCCESS',
    error_code: null,
    response,
  };
  const replaying = testPolicy({ knobs: { duplicate_proposal_ids: 'replay' } });
  const DUPLICATE = refusedAs('DUPLICATE_PROPOSAL_ID');
  const ruled = (rule_id: string) => ({ fault: { code: 'DUPLICATE_PROPOSAL_ID', rule_id } });

  test('S0-33: a new id is not a repetition, under either policy', () => {
    expect(validateProposalId(null, HASH, policy)).toEqual({ ok: true, value: { replay_of: null } });
    expect(validateProposalId(null, HASH, replaying)).toEqual({ ok: true, value: { replay_of: null } });
  });

  test('S0-33: is rejected by default, even with the same bytes', () => {
    expect(validateProposalId(seen, HASH, policy)).toMatchObject(DUPLICATE);
    expect(validateProposalId(seen, HASH, policy)).toMatchObject(ruled('proposal.id_used'));
  });

  test('gets the recorded response of that step for the same bytes, if policy replays', () => {
    expect(validateProposalId(seen, HASH, replaying)).toEqual({ ok: true, value: { replay_of: 3 } });
  });

  test('S0-33: is rejected with other bytes, even if policy replays', () => {
    expect(validateProposalId(seen, sha256('other'), replaying)).toMatchObject(
      ruled('proposal.id_used_by_another_payload'),
    );
  });

  test('S0-33: gets no response of a step that has none yet, even if policy replays', () => {
    expect(validateProposalId({ ...seen, response: null }, HASH, replaying)).toMatchObject(
      ruled('proposal.response_not_at_hand'),
    );
  });

  test('is remembered in lower case, and only if the proposal was valid', () => {
    expect(proposalKey(bytesOf(proposal()), policy)).toBe(ID);
    expect(proposalKey(bytesOf(proposal({ id: ID.toUpperCase() })), policy)).toBe(ID);
    expect(proposalKey(bytesOf(proposal({ action: 'LAUNCH' })), policy)).toBe(ID);
    for (const payload of [
      '',
      ' ',
      '{',
      '[]',
      proposal({ extra: 1 }),
      proposal({ id: '123' }),
      proposal({ args: [] }),
    ]) {
      expect(proposalKey(bytesOf(payload), policy)).toBeNull();
    }
    expect(proposalKey(bytesOf(proposal()), testPolicy({ limits: { payload_bytes_max: 10 } }))).toBeNull();
    expect(proposalKey(Uint8Array.of(0xff), policy)).toBeNull();
  });
});

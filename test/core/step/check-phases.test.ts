import { describe, expect, test } from '@jest/globals';
import type { SeenProposal } from '../../../src/core/contract/run/entry.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { PHASES } from '../../../src/core/contract/run/phase.js';
import {
  CHECK_PHASES,
  IDENTITY_PHASES,
  isInvalid,
  newStepDraft,
  phaseAfter,
  runCheckPhase,
  runCheckPhases,
  VALIDATION_CHECKS,
  UNKNOWN_IDENTITY,
} from '../../../src/core/step/check-phases.js';
import { testPolicy } from '../../fixtures/policy.js';
import { bytesOf, ID, proposal } from './judge.js';

const policy = testPolicy();
const HASH = sha256('payload');
const draftOf = (payload: string, seen: SeenProposal | null = null) => newStepDraft(bytesOf(payload), HASH, seen);
const seen: SeenProposal = {
  step_index: 3,
  run_id: 'run_abcdefgh.1',
  payload_sha256: HASH,
  outcome: 'SUCCESS',
  error_code: null,
  response: { artifact_id: 'sha256:00', artifact_kind: 'response', hash_sha256: '0'.repeat(64) },
};
const IDENTITY = {
  proposal_id: ID,
  action: 'READ_FILE',
  schema_version: '1.0.0',
  reasoning: { sha256: sha256('Because it is needed.'), chars: 21 },
};
const PATH = '/sandbox/config.txt';

test('a new draft has the payload, its hash and its earlier use, and nothing else', () => {
  const raw = bytesOf('x');
  expect(newStepDraft(raw, HASH, seen)).toEqual({
    raw,
    text: null,
    value: null,
    payload_sha256: HASH,
    seen,
    identity: UNKNOWN_IDENTITY,
    action: null,
    args: null,
    args_summary: null,
    replay_of: null,
    fault: null,
    phase_failed_at: null,
  });
});

describe('the checking phases', () => {
  test('S0-12: a valid proposal passes all, and leaves its action and arguments but no payload', () => {
    const draft = draftOf(proposal());
    const unchanged = { ...draft };
    expect(runCheckPhases(draft, policy)).toEqual({
      ...draft,
      raw: null,
      identity: IDENTITY,
      action: 'READ_FILE',
      args: { path: PATH },
      args_summary: { path: PATH },
    });
    expect(draft).toEqual(unchanged);
  });

  test.each([
    ['RECEIVE', ' ', 'payload.blank'],
    ['PARSE', '{', 'json.syntax'],
    ['VALIDATE_SCHEMA', '{}', 'schema.missing_schema_version'],
    ['VALIDATE_ACTION', proposal({ action: 'LAUNCH', args: { path: 7 } }), 'action.not_in_allowlist'],
    ['VALIDATE_ARGS', proposal({ args: { path: 7 } }), 'args.schema'],
  ] as const)('S0-13: a proposal that fails at %s goes no further', (phase, payload, rule_id) => {
    const checked = runCheckPhases(draftOf(payload), policy);
    expect(checked).toMatchObject({ phase_failed_at: phase, fault: { rule_id }, raw: null, text: null, value: null });
    expect(isInvalid(checked)).toBe(true);
  });

  test('S0-13: an id that was used is rejected at VALIDATE_SCHEMA, with the names of the arguments', () => {
    expect(runCheckPhases(draftOf(proposal({ action: 'READ_FILE' }), seen), policy)).toMatchObject({
      phase_failed_at: 'VALIDATE_SCHEMA',
      fault: { rule_id: 'proposal.id_used' },
      args_summary: { keys: ['path'] },
    });
  });

  test('a repeated proposal goes no further than VALIDATE_SCHEMA if policy replays', () => {
    const replaying = testPolicy({ knobs: { duplicate_proposal_ids: 'replay' } });
    const checked = runCheckPhases(draftOf(proposal({ action: 'LAUNCH' }), seen), replaying);
    expect(checked).toMatchObject({ replay_of: 3, fault: null, phase_failed_at: null, action: 'LAUNCH' });
    expect(isInvalid(checked)).toBe(false);
  });

  test('only the given phases run', () => {
    const checked = runCheckPhases(draftOf(proposal({ action: 'LAUNCH', args: {} })), policy, IDENTITY_PHASES);
    expect(checked).toMatchObject({ fault: null, action: 'LAUNCH', args: {}, args_summary: { keys: [] } });
    expect(runCheckPhases(draftOf(' '), policy, [])).toEqual(draftOf(' '));
  });

  test('C80: a payload without its bytes is too large', () => {
    expect(runCheckPhase('RECEIVE', newStepDraft(null, HASH, null), policy)).toMatchObject({
      fault: { code: 'PAYLOAD_TOO_LARGE', rule_id: 'payload.bytes_max' },
      phase_failed_at: 'RECEIVE',
    });
  });

  test('VALIDATE_ACTION returns the name of the action', () => {
    const draft = { ...draftOf(''), action: 'THINK' };
    expect(runCheckPhase('VALIDATE_ACTION', draft, policy)).toEqual({ action: 'THINK' });
  });

  test('VALIDATE_ARGS drops the arguments of an action that does not exist', () => {
    const draft = { ...draftOf(''), action: 'LAUNCH', args: { path: PATH } };
    expect(runCheckPhase('VALIDATE_ARGS', draft, policy)).toEqual({ args: null });
    expect(runCheckPhase('VALIDATE_ARGS', { ...draft, action: null }, policy)).toEqual({ args: null });
  });

  test('VALIDATE_ARGS checks missing arguments as none', () => {
    const draft = draftOf('');
    expect(runCheckPhase('VALIDATE_ARGS', { ...draft, action: 'THINK' }, policy)).toEqual({
      args: {},
      args_summary: {},
    });
    expect(runCheckPhase('VALIDATE_ARGS', { ...draft, action: 'READ_FILE' }, policy)).toEqual({
      fault: { code: 'INVALID_ARGS', cause: 'PATH', rule_id: 'args.schema', explanation: 'args.path: is missing' },
      phase_failed_at: 'VALIDATE_ARGS',
    });
  });
});

test('S0-12: each checking phase is followed by the next phase of the step', () => {
  expect(CHECK_PHASES.map(phaseAfter)).toEqual(PHASES.slice(1, 6));
});

test('a draft is invalid only if a checking phase has rejected it', () => {
  const invalid = PHASES.filter((phase) => isInvalid({ phase_failed_at: phase }));
  expect(invalid).toEqual(CHECK_PHASES);
  expect(isInvalid({ phase_failed_at: null })).toBe(false);
});

test('S0-12: `policy explain` names every check of these phases, with its rules', () => {
  expect(VALIDATION_CHECKS.map(({ phase, claim, rules }) => `${phase}: ${claim} (${rules.join(', ')})`)).toEqual([
    'RECEIVE: the payload is UTF-8 text within its limits (payload.*)',
    'PARSE: the payload is JSON (json.*)',
    'VALIDATE_SCHEMA: the payload is a proposal (schema.*)',
    'VALIDATE_SCHEMA: the proposal id is new (proposal.*)',
    'VALIDATE_ACTION: the action is listed (action.*)',
    'VALIDATE_ARGS: the arguments match the schema of the action (args.*, path.*)',
  ]);
});

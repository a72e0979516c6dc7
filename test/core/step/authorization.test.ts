// Both halves of AUTHORIZE on single steps: the order of the checks, and exactly what each denial contains.

import { describe, expect, test } from '@jest/globals';
import { createCatalogue, ACTIONS } from '../../../src/core/contract/policy/catalogue.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import type { Role } from '../../../src/core/contract/policy/roles.js';
import { InvariantError } from '../../../src/core/errors.js';
import { approvalDigest, approvalRuleFor, emptyBook } from '../../../src/core/policy/policy-features.js';
import { countBallot, requestApproval } from '../../../src/features/approvals/approval-requests.js';
import { EMPTY_LABEL } from '../../../src/core/policy/authorize-run.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import {
  authorizeLane,
  authorizeWithFacts,
  requireGatherRequest,
  STEP_CHECKS,
  UNDECIDED_AUTHORIZATION,
  type AuthorizationSubject,
  PATH_CHECKS,
} from '../../../src/core/step/authorization.js';
import { mediatedContext, requestHash } from '../../../src/core/step/mediated-request.js';
import { ANNA, REGISTERED } from '../../fixtures/governed.js';
import { SANDBOX_AGENT, SANDBOX_FILES, testPolicy } from '../../fixtures/policy.js';
import { RUN } from '../../fixtures/privileged.js';
import { factsOf, fileFact } from './judge.js';
import { personNamed } from '../../fixtures/person.js';

const NOW = '2026-01-01T00:00:00.000Z';

/** One lane for files, tools and records that requires nothing, so that a run without a case passes its checks. */
const LANE: Lane = {
  ...SANDBOX_FILES,
  allowed_actions: {
    tools: ['sandbox.read_file', 'sandbox.write_file', 'billing.charge'],
    writes: [
      { table: 'sandbox_files', mode: 'upsert' },
      { table: 'facts', mode: 'append' },
    ],
    reads: ['facts', 'shared_playbooks'],
  },
  scope: { requires: [], prohibits: [] },
};

const listed = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'].map((action) => [action, { action }] as const);
const policy = testPolicy({
  lanes: new Map([[LANE.lane_id, LANE]]),
  roles: new Map([[SANDBOX_AGENT.role_id, SANDBOX_AGENT]]),
  actions: new Map([...testPolicy().actions, ...listed]),
  catalogue: createCatalogue(REGISTERED),
});

const AGENT = { ...RUN, run_id: 'run_agent', run_kind: 'agent', parent_run_id: 'run_root' } as const;

const step = (over: Partial<AuthorizationSubject> = {}): AuthorizationSubject => ({
  agent: { ...AGENT },
  action: 'READ_FILE',
  args: { path: '/sandbox/a.txt' },
  mediated_run_id: 'run_mediated',
  payload: {
    artifact_id: `sha256:${'0'.repeat(64)}`,
    artifact_kind: 'raw_payload',
    hash_sha256: '0'.repeat(64),
    byte_size: 1,
  },
  received_at: NOW,
  authorization: UNDECIDED_AUTHORIZATION,
  label: EMPTY_LABEL,
  overlay: null,
  approvals: emptyBook('run_agent'),
  unsettled: [],
  ...over,
});

const WITHOUT_CASE = { ...AGENT, case_id: null };
const CALL = { action: 'CALL_TOOL', args: { tool: 'billing.charge', input: {} } } as const;
const GRANTED = { decision: 'allow', rule_id: 'lane.granted', cause: null };
const denied = (rule_id: string, cause: string) => ({
  verdict: { decision: 'deny', rule_id, cause },
  args: null,
  before: [],
  digest: null,
});

describe('the checks of a step', () => {
  test('have these claims and rules, in this order', () => {
    const described = STEP_CHECKS.map(({ claim, rules }) => [claim, ...rules]);
    expect(described).toEqual([
      ['the run has a case where it needs one', 'sandbox.no_case', 'records.no_case'],
      ['enough of the budget is left', 'budget.*'],
      ['the run is not ending', 'lifecycle.*'],
      ...PATH_CHECKS.map(({ claim, rules }) => [claim, ...rules]),
      ['no outcome of the same request is unknown', 'outcome.unsettled'],
      ['no condition forbids it', 'condition.*'],
      ['the decision points of the action permit it', 'decision_point.*'],
      ['the required approvals are granted', 'approval.*'],
    ]);
  });
});

describe('a run without a case', () => {
  test('is denied an action with paths', () => {
    for (const action of ['READ_FILE', 'WRITE_FILE']) {
      const args = { path: '/sandbox/a.txt', content: 'x' };
      expect(authorizeLane(step({ agent: { ...WITHOUT_CASE }, action, args }), policy)).toEqual(
        denied('sandbox.no_case', 'SANDBOX'),
      );
    }
  });

  test('is denied the rows of a case, for reading and for writing', () => {
    const read = { action: 'READ_RECORDS', args: { target: 'facts' } };
    const write = { action: 'WRITE_RECORD', args: { target: 'facts', mode: 'append', record: { id: 'f-1' } } };
    for (const proposed of [read, write]) {
      expect(authorizeLane(step({ agent: { ...WITHOUT_CASE }, ...proposed }), policy)).toEqual(
        denied('records.no_case', 'LANE'),
      );
      expect(authorizeLane(step(proposed), policy).verdict).toEqual(GRANTED);
    }
  });

  test('may call a tool and read shared rows', () => {
    const read = { action: 'READ_RECORDS', args: { target: 'shared_playbooks' } };
    for (const proposed of [CALL, read]) {
      expect(authorizeLane(step({ agent: { ...WITHOUT_CASE }, ...proposed }), policy)).toEqual({
        verdict: GRANTED,
        args: proposed.args,
        before: [],
        digest: null,
      });
    }
  });

  test('is denied for that before its budget is judged', () => {
    expect(authorizeLane(step({ agent: { ...WITHOUT_CASE } }), policy, 'tokens').verdict?.rule_id).toBe(
      'sandbox.no_case',
    );
  });

  test('has no facts to gather', () => {
    expect(() => requireGatherRequest(step({ agent: { ...WITHOUT_CASE } }), policy)).toThrow(
      new InvariantError('there is nothing to gather for this step'),
    );
  });
});

describe('the first half', () => {
  test('leaves THINK and FINISH undecided, and without budget only FINISH', () => {
    const think = step({ action: 'THINK', args: {} });
    const finish = step({ action: 'FINISH', args: { response: 'done' } });
    expect(authorizeLane(think, policy)).toBe(UNDECIDED_AUTHORIZATION);
    expect(authorizeLane(finish, policy)).toBe(UNDECIDED_AUTHORIZATION);
    expect(authorizeLane(think, policy, 'steps')).toEqual(denied('budget.steps', 'BUDGET'));
    expect(authorizeLane(finish, policy, 'steps')).toBe(UNDECIDED_AUTHORIZATION);
  });

  test('leaves an action with allowed paths undecided until the facts are known', () => {
    expect(authorizeLane(step(), policy)).toBe(UNDECIDED_AUTHORIZATION);
    expect(requireGatherRequest(step(), policy)).toEqual({
      case_id: 'case_1',
      paths: ['/sandbox/a.txt'],
      usage: false,
      portable_names: false,
    });
  });

  test('denies by the lane before the budget, and by the budget before the paths', () => {
    const outside = { args: { path: '/etc/passwd' } };
    const delete_ = step({ action: 'DELETE_FILE' });
    expect(authorizeLane(delete_, policy, 'tokens')).toEqual(denied('lane.tool_not_allowed', 'LANE'));
    expect(authorizeLane(step(outside), policy, 'tokens')).toEqual(denied('budget.tokens', 'BUDGET'));
    expect(authorizeLane(step(outside), policy)).toEqual(denied('sandbox.outside', 'SANDBOX'));
  });

  test('gathers nothing for an action without paths, or with a path that its text denies', () => {
    const nothing = new InvariantError('there is nothing to gather for this step');
    expect(() => requireGatherRequest(step(CALL), policy)).toThrow(nothing);
    expect(() => requireGatherRequest(step({ args: { path: '/etc/passwd' } }), policy)).toThrow(nothing);
    expect(() => requireGatherRequest(step({ args: null }), policy)).toThrow(nothing);
  });

  test.each([null, 'LAUNCH', 'constructor'])('is never reached with the action %j', (action) => {
    const problem = new InvariantError('AUTHORIZE was reached without an action');
    expect(() => authorizeLane(step({ action }), policy)).toThrow(problem);
    expect(() => authorizeWithFacts(step({ action }), null, policy)).toThrow(problem);
  });
});

describe('the second half', () => {
  const write = { action: 'WRITE_FILE', args: { path: '/sandbox/a.txt', content: 'hello' } } as const;

  test('records the facts of an allowed action as they were', () => {
    const facts = factsOf(fileFact(7));
    expect(authorizeWithFacts(step(), facts, policy)).toEqual({
      verdict: GRANTED,
      args: { path: '/sandbox/a.txt' },
      before: [fileFact(7)],
      digest: null,
    });
  });

  test.each([
    ['sandbox.outside', 'SANDBOX', { path: '/etc/a.txt', content: 'x' }],
    ['extension.not_allowed', 'EXTENSION', { path: '/sandbox/a.sh', content: 'x' }],
    ['quota.bytes', 'QUOTA', { path: '/sandbox/a.txt', content: 'x'.repeat(11) }],
  ])('denies by %s with the cause %s', (rule_id, cause, args) => {
    const small = { ...policy, sandbox: { ...policy.sandbox, bytes_max: 10 } };
    const facts = factsOf({ status: 'absent' });
    expect(authorizeWithFacts(step({ action: 'WRITE_FILE', args }), facts, small)).toEqual(denied(rule_id, cause));
  });

  test('denies an action that the policy does not list, with the cause LANE', () => {
    const actions = new Map(policy.actions);
    actions.delete('WRITE_FILE');
    expect(authorizeWithFacts(step(write), factsOf(fileFact()), { ...policy, actions })).toEqual(
      denied('action.not_in_allowlist', 'LANE'),
    );
  });

  test('denies a path without facts', () => {
    expect(authorizeWithFacts(step(), null, policy)).toEqual(denied('sandbox.no_facts', 'SANDBOX'));
  });
});

describe('unknown outcomes', () => {
  const hashOf = (proposed: AuthorizationSubject) =>
    requestHash(ACTIONS.READ_FILE, proposed.args!, mediatedContext(proposed, policy));
  const others = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);
  const decide = (unsettled: readonly string[]) => authorizeWithFacts(step({ unsettled }), factsOf(fileFact()), policy);

  test('deny the same request, and no other', () => {
    expect(decide([hashOf(step())])).toEqual(denied('outcome.unsettled', 'UNSETTLED'));
    expect(decide(['0', hashOf(step())])).toEqual(denied('outcome.unsettled', 'UNSETTLED'));
    expect(decide([hashOf(step({ args: { path: '/sandbox/b.txt' } }))]).verdict).toEqual(GRANTED);
  });

  test('of 63 other requests deny nothing, of 64 everything', () => {
    expect(decide(others(63)).verdict).toEqual(GRANTED);
    expect(decide(others(64))).toEqual(denied('outcome.unsettled', 'UNSETTLED'));
    expect(decide(others(65))).toEqual(denied('outcome.unsettled', 'UNSETTLED'));
  });

  test('are reported after a path that is denied', () => {
    const unsettled = others(64);
    const refused = factsOf({ status: 'refused', kind: 'symlink' });
    expect(authorizeWithFacts(step({ unsettled }), refused, policy)).toEqual(denied('sandbox.symlink', 'SANDBOX'));
  });
});

describe('approvals', () => {
  const rules = [{ for: 'READ_FILE', approver_roles: [ANNA.role_id], quorum: 1, expires_minutes: 5 }];
  const human: Role = { role_id: ANNA.role_id, description: 'A person.', class: 'human', privileges: { lanes: [] } };
  const gated: Policy = { ...policy, approvals: rules, roles: new Map([...policy.roles, [ANNA.role_id, human]]) };
  const args = { path: '/sandbox/a.txt' };
  const digest = approvalDigest({ action: 'READ_FILE', args, case_id: 'case_1', run_id: 'run_agent' });
  const rule = approvalRuleFor(rules, 'READ_FILE')!;
  const requested = requestApproval(
    emptyBook('run_agent'),
    { digest, name: 'READ_FILE', requested_by: 'agent-1', requester: personNamed('agent-1'), at: NOW },
    rule,
  );
  const voted = (decision: 'approve' | 'reject') =>
    countBallot(
      requested,
      {
        digests: [digest],
        decision,
        approver: { ...ANNA, person: personNamed(ANNA.actor.actor_id) },
        at: NOW,
        for_run: 'run_agent',
      },
      gated,
    ).book;
  const decide = (over: Partial<AuthorizationSubject>) => authorizeWithFacts(step(over), factsOf(fileFact()), gated);
  const requires = (rule_id: string) => ({ ...denied(rule_id, 'APPROVAL_REQUIRED'), digest });

  test('are required before they are requested and while they are open', () => {
    expect(decide({})).toEqual(requires('approval.required'));
    expect(decide({ approvals: requested })).toEqual(requires('approval.required'));
  });

  test('allow the exact request once granted, with the digest', () => {
    expect(decide({ approvals: voted('approve') })).toEqual({ verdict: GRANTED, args, before: [fileFact()], digest });
    expect(decide({ approvals: voted('approve'), args: { path: '/sandbox/b.txt' } }).verdict?.decision).toBe('deny');
  });

  test('deny once rejected, or when their time is over', () => {
    expect(decide({ approvals: voted('reject') })).toEqual(requires('approval.rejected'));
    const received_at = '2026-01-01T00:05:00.000Z';
    expect(decide({ approvals: voted('approve'), received_at })).toEqual(requires('approval.expired'));
  });

  test('are not required of an action that no rule names', () => {
    expect(authorizeLane(step(CALL), gated)).toEqual({ verdict: GRANTED, args: CALL.args, before: [], digest: null });
  });

  test('are judged after unknown outcomes', () => {
    const unsettled = Array.from({ length: 64 }, (_, index) => `${index}`);
    expect(decide({ unsettled })).toEqual(denied('outcome.unsettled', 'UNSETTLED'));
  });
});

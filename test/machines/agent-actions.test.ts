// The actions and guards of an agent run one by one.

import { describe, expect, test } from '@jest/globals';
import type { AgentInput, AgentMemory } from '../../machines/agent-memory.js';
import { createMachines } from '../../machines/index.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import type { ApprovalBallot, ApprovalRule } from '../../src/core/contract/run/approval.js';
import { countBallot, requestApproval } from '../../src/features/approvals/approval-requests.js';
import { emptyBook } from '../../src/core/policy/policy-features.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import { limitsOf, openAccount } from '../../src/core/run/budget-account.js';
import { ANNA } from '../fixtures/governed.js';
import { shippedPolicy } from '../fixtures/shipped-policy.js';
import { CASE, proposal } from '../fixtures/tree.js';
import { PROPOSER } from './attempts.js';
import { recordMachine, runAction, testGuard, topState } from './chart.js';
import { personNamed } from '../fixtures/person.js';

const RULE: ApprovalRule = { for: 'DELETE_FILE', approver_roles: ['ATTORNEY_ADMIN'], quorum: 1, expires_minutes: 60 };
const POLICY = { ...shippedPolicy(), approvals: [RULE] };
const { agent } = createMachines(POLICY);

const T0 = '2026-01-01T00:00:00.000Z';
const T1 = '2026-01-01T00:01:00.000Z';
const STEP = `${PROPOSER.run_id}/step`;
const DIGEST = 'd'.repeat(64);
const INPUT: AgentInput = {
  run: PROPOSER,
  person: personNamed(PROPOSER.actor.actor_id),
  exposure: 'detailed',
  link: 'remote',
  idle_ms: 60_000,
  started_at: T0,
  budget: null,
};
const memory = (over: Partial<AgentMemory> = {}): AgentMemory => ({
  run: INPUT.run,
  person: INPUT.person,
  exposure: INPUT.exposure,
  link: INPUT.link,
  idle_ms: INPUT.idle_ms,
  budget: INPUT.budget,
  inputs: [],
  outputs: [],
  prompts: [],
  end: null,
  ending: null,
  steps: 0,
  denials: 0,
  invalid: 0,
  mediated_runs: 0,
  active_at: T0,
  account: openAccount(limitsOf({})),
  charged_at: T0,
  label: EMPTY_LABEL,
  approvals: emptyBook(PROPOSER.run_id),
  unsettled: [],
  ...over,
});

const proposing = (action: string, args: object) => {
  const raw = Buffer.from(JSON.stringify(proposal(action, args)));
  const payload = artifactRef({ kind: 'raw_payload', case_id: CASE, bytes: raw });
  const known = { seen: null, recorded_response: null, tokens: null, prompt: null, overlay: null };
  return { type: 'PROPOSE', input_id: 'p', time: T0, payload, raw, ...known } as const;
};
const THINK = proposing('THINK', {});
const ALLOW = {
  type: 'AUTHORIZE',
  verdict: { decision: 'allow', rule_id: 'agent.lane_granted', cause: null },
  overlay: null,
  digest: null,
} as const;

const ballot: ApprovalBallot = {
  digests: [DIGEST],
  decision: 'approve',
  approver: { ...ANNA, person: personNamed(ANNA.actor.actor_id) },
  at: T0,
  for_run: PROPOSER.run_id,
};
const request = { digest: DIGEST, name: RULE.for, requested_by: 'agent-1', requester: personNamed('agent-1'), at: T0 };
const requested = requestApproval(emptyBook(PROPOSER.run_id), request, RULE);
/** The approvals of the run after a vote. */
const approved = countBallot(requested, ballot, { approvals: [RULE], roles: POLICY.roles }).book;

describe('an agent run is idle', () => {
  const isIdle = (time: string, idle_ms: number | null = 60_000) =>
    testGuard(agent, 'isIdle', memory({ idle_ms }), { type: 'WAKE', time } as never);
  test('when a timer wakes it at its deadline, and not before', () => {
    expect(isIdle(T1)).toBe(true);
    expect(isIdle('2026-01-01T00:00:59.999Z')).toBe(false);
  });

  test('never without a limit', () => {
    expect(isIdle(T1, null)).toBe(false);
  });

  test('and then its end is a cancellation', () => {
    const { context } = runAction(agent, 'setEnding', memory(), { type: 'WAKE', time: T1 } as never);
    expect(context).toEqual({ ending: 'cancelled', end: { reason: 'idle', error: null } });
  });
});

test('S4-13: a new agent run has no inputs, outputs, prompts or unsettled requests', () => {
  const { actor, errors } = recordMachine(agent, PROPOSER.run_id, INPUT);
  expect(actor.getSnapshot().context).toEqual({ ...memory(), account: expect.anything() });
  expect(errors).toEqual([]);
});

test('D4: the step of an answered proposal is stopped, and the next proposal gets a new one', () => {
  const { actor, errors } = recordMachine(agent, PROPOSER.run_id, INPUT);
  actor.send(ALLOW);
  for (let steps = 1; steps <= 2; steps += 1) {
    actor.send(THINK);
    expect(actor.getSnapshot().context.steps).toBe(steps);
    expect(Object.keys(actor.getSnapshot().children)).toEqual([]);
  }
  actor.send(proposing('READ_FILE', { path: '/sandbox/a.txt' }));
  expect(Object.keys(actor.getSnapshot().children)).toEqual([STEP]);
  expect(topState(actor)).toBe('running');
  expect(errors).toEqual([]);
});

describe('C91: the prompts of a run', () => {
  const prompt = artifactRef({ kind: 'prompt', case_id: CASE, bytes: Buffer.from('You are a clerk.') });
  const promptsAfter = (given: object) =>
    runAction(agent, 'startStep', memory(), { ...THINK, ...given }).context['prompts'];
  test('are collected', () => {
    expect(promptsAfter({ prompt })).toEqual([prompt]);
    expect(promptsAfter({})).toEqual([]);
  });
});

test('D7: a used approval is consumed, and only a granted one', () => {
  const used = { type: 'APPROVAL_USED', digest: DIGEST, name: RULE.for, at: T1 };
  const stateAfter = (approvals: AgentMemory['approvals']) => {
    const { context } = runAction(agent, 'consumeApproval', memory({ approvals }), used);
    return (context['approvals'] as AgentMemory['approvals']).entries.map(({ state }) => state);
  };
  expect(stateAfter(approved)).toEqual(['consumed']);
  expect(stateAfter(requested)).toEqual(['open']);
});

test('D8: a settled request is settled alone', () => {
  const settled = { type: 'RESOLVED', request_hash: 'b' };
  const { context } = runAction(agent, 'removeUnsettled', memory({ unsettled: ['a', 'b', 'c'] }), settled);
  expect(context).toEqual({ unsettled: ['a', 'c'] });
});

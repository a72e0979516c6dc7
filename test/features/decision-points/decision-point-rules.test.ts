// What decision points are asked, and what their answers mean. End to end: `test/host/decision-points`.

import { expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { DecisionAnswer, DecisionFact, DecisionPoint } from '../../../src/core/contract/policy/decision-points.js';
import type { RunContext } from '../../../src/core/contract/run/run-context.js';
import { decisionPointDenial, decisionQueries, type QueriedStep } from '../../../src/core/policy/policy-features.js';
import { readDecision } from '../../../src/features/decision-points/decision-point-rules.js';
import { testPolicy } from '../../fixtures/policy.js';
import '../../fixtures/decision-points.js';

const POINT: DecisionPoint = {
  name: 'fraud',
  protocol: 'authzen',
  url: 'https://a.example',
  actions: ['CALL_TOOL:payments.refund', 'WRITE_FILE', 'WRITE_RECORD:notes', 'READ_RECORDS:notes', 'DO_IT'],
  timeout_ms: 50,
};
const RUN = { actor: { actor_id: 'a' }, role_id: 'R', lane_id: 'L', case_id: 'case-1' } as unknown as RunContext;
const step = (name: string, args: QueriedStep['args'] = {}, paths: readonly string[] = []): QueriedStep => ({
  ...{ name, action: name.split(':')[0] ?? '', args, paths },
});
const asked = (of: QueriedStep, point: Partial<DecisionPoint> = {}) =>
  decisionQueries(of, RUN, { ...testPolicy(), decision_points: [{ ...POINT, ...point }] });
const bodyOf = (of: QueriedStep, point: Partial<DecisionPoint> = {}): unknown =>
  JSON.parse(asked(of, point)[0]?.body ?? 'null');

test.each([
  ['CALL_TOOL:payments.refund', [], { type: 'tool', id: 'payments.refund' }],
  ['WRITE_RECORD:notes', [], { type: 'table', id: 'notes' }],
  ['READ_RECORDS:notes', [], { type: 'table', id: 'notes' }],
  ['WRITE_FILE', ['/sandbox/a.txt', '/sandbox/b.txt'], { type: 'path', id: '/sandbox/a.txt' }],
  ['DO_IT', [], { type: 'case', id: 'case-1' }],
])('the resource of %s', (name, paths, resource) => {
  expect(bodyOf(step(name, {}, paths))).toMatchObject({ resource });
});

test('each path is a query of its own, with all paths', () => {
  const rename = step('WRITE_FILE', {}, ['/sandbox/a.txt', '/sandbox/b.txt']);
  const policy = { ...testPolicy(), decision_points: [POINT] };
  const queries = decisionQueries(rename, RUN, policy);
  expect(queries.map(({ body }) => JSON.parse(body) as unknown)).toMatchObject([
    { resource: { type: 'path', id: '/sandbox/a.txt' }, context: { paths: ['/sandbox/a.txt', '/sandbox/b.txt'] } },
    { resource: { type: 'path', id: '/sandbox/b.txt' }, context: { paths: ['/sandbox/a.txt', '/sandbox/b.txt'] } },
  ]);
  const permits = queries.map(({ body }): DecisionFact => ({
    ...{ name: 'fraud', answer: 'permit', request_hash: sha256(body), cached: false },
  }));
  expect(decisionPointDenial(queries, permits)).toBeNull();
  expect(decisionPointDenial(queries, permits.slice(0, 1))?.rule_id).toBe('decision_point.no_answer');
});

test('only the listed arguments are sent, and those of a call are in its input', () => {
  const call = step('CALL_TOOL:payments.refund', {
    tool: 'payments.refund',
    input: { amount: 5, to: { iban: 'x', name: 'y' } },
  });
  const sends = ['amount', 'to.iban', 'tool', '__proto__', 'to.none'];
  expect(bodyOf(call, { sends })).toMatchObject({ context: { args: { amount: 5, 'to.iban': 'x' } } });
  expect(Object.keys((bodyOf(call, { sends }) as { context: { args: object } }).context.args)).toHaveLength(2);
  expect(bodyOf(call)).toMatchObject({ context: { args: {} } });
  expect(bodyOf(call, { protocol: 'opa' })).toMatchObject({ input: { action: { name: 'CALL_TOOL' } } });
  expect(asked(step('THINK'))).toEqual([]);
});

test.each<['authzen' | 'opa', Parameters<typeof readDecision>[1], DecisionAnswer]>([
  ['authzen', { decision: true }, 'permit'],
  ['authzen', { decision: false }, 'deny'],
  ['authzen', { decision: 1 }, 'none'],
  ['authzen', { result: true }, 'none'],
  ['authzen', {}, 'none'],
  ['opa', { result: true }, 'permit'],
  ['opa', { result: { allow: true } }, 'permit'],
  ['opa', { result: { allow: false } }, 'deny'],
  ['opa', { result: false }, 'deny'],
  ['opa', { result: [true] }, 'none'],
  ['opa', { decision: true }, 'none'],
])('%s: %j means %s', (protocol, reply, answer) => {
  expect(readDecision(protocol, reply)).toBe(answer);
});

test('an answer counts only for the request that it was given to', () => {
  const [mine, other] = [asked(step('WRITE_FILE', {}, ['/sandbox/a'])), asked(step('WRITE_FILE', {}, ['/sandbox/b']))];
  const fact = (answer: DecisionAnswer, body = mine[0]?.body ?? '', name = 'fraud'): DecisionFact => ({
    ...{ name, answer, request_hash: sha256(body), cached: false },
  });
  const ruleOf = (...facts: readonly DecisionFact[]) => decisionPointDenial(mine, facts)?.rule_id ?? null;
  expect(ruleOf(fact('permit'))).toBeNull();
  expect(ruleOf(fact('deny'))).toBe('decision_point.denied');
  expect(ruleOf(fact('none'))).toBe('decision_point.no_answer');
  expect(ruleOf()).toBe('decision_point.no_answer');
  expect(ruleOf(fact('permit', other[0]?.body))).toBe('decision_point.no_answer');
  expect(ruleOf(fact('permit', mine[0]?.body, 'another'))).toBe('decision_point.no_answer');
  expect(decisionPointDenial([], [])).toBeNull();
});

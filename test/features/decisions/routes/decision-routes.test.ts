// The Access Evaluation API: its forms, its errors, and what it records.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { grantOf, subjectId, todoEdit, todoTools } from '../../../interfaces/service/authzen/todo.js';
import { codeOf, HttpBench } from '../../../interfaces/http/http-harness.js';

interface Result {
  readonly decision: boolean;
  readonly context: Readonly<Record<string, string | number>>;
}

let http: HttpBench;
let token: string;
beforeAll(async () => {
  http = await HttpBench.open({ edit: todoEdit, tools: todoTools });
  token = http.token(grantOf('morty'));
});
afterAll(() => http.close());

const RESOURCE = { type: 'todo', id: 'todo-1' };
const subject = { type: 'user', id: subjectId('morty') };
const EVALUATION = { subject, action: { name: 'can_create_todo' }, resource: RESOURCE };
const UNKNOWN = { ...EVALUATION, action: { name: 'can_fly' } };

const ask = (json: unknown, headers: Record<string, string> = {}, path = 'evaluation?lane=TODO_EDIT') =>
  fetch(`${http.server.url}/access/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: typeof json === 'string' ? json : JSON.stringify(json),
  });
const decide = async (json: unknown, headers: Record<string, string> = {}): Promise<Result> =>
  (await (await ask(json, headers)).json()) as Result;
const decideAll = async (json: object): Promise<readonly Result[]> =>
  ((await (await ask(json, {}, 'evaluations?lane=TODO_EDIT')).json()) as { evaluations: Result[] }).evaluations;

describe('an evaluation', () => {
  test('is recorded before it is answered, and the caller reports the outcome', async () => {
    const { decision, context } = await decide(EVALUATION);
    expect([decision, context['code']]).toEqual([true, 'ALLOWED']);
    const call = String(context['call']);
    expect(await http.bench.turnpike.ledger.run(call)).toMatchObject({ status: 'running', run_kind: 'tool_gateway' });
    const report = await http.ask(`/runs/${call}/report`, token, { json: { status: 'done' } });
    expect(report.status).toBe(200);
    expect(await http.bench.turnpike.ledger.run(call)).toMatchObject({ status: 'completed' });
  });

  test('has the rule and a constant message in its context when it is denied', async () => {
    const { decision, context } = await decide(UNKNOWN);
    expect([decision, context['code']]).toEqual([false, 'NOT_EXTERNAL']);
    expect(context['message']).toBe('No external tool has the name of the action.');
    expect(await decide({ ...EVALUATION, resource: { ...RESOURCE, properties: { color: 'red' } } })).toMatchObject({
      decision: false,
      context: { code: 'INVALID_ARGS' },
    });
  });

  test('ignores unknown members', async () => {
    expect((await decide({ ...EVALUATION, later: 1, subject: { ...subject, ipAddress: 'x' } })).decision).toBe(true);
  });

  test('with an idempotency key gets the recorded decision again, but not for another request', async () => {
    const key = { 'idempotency-key': 'one' };
    const first = await decide(EVALUATION, key);
    expect(await decide(EVALUATION, key)).toEqual(first);
    expect((await decide(EVALUATION)).context['call']).not.toBe(first.context['call']);
    expect(await codeOf(await ask(UNKNOWN, key))).toBe('422 IDEMPOTENCY_CONFLICT');
  });

  test('of a lane that the role does not have is denied by a recorded run', async () => {
    const answer = (await (await ask(EVALUATION, {}, 'evaluation?lane=TODO_VIEW')).json()) as Result;
    expect(answer).toMatchObject({ decision: false, context: { code: 'RUN_DENIED', rule: 'role.lane_not_granted' } });
    expect(await http.bench.turnpike.ledger.run(String(answer.context['run']))).toMatchObject({ status: 'denied' });
  });
});

describe('a list of evaluations', () => {
  const list = (semantic?: string) => ({
    ...{ subject, resource: RESOURCE },
    evaluations: [EVALUATION, UNKNOWN, EVALUATION].map(({ action }) => ({ action })),
    ...(semantic === undefined ? {} : { options: { evaluations_semantic: semantic } }),
  });
  test.each([
    [undefined, [true, false, true]],
    ['execute_all', [true, false, true]],
    ['deny_on_first_deny', [true, false]],
    ['permit_on_first_permit', [true]],
  ])('with the semantic %s has the decisions %j', async (semantic, expected) => {
    expect((await decideAll(list(semantic))).map(({ decision }) => decision)).toEqual(expected);
  });

  test('without evaluations is one evaluation', async () => {
    const response = await ask({ ...EVALUATION, evaluations: [] }, {}, 'evaluations?lane=TODO_EDIT');
    expect(await response.json()).toMatchObject({ decision: true });
  });

  test('with another subject in one of them is refused before anything is recorded', async () => {
    const before = (await http.bench.entries()).length;
    const other = { ...EVALUATION, subject: { type: 'user', id: 'somebody' } };
    const response = await ask({ evaluations: [EVALUATION, other] }, {}, 'evaluations?lane=TODO_EDIT');
    expect(await codeOf(response)).toBe('403 RIGHT_MISSING');
    expect(await http.bench.entries()).toHaveLength(before);
  });
});

describe('errors', () => {
  test.each([
    ['text that is not JSON', '{', '400 INVALID_JSON'],
    ['a list', [], '400 INVALID_EVALUATION'],
    ['no subject', { ...EVALUATION, subject: undefined }, '400 INVALID_EVALUATION'],
    ['a resource without an id', { ...EVALUATION, resource: { type: 'todo' } }, '400 INVALID_EVALUATION'],
    ['another subject', { ...EVALUATION, subject: { type: 'user', id: 'somebody' } }, '403 RIGHT_MISSING'],
    ['a long action', { ...EVALUATION, action: { name: 'a'.repeat(129) } }, '400 INVALID_EVALUATION'],
  ])('%s is refused', async (_what, json, code) => {
    expect(await codeOf(await ask(json))).toBe(code);
  });

  test('an evaluation that lacks a member without a default, too many of them, or an unknown semantic are refused', async () => {
    const many = { ...EVALUATION, evaluations: Array.from({ length: 65 }, () => ({})) };
    const unknown = { ...EVALUATION, evaluations: [{}], options: { evaluations_semantic: 'any' } };
    for (const json of [{ subject, evaluations: [{}] }, { subject }, many, unknown])
      expect(await codeOf(await ask(json, {}, 'evaluations'))).toBe('400 INVALID_EVALUATION');
  });

  test('a missing token, a missing right and a token for another case are refused', async () => {
    expect((await ask(EVALUATION, { authorization: 'Bearer none' })).status).toBe(401);
    const observer = http.token({ ...grantOf('morty'), rights: ['observe'] });
    expect(await codeOf(await ask(EVALUATION, { authorization: `Bearer ${observer}` }))).toBe('403 RIGHT_MISSING');
    const bound = http.token({ ...grantOf('morty'), case: 'case-0001' });
    const other = await ask(
      EVALUATION,
      { authorization: `Bearer ${bound}` },
      'evaluation?lane=TODO_EDIT&case=case-0002',
    );
    expect(await codeOf(other)).toBe('403 RIGHT_MISSING');
  });
});

test('the id of a request is in each response, refused or not', async () => {
  const id = 'bfe9eb29-ab87-4ca3-be83-a1d5d8305716';
  const answers = [
    await ask(EVALUATION, { 'x-request-id': id }),
    await ask('{', { 'x-request-id': id }),
    await ask(EVALUATION, { 'x-request-id': id, authorization: 'Bearer none' }),
  ];
  expect(answers.map(({ status, headers }) => [status, headers.get('x-request-id')])).toEqual([
    [200, id],
    [400, id],
    [401, id],
  ]);
  for (const other of ['x'.repeat(129), 'a b'])
    expect((await ask(EVALUATION, { 'x-request-id': other })).headers.get('x-request-id')).toBeNull();
  const health = await http.ask('/health', token, { headers: { 'x-request-id': id } });
  expect(health.headers.get('x-request-id')).toBeNull();
});

test('the metadata names the addresses', async () => {
  const response = await fetch(`${http.server.url}/.well-known/authzen-configuration`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const host = new URL(http.server.url).host;
  expect(await response.json()).toEqual({
    policy_decision_point: `https://${host}`,
    access_evaluation_endpoint: `https://${host}/access/v1/evaluation`,
    access_evaluations_endpoint: `https://${host}/access/v1/evaluations`,
  });
});

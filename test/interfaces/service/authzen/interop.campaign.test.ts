// The interoperability cases of AuthZEN 1.0 (todo application) against the running service.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HttpBench } from '../../http/http-harness.js';
import {
  grantOf,
  laneOf,
  nameOf,
  TODO_CASES,
  TODO_CONDITIONS,
  todoEdit,
  todoTools,
  type SubjectName,
  type TodoCase,
} from './todo.js';

let http: HttpBench;
const tokens = new Map<SubjectName, string>();
beforeAll(async () => {
  http = await HttpBench.open({ edit: todoEdit, conditions: TODO_CONDITIONS, tools: todoTools });
});
afterAll(() => http.close());

const tokenOf = (name: SubjectName): string => {
  const token = tokens.get(name) ?? http.token(grantOf(name));
  tokens.set(name, token);
  return token;
};
async function decisionsOf({ api, request }: TodoCase): Promise<readonly boolean[]> {
  const name = nameOf(request.subject.id);
  const response = await fetch(`${http.server.url}/access/v1/${api}?lane=${laneOf(name)}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokenOf(name)}`, 'content-type': 'application/json' },
    body: JSON.stringify(request),
  });
  expect([response.status, response.headers.get('content-type')?.split(';')[0]]).toEqual([200, 'application/json']);
  const body = (await response.json()) as { decision?: boolean; evaluations?: { decision: boolean }[] };
  return api === 'evaluation' ? [body.decision === true] : (body.evaluations ?? []).map(({ decision }) => decision);
}

/** The parts of a case: what it is about, and the expected decision. */
function partsOf(todoCase: TodoCase): readonly { readonly words: string; readonly expected: boolean }[] {
  const { subject, action } = todoCase.request;
  const wordsOf = (owner: string | undefined): string => `${nameOf(subject.id)} ${action.name} ${owner ?? ''}`.trim();
  if (todoCase.api === 'evaluation')
    return [{ words: wordsOf(todoCase.request.resource.properties?.ownerID), expected: todoCase.expected }];
  return todoCase.request.evaluations.map(({ resource }, at) => ({
    words: wordsOf(resource.properties?.ownerID),
    expected: todoCase.expected[at]?.decision === true,
  }));
}

const LABELLED = TODO_CASES.map(
  (todoCase, at) => [`${at + 1}: ${partsOf(todoCase)[0]?.words ?? ''}`, todoCase] as const,
);

describe('AuthZEN 1.0, todo application', () => {
  test('the scenario has 40 evaluations and 3 lists', () => {
    const count = (api: TodoCase['api']): number => TODO_CASES.filter((one) => one.api === api).length;
    expect([count('evaluation'), count('evaluations')]).toEqual([40, 3]);
  });

  test.each(LABELLED)('%s', async (_label, todoCase) => {
    expect(await decisionsOf(todoCase)).toEqual(partsOf(todoCase).map(({ expected }) => expected));
  });
});

// Agents over HTTP: starting a run with an idempotency key, and reporting what the client has executed itself.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { defineExternalTool } from '../../../../src/runtime/effects/define-effects.js';
import { StartAgentBody } from '../../../../src/interfaces/http/routes/agent-routes.js';
import { serviceEdit } from '../../../fixtures/service.js';
import { codeOf, HttpBench, proposal } from '../http-harness.js';

interface Started {
  readonly run_id: string;
  readonly ending: { readonly state: string } | null;
  readonly resumed: boolean;
}

let http: HttpBench;
afterEach(() => http.close());

const post = (token: string, key: string | null, json: object = {}): Promise<Response> =>
  http.ask('/agents', token, { json, headers: key === null ? {} : { 'idempotency-key': key } });

async function start(token: string, key: string | null, json: object = {}): Promise<Started & { status: number }> {
  const response = await post(token, key, json);
  return { status: response.status, ...((await response.json()) as Started) };
}

describe('D3: a run that is started with a key', () => {
  beforeEach(async () => {
    http = await HttpBench.open();
  });

  test('is started once: a repeated request gets it again, also after a restart and after its end', async () => {
    const token = http.token();
    const first = await start(token, 'task-1');
    expect(first).toMatchObject({ status: 201, resumed: false, ending: null });
    const again = { status: 200, run_id: first.run_id, resumed: true };
    expect(await start(token, 'task-1')).toMatchObject({ ...again, ending: null });
    http = await http.reopened();
    expect(await start(token, 'task-1')).toMatchObject({ ...again, ending: null });
    const step = await http.ask(`/agents/${first.run_id}/steps`, token, { body: proposal('THINK', { thought: 'x' }) });
    expect(step.status).toBe(200);
    await http.ask(`/agents/${first.run_id}/end`, token, { json: {} });
    expect(await start(token, 'task-1')).toMatchObject({ ...again, ending: { state: 'completed' } });
  });

  test('is started once by requests that arrive together', async () => {
    const token = http.token();
    const started = await Promise.all([1, 2, 3, 4].map(() => start(token, 'together')));
    expect(new Set(started.map(({ run_id }) => run_id)).size).toBe(1);
    const created = (await http.bench.entries()).filter(({ type }) => type === 'run_created');
    expect(created).toHaveLength(2);
  });

  test('belongs to its actor and role: another agent with the same key starts a run of its own', async () => {
    const tokens = [http.token(), http.token({ actor: 'agent-two' }), http.token({ role: 'CASE_AGENT' })];
    const started = await Promise.all(tokens.map((token) => start(token, 'same')));
    expect(started.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(new Set(started.map(({ run_id }) => run_id)).size).toBe(3);
    // Nor is it the key of a caller of the library.
    const inside = await http.bench.turnpike.startAgent({ key: 'same', actor: 'agent-one' });
    expect(inside.resumed).toBe(false);
  });

  test('0078: is refused to a request with another value of any member', async () => {
    const token = http.token();
    const taxonomy = { coa: 'coa-1', tags: 'tags-1', entities: 'entities-1' };
    const values: Readonly<Record<string, readonly [unknown, unknown]>> = {
      lane: ['SANDBOX_FILES', 'CASE_WORK'],
      case: ['case-0001', 'case-0002'],
      scope: [{ matter_id: 'M-1' }, { matter_id: 'M-2' }],
      correlation: ['cor_one', 'cor_two'],
      taxonomy: [taxonomy, { ...taxonomy, coa: 'coa-2' }],
      exposure: ['decision', 'detailed'],
      idle_ms: [5_000, 6_000],
      budget: [{ steps: 3 }, { steps: 4 }],
    };
    expect(Object.keys(values)).toEqual(Object.keys(StartAgentBody.properties));
    const first = Object.fromEntries(Object.entries(values).map(([name, [value]]) => [name, value]));
    const { run_id } = await start(token, 'every-member', first);
    expect(await start(token, 'every-member', first)).toMatchObject({ status: 200, run_id });
    for (const [name, [, other]] of Object.entries(values)) {
      const response = await post(token, 'every-member', { ...first, [name]: other });
      expect([name, await codeOf(response)]).toEqual([name, '409 RUN_KEY_CONFLICT']);
    }
  });

  test('needs a key of 1 to 255 visible characters', async () => {
    const token = http.token();
    for (const key of ['a b', 'x'.repeat(256)]) {
      const response = await post(token, key);
      expect(await codeOf(response)).toBe('422 INVALID_REQUEST');
    }
    expect(await http.bench.entries()).toEqual([]);
  });
});

test('without a key each request starts a run', async () => {
  http = await HttpBench.open();
  const token = http.token();
  const [one, other] = [await start(token, null), await start(token, null)];
  expect([one.status, other.status, one.resumed]).toEqual([201, 201, false]);
  expect(one.run_id).not.toBe(other.run_id);
});

describe('U-10: the report of an action that the client has executed', () => {
  const shell = defineExternalTool({
    name: 'mail.send',
    input: Type.Object({ command: Type.String() }, { additionalProperties: false }),
  });
  const CASE_AGENT = { role: 'CASE_AGENT', actor: 'agent-one' } as const;
  const CALL = proposal('CALL_TOOL', { tool: 'mail.send', input: { command: 'ls' } });
  let token: string;
  let run: string;
  beforeEach(async () => {
    http = await HttpBench.open({ edit: serviceEdit, tools: [shell] });
    token = http.token(CASE_AGENT);
    const agent = await http.start(token, { lane: 'CASE_WORK', case: 'case-0001' });
    const answer = await http.ask(`/agents/${agent}/steps`, token, { body: CALL });
    const { result } = (await answer.json()) as { result: { authorized: boolean; run_id: string } };
    expect(result.authorized).toBe(true);
    run = result.run_id;
  });
  const report = (who: string, json: object, of = run): Promise<Response> =>
    http.ask(`/runs/${of}/report`, who, { json });

  test('is recorded once, however often it is sent', async () => {
    const outcome = { status: 'failed', result: { exit_code: 2, lines: ['no'] }, match: 'exact' };
    for (let n = 0; n < 3; n += 1) expect((await report(token, outcome)).status).toBe(200);
    expect((await http.bench.entries()).filter(({ body }) => 'kind' in body && body.kind === 'report')).toHaveLength(1);
    expect(await http.bench.turnpike.ledger.run(run)).toMatchObject({ status: 'failed' });
    expect(await codeOf(await report(token, { status: 'done' }))).toBe('409 INVALID_STATE_TRANSITION');
  });

  test.each([
    ['another actor', { ...CASE_AGENT, actor: 'agent-two' }],
    ['another role', { ...CASE_AGENT, role: 'SANDBOX_AGENT' }],
    ['a token for another case', { ...CASE_AGENT, case: 'case-0002' }],
  ] as const)('is not taken from %s, which does not learn that there is such a run', async (_who, grant) => {
    const stranger = http.token(grant);
    const before = (await http.bench.entries()).length;
    expect(await codeOf(await report(stranger, { status: 'done' }))).toBe('404 RUN_UNKNOWN');
    expect(await codeOf(await report(stranger, { status: 'done' }, `${run}7`))).toBe('404 RUN_UNKNOWN');
    expect(await http.bench.entries()).toHaveLength(before);
  });

  test('needs a body of its schema', async () => {
    for (const json of [{}, { status: 'ok' }, { status: 'done', result: 'text' }, { status: 'done', more: 1 }])
      expect(await codeOf(await report(token, json))).toBe('422 INVALID_REQUEST');
  });
});

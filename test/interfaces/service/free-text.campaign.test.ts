// S4-62, C90: free text that arrives over HTTP, MCP or the command is gone when its case is erased. The lists of places
// are generated from routes, tools and commands, so that every new place must be added to this campaign.

import { afterEach, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import Type from 'typebox';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { isJsonObject } from '../../../src/core/contract/json.js';
import { defineTool } from '../../../src/runtime/effects/define-effects.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { ROUTES } from '../../../src/interfaces/http/routes/system-routes.js';
import { initialised, line, turnpike } from '../cli/fake-io.js';
import { Canaries } from '../../fixtures/canaries.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { HttpBench, proposal } from '../http/http-harness.js';
import { call, clientOf, serviceOn } from '../mcp/mcp-harness.js';

const SPEC = (canaries: Canaries) => ({
  spec_version: 1,
  id: 'small',
  title: canaries.text('spec'),
  phases: [
    {
      id: 'only',
      title: 'Only',
      gate: { reviewer: 'manual' },
      tasks: [{ id: 'one', title: 'One', instruction: canaries.text('instruction') }],
    },
  ],
});

/** What becomes of each text in a body. */
const PLACES: Readonly<Record<string, string>> = {
  'POST /access/v1/evaluation action name': 'a name of a tool, in a payload',
  'POST /access/v1/evaluation resource id': 'a payload',
  'POST /access/v1/evaluation resource type': 'a payload',
  'POST /access/v1/evaluation subject id': 'the actor of the token, or refused',
  'POST /access/v1/evaluation subject type': 'a payload',
  'POST /access/v1/evaluations action name': 'a name of a tool, in a payload',
  'POST /access/v1/evaluations resource id': 'a payload',
  'POST /access/v1/evaluations resource type': 'a payload',
  'POST /access/v1/evaluations subject id': 'the actor of the token, or refused',
  'POST /access/v1/evaluations subject type': 'a payload',
  'POST /api/v1/agents taxonomy coa': 'an identifier, or a usage error',
  'POST /api/v1/agents taxonomy entities': 'an identifier, or a usage error',
  'POST /api/v1/agents taxonomy tags': 'an identifier, or a usage error',
  'POST /api/v1/agents/{run_id}/steps': 'a payload',
  'POST /api/v1/exports reason': 'a note of the scope, and an argument of the request',
  'POST /api/v1/hooks/{client}': 'an artifact of the case, and a payload; test/features/hooks/gate erases them',
  'POST /api/v1/runs/{run_id}/cancel reason': 'a note',
  'POST /api/v1/runs/{run_id}/outcome note': 'a note',
  'POST /api/v1/sessions spec_id': 'a name that operators give',
  'POST /api/v1/sessions/{session_id}/end reason_detail': 'a note',
  'POST /api/v1/sessions/{session_id}/pause reason': 'a note',
  'POST /api/v1/sessions/{session_id}/resume acknowledge gate_attempt_id': 'an id of the session, or a hash',
  'POST /api/v1/sessions/{session_id}/review phase_id': 'a name of the spec, or a hash',
  'POST /api/v1/sessions/{session_id}/review step_id': 'an id of the session, or a hash',
  'POST /api/v1/sessions/{session_id}/verify step_id': 'an id of the session, or a hash',
  'POST /api/v1/sessions/{session_id}/waive phase_id': 'a name of the spec, or a hash',
  'POST /api/v1/sessions/{session_id}/waive reason_detail': 'a note',
};

/** What becomes of the text of each option; the same library calls record it. */
const OPTIONS: Readonly<Record<string, string>> = {
  'decide --key': 'a part of an id, which is a hash',
  'export --reason': 'a note of the scope, and an argument of the request',
  'policy deny --reason': 'a hash; the text stands in the overlay of the operator',
  'policy pin --reason': 'it stands in pins.json, beside the policy that it accepts, and in no ledger',
  'runs resolve --note': 'a note',
  'session end --detail': 'a note',
  'session pause --reason': 'a note',
  'session waive --detail': 'a note',
};

let http: HttpBench | null = null;
afterEach(async () => {
  await http?.close();
  http = null;
});

async function served(): Promise<HttpBench> {
  const { tools, targets } = service();
  const none = Type.Object({}, { additionalProperties: false });
  const lost = defineTool({
    name: 'mail.send',
    input: none,
    output: none,
    run: () => {
      throw new Error('the answer was lost');
    },
  });
  http = await HttpBench.open({ edit: serviceEdit, tools: [...tools, lost], targets });
  return http;
}

/** Members of bodies that are free text, without an enumeration or narrow pattern, as `POST path member`. */
function textsIn(schema: unknown, name: string): readonly string[] {
  if (!isJsonObject(schema)) return [];
  const { type, pattern, properties, enum: listed } = schema;
  if (type === 'string' && listed === undefined) return pattern === undefined ? [name] : [];
  return Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([member, part]) =>
    textsIn(part, `${name} ${member}`),
  );
}

describe('over HTTP', () => {
  test('the campaign covers every text in the body of a route', () => {
    const found = ROUTES.flatMap(({ method, path, body }) => textsIn(body, `${method} ${path}`));
    expect([...new Set(found)].sort()).toEqual(Object.keys(PLACES).sort());
  });

  test('S4-62: nothing of it is left after an erasure', async () => {
    const canaries = new Canaries();
    const of = await served();
    const { bench } = of;
    const rights = ['act', 'govern', 'observe', 'sessions', 'approve'] as const;
    const token = of.token({ role: CASE_AGENT.role, rights });
    const anna = of.token({ actor: 'anna', role: 'ATTORNEY_ADMIN', rights });
    const maintainer = of.token({ actor: 'anna', role: 'maintainer', rights });
    const post = async (path: string, json: unknown, by = token) => (await of.ask(path, by, { json })).json() as never;
    const place = { lane: CASE_AGENT.lane, scope: { why: canaries.text('POST /agents scope') } };
    const run = await of.start(token, place);
    await of.ask(`/agents/${run}/steps`, token, { body: canaries.text('POST steps'), method: 'POST' });
    await of.ask(`/agents/${run}/steps`, token, { body: proposal(canaries.word('action')), method: 'POST' });
    await post(`/runs/${run}/cancel`, { reason: canaries.text('POST cancel reason') });
    const other = await of.start(token, { lane: CASE_AGENT.lane });
    await of.ask(`/agents/${other}/steps`, token, {
      body: proposal('CALL_TOOL', { tool: 'mail.send', input: {} }),
      method: 'POST',
    });
    await of.ask(`/agents/${other}/end`, token, { method: 'POST', json: {} });
    await post(`/runs/${other}.1/outcome`, { outcome: 'done', note: canaries.text('POST outcome note') }, anna);
    const promoted = {
      case: 'case-local',
      ticket: 'T-1',
      target: 'shared_heuristics',
      record: { id: canaries.text('record') },
    };
    await post('/promotions', { ...promoted, scope: { why: canaries.text('POST promotions scope') } }, anna);
    // In a role that may not export: a bag lies outside of the home directory.
    await post('/exports', { case: 'case-local', reason: canaries.text('POST exports reason'), name: 'bag' });
    const { sessions } = bench.turnpike;
    const by = { actor: 'anna', role: 'maintainer' };
    const { data } = await sessions.start({ spec: SPEC(canaries) as never, by, allowGateWaiver: true });
    const session = `/sessions/${data?.session_id ?? ''}`;
    await post(`${session}/next`, { context_usage_pct: 1 }, maintainer);
    await post(`${session}/next`, { last_step_result: { note: canaries.text('POST next report') } }, maintainer);
    await post(`${session}/verify`, { step_id: canaries.word('POST verify step_id') }, maintainer);
    await post(
      `${session}/review`,
      { step_id: canaries.word('POST review step_id'), phase_id: canaries.word('phase_id') },
      maintainer,
    );
    await post(`${session}/pause`, { reason: canaries.text('POST pause reason') }, maintainer);
    const acknowledge = { gate_attempt_id: canaries.word('POST resume gate_attempt_id'), decision: 'pass' };
    await post(`${session}/resume`, { acknowledge }, maintainer);
    const detail = (of_: string) => ({ reason_code: 'testing', reason_detail: canaries.text(of_) });
    await post(`${session}/waive`, { ...detail('POST waive reason_detail'), phase_id: 'only' }, maintainer);
    await post(`${session}/end`, detail('POST end reason_detail'), maintainer);
    await bench.turnpike.erase({ case: 'case-local', actor: 'anna' });
    expect(canaries.foundIn(bench.home)).toEqual([]);
    expect(canaries.places.length).toBeGreaterThan(15);
  });
});

test('S4-62: an erasure leaves no text that arrived over MCP', async () => {
  const canaries = new Canaries();
  const { bench } = await served();
  const client = await clientOf(serviceOn(bench, { lane: CASE_AGENT.lane, role: CASE_AGENT.role } as never));
  const text = canaries.text.bind(canaries);
  await call(client, 'propose', { proposal: text('propose') }, canaries.word('key').replace('Qvillfeder', 'k'));
  await call(client, 'propose', { proposal: proposal(canaries.word('action'), { [canaries.word('argument')]: 1 }) });
  await call(client, 'think', { reasoning: text('reasoning'), [canaries.word('own argument')]: 1 });
  await call(client, 'write_record', {
    target: canaries.word('target'),
    mode: 'append',
    record: {},
    reasoning: text('why'),
  });
  await call(client, canaries.word('tool'), { x: text('argument of a tool') }).catch(() => undefined);
  await call(client, 'task', { action: 'session-step', command: 'next', session_id: canaries.word('session') });
  await call(client, 'finish', { response: text('last word'), reasoning: 'x' });
  await client.close();
  for await (const { root_run_id } of bench.turnpike.ledger.treesAfter(-1)) {
    await (await bench.turnpike.agent(`${root_run_id}.1`))?.cancel(text('cancel'));
  }
  await bench.turnpike.erase({ case: 'case-local', actor: 'anna' });
  expect(canaries.foundIn(bench.home)).toEqual([]);
});

describe('with the command', () => {
  test('the campaign covers every option that takes a text', () => {
    const found = COMMANDS.flatMap(({ name, options = [] }) =>
      options.flatMap((option) => ('value' in option && option.value === 'TEXT' ? [`${name} --${option.name}`] : [])),
    );
    expect(found.sort()).toEqual(Object.keys(OPTIONS).sort());
  });

  test('S4-62: nothing of it is left after an erasure', async () => {
    const canaries = new Canaries();
    const folder = await initialised();
    const anna = ['--actor', 'anna', '--role', 'ATTORNEY_ADMIN', '--case', 'case-local'];
    await turnpike(folder, ['run', '-'], {
      stdin: [line(canaries.word('action'), {}), canaries.text('no JSON')].join('\n'),
    });
    const promoted = ['promote', ...anna, '--ticket', canaries.text('ticket'), '--target', 'shared_playbooks'];
    await turnpike(folder, [...promoted, '--record', JSON.stringify({ text: canaries.text('record') })]);
    await turnpike(folder, [
      'export',
      ...anna,
      '--reason',
      canaries.text('export --reason'),
      '--to',
      'bag',
      '--lane',
      'NONE',
    ]);
    await turnpike(folder, ['policy', 'deny', '--tool', 'a.tool', '--reason', canaries.word('policy deny --reason')]);
    await turnpike(folder, ['run', '-'], { stdin: line('THINK', {}) });
    const opened = await openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract') });
    await opened.erase({ case: 'case-local', actor: 'anna' });
    await opened.close();
    // The overlay is the operator's file, not a record.
    expect(canaries.foundIn(join(folder, '.turnpike'), /overlay/)).toEqual([]);
  });
});

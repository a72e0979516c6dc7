// Every entrance by which a caller begins a run, with each case that it can give, in a lane that requires a case and in
// one that does not (S4-34, S4-84).

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import type { Entry, RunCreated } from '../../../src/core/contract/run/entry.js';
import type { AgentOptions } from '../../../src/runtime/agents/agent-run.js';
import { chooseCase, givenCaseOf, isInCase } from '../../../src/runtime/agents/choose-case.js';
import { Bench } from '../../fixtures/bench.js';
import { service } from '../../fixtures/service.js';
import { shippedPolicy } from '../../fixtures/shipped-policy.js';
import { HttpBench, proposal } from '../../interfaces/http/http-harness.js';

const LANES = { files: 'SANDBOX_FILES', promotion: 'PROMOTE_IN_CASE', export: 'EXPORT_CASE_DATA' } as const;
const FREE_LANES = { files: 'FREE_FILES', promotion: 'PROMOTE_SHARED_KNOWLEDGE', export: 'EXPORT_ANYTHING' } as const;
type Lanes = typeof LANES | typeof FREE_LANES;

/** The shipped policy with a twin of each lane, which requires a case or not. */
function edit(name: string, text: string): string {
  const twinOf = (lane: string, twin: string, change: (lane: string) => string): string => {
    const from = text.indexOf(`  - lane_id: ${lane}`);
    const end = text.indexOf('\n  - lane_id:', from + 1);
    return `${change(text.slice(from, end === -1 ? undefined : end).replace(lane, twin)).trimEnd()}\n`;
  };
  const caseless = (lane: string): string => lane.replace('[case_id, ', '[').replace('cross_case_lookup, ', '');
  if (name === 'lanes') {
    return [
      `${text.trimEnd()}\n`,
      twinOf('SANDBOX_FILES', 'FREE_FILES', caseless),
      twinOf('EXPORT_CASE_DATA', 'EXPORT_ANYTHING', caseless),
      twinOf('PROMOTE_SHARED_KNOWLEDGE', 'PROMOTE_IN_CASE', (lane) =>
        lane.replace('requires: [', 'requires: [case_id, ').replace('GOVERNANCE_AGENT, ', ''),
      ),
    ].join('');
  }
  if (name === 'roles') {
    return text
      .replace('[SANDBOX_FILES]', '[SANDBOX_FILES, FREE_FILES]')
      .replace('EXPORT_CASE_DATA]', 'EXPORT_CASE_DATA, EXPORT_ANYTHING, PROMOTE_IN_CASE]');
  }
  return text;
}

const SPEC = {
  spec_version: 1 as const,
  title: 'A spec',
  phases: [{ id: 'p', title: 'P', tasks: [{ id: 't', title: 'T', instruction: 'Do.' }] }],
};
const RECORD = { id: 'p-1', text: 'Ask first.' };

let bench: Bench;
let services: ReadonlyMap<Lanes, HttpBench>;
/** A case of another caller: the own case of a run that has none from its caller. */
let foreign: string;
let drawn = 0;
const fresh = (): string => `fresh-${(drawn += 1)}`;

beforeAll(async () => {
  bench = await Bench.open({ caseless: true, edit, hooks: true, ids: nanoidIds(), targets: service().targets });
  const agent = (lanes: Lanes) => ({ agent: { lane: lanes.files }, sessions: { inlineSpecs: true } });
  services = new Map<Lanes, HttpBench>([
    [LANES, await HttpBench.on(bench, agent(LANES))],
    [FREE_LANES, await HttpBench.on(bench, agent(FREE_LANES))],
  ]);
  foreign = `case-of-${(await bench.turnpike.startAgent({ lane: FREE_LANES.files })).root_run_id}`;
});
afterAll(async () => {
  await services.get(FREE_LANES)?.server.close();
  await services.get(LANES)?.close();
});

const serviceFor = (lanes: Lanes): HttpBench => {
  const service = services.get(lanes);
  if (service === undefined) throw new Error('no service');
  return service;
};

interface Call {
  readonly lanes: Lanes;
  readonly case: string | undefined;
}
/** How a caller gives its case: in the request, or by the token that it has. */
interface Entrance {
  readonly gives: 'request' | 'token';
  /** Whether the run is one that a person starts: it is made of a case, and may concern any. */
  readonly ofPerson?: true;
  readonly begin: (call: Call) => Promise<unknown>;
}

const caseOf = ({ case: case_id }: Call): { readonly case?: string } =>
  case_id === undefined ? {} : { case: case_id };
const agentOf = (call: Call): AgentOptions => ({ lane: call.lanes.files, actor: fresh(), ...caseOf(call) });
const query = (values: Readonly<Record<string, string>>): string => `?${new URLSearchParams(values).toString()}`;
const agentToken = (call: Call, bound = false): string =>
  serviceFor(call.lanes).token({
    actor: fresh(),
    rights: bound ? ['act'] : ['act', 'sessions'],
    ...(bound && call.case !== undefined ? { case: call.case } : {}),
  });
const personToken = ({ lanes }: Call): string =>
  serviceFor(lanes).token({ actor: 'anna', role: 'ATTORNEY_ADMIN', rights: ['govern'] });
const CALL = { tool: 'native.shell', input: { command: 'true' } };
const hookEvent = (session_id: string) => ({
  ...{ session_id, transcript_path: '/t', cwd: '/p', permission_mode: 'default', hook_event_name: 'SessionStart' },
});
const ANNA = { actor: 'anna', role: 'ATTORNEY_ADMIN' };

async function overMcp(call: Call): Promise<unknown> {
  const headers = { authorization: `Bearer ${agentToken(call, true)}` };
  const url = new URL(`${serviceFor(call.lanes).server.url}/mcp`);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  try {
    return await client.callTool({ name: 'list_files', arguments: { path: '/sandbox/' } });
  } finally {
    await client.close();
  }
}

async function session(call: Call): Promise<unknown> {
  const { sessions } = bench.turnpike;
  const by = { actor: 'anna', role: 'maintainer' };
  const options = { spec: { ...SPEC, id: fresh() }, lane: call.lanes.files, by, ...caseOf(call) };
  const id = (await sessions.start(options)).data?.session_id;
  return id === undefined ? null : sessions.next(id, {}, { actor: 'agent', role: 'autonomy_runner' });
}

async function sessionOverHttp(call: Call): Promise<unknown> {
  const [http, token] = [serviceFor(call.lanes), agentToken(call)];
  const spec = { ...SPEC, id: fresh() };
  const started = await http.ask('/sessions', token, { json: { spec, ...caseOf(call) } });
  const { data } = (await started.json()) as { readonly data: { readonly session_id: string } };
  return http.ask(`/sessions/${data.session_id}/next`, token, { json: {} });
}

const evaluation = (actor: string) => ({
  subject: { type: 'agent', id: actor },
  action: { name: CALL.tool },
  resource: { type: 'tool', id: CALL.tool },
});

const ENTRANCES: Readonly<Record<string, Entrance>> = {
  startAgent: { gives: 'request', begin: (call) => bench.turnpike.startAgent(agentOf(call)) },
  'startAgent with a key': {
    gives: 'request',
    begin: (call) => bench.turnpike.startAgent({ ...agentOf(call), key: fresh() }),
  },
  remoteAgents: { gives: 'request', begin: (call) => bench.turnpike.remoteAgents.start(agentOf(call)) },
  decide: {
    gives: 'request',
    begin: (call) =>
      bench.turnpike.decide({
        ...CALL,
        actor: fresh(),
        role: 'SANDBOX_AGENT',
        lane: call.lanes.files,
        ...caseOf(call),
      }),
  },
  sessions: { gives: 'request', begin: session },
  hooks: {
    gives: 'request',
    begin: async (call) => {
      const caller = { actor: fresh(), role: 'SANDBOX_AGENT', lane: call.lanes.files, project: '/p', ...caseOf(call) };
      return bench.turnpike.hooks?.answer('claude-code', hookEvent(fresh()), caller, {
        version: '2.1.330',
        findings: [],
      });
    },
  },
  'POST /agents': {
    gives: 'request',
    begin: (call) =>
      serviceFor(call.lanes).ask('/agents', agentToken(call), { json: { lane: call.lanes.files, ...caseOf(call) } }),
  },
  'POST /agents with a key': {
    gives: 'request',
    begin: (call) =>
      serviceFor(call.lanes).ask('/agents', agentToken(call), {
        json: caseOf(call),
        headers: { 'idempotency-key': fresh() },
      }),
  },
  'POST /agents with a bound token': {
    gives: 'token',
    begin: (call) => serviceFor(call.lanes).ask('/agents', agentToken(call, true), { json: {} }),
  },
  'MCP over HTTP': { gives: 'token', begin: overMcp },
  'POST /access/v1/evaluation': {
    gives: 'request',
    begin: (call) => {
      const [http, actor] = [serviceFor(call.lanes), fresh()];
      const token = http.token({ actor, rights: ['act'] });
      return http.ask(`/access/v1/evaluation${query(caseOf(call))}`, token, { json: evaluation(actor) });
    },
  },
  'POST /sessions': { gives: 'request', begin: sessionOverHttp },
  promote: {
    gives: 'request',
    ofPerson: true,
    begin: (call) =>
      bench.turnpike.promote({
        ...{ ...ANNA, ticket: 'T-1', target: 'shared_playbooks', record: RECORD },
        ...{ lane: call.lanes.promotion, ...caseOf(call) },
      }),
  },
  export: {
    gives: 'request',
    ofPerson: true,
    begin: (call) =>
      bench.turnpike.export({
        ...ANNA,
        reason: 'audit',
        destination: fresh(),
        lane: call.lanes.export,
        ...caseOf(call),
      }),
  },
  'POST /promotions': {
    gives: 'request',
    ofPerson: true,
    begin: (call) =>
      serviceFor(call.lanes).ask('/promotions', personToken(call), {
        json: {
          ticket: 'T-1',
          target: 'shared_playbooks',
          record: RECORD,
          lane: call.lanes.promotion,
          ...caseOf(call),
        },
      }),
  },
  'POST /exports': {
    gives: 'request',
    ofPerson: true,
    begin: (call) =>
      serviceFor(call.lanes).ask('/exports', personToken(call), {
        json: { reason: 'audit', name: fresh(), lane: call.lanes.export, ...caseOf(call) },
      }),
  },
};

const GIVEN = ['given', 'missing', 'empty', "another's"] as const;
type Given = (typeof GIVEN)[number];
const KINDS: readonly string[] = ['agent', 'promotion', 'export'];

/** What an entrance began: the runs that act, and the rules by which policy denied one. */
async function begun(
  begin: () => Promise<unknown>,
): Promise<{ runs: readonly RunCreated[]; denials: readonly string[] }> {
  const before = (await bench.entries()).length;
  await begin().catch(() => undefined);
  const entries: readonly Entry[] = (await bench.entries()).slice(before);
  return {
    runs: entries.flatMap(({ type, body }) => (type === 'run_created' && KINDS.includes(body.run_kind) ? [body] : [])),
    denials: entries.flatMap(({ type, body }) =>
      type === 'audit_event' && body.authz?.decision === 'deny' ? [body.authz.rule_id] : [],
    ),
  };
}

function valueOf(given: Given): string | undefined {
  if (given === 'missing') return undefined;
  return given === 'empty' ? '' : given === 'given' ? fresh() : foreign;
}

const ALL = Object.entries(ENTRANCES).flatMap(([name, entrance]) =>
  GIVEN.filter((given) => entrance.gives === 'request' || given === 'given' || given === 'missing').flatMap((given) =>
    [true, false].map((isRequired) => ({ name, entrance, given, isRequired })),
  ),
);

describe('S4-34: the case of a run', () => {
  test('every entrance is tested with every case that its callers can give', () => {
    expect([Object.keys(ENTRANCES).length, ALL.length]).toEqual([16, 16 * 8 - 2 * 4]);
  });

  test.each(ALL)('$name: $given, required: $isRequired', async ({ entrance, given, isRequired }) => {
    const call: Call = { lanes: isRequired ? LANES : FREE_LANES, case: valueOf(given) };
    const { runs, denials } = await begun(() => entrance.begin(call));
    const cases = runs.map(({ case_id }) => case_id);
    if (given === 'given' || (given === "another's" && entrance.ofPerson === true)) {
      expect([cases, denials.filter((rule) => rule.startsWith('scope.'))]).toEqual([[call.case], []]);
      return;
    }
    if (given !== 'missing' || (entrance.ofPerson === true && !isRequired)) {
      expect([cases, denials]).toEqual([[], []]);
      return;
    }
    if (isRequired) {
      expect([cases, denials]).toEqual([[null], ['scope.missing.case_id']]);
      const states = await Promise.all(
        runs.map(async ({ run_id }) => (await bench.turnpike.ledger.run(run_id))?.status),
      );
      expect(states).toEqual(['denied']);
    } else {
      // The own case of a session is that of its tree, whose runs are activations.
      expect(cases).toEqual(runs.map(({ root_run_id }) => `case-of-${root_run_id.split('.')[0] ?? ''}`));
      expect(cases).toHaveLength(1);
    }
  });
});

test('S4-84: two tokens that give no case read no file of each other', async () => {
  const http = serviceFor(FREE_LANES);
  const [anna, otto] = [http.token({ actor: 'anna' }), http.token({ actor: 'otto' })];
  const [first, second, third] = [await http.start(anna), await http.start(otto), await http.start(anna)];
  const step = async (run: string, token: string, body: string): Promise<unknown> =>
    (
      await http.ask(`/agents/${run}/steps`, token, { body, headers: { 'content-type': 'application/octet-stream' } })
    ).json();
  const path = '/sandbox/a.md';
  expect(await step(first, anna, proposal('WRITE_FILE', { path, content: 'mine' }))).toMatchObject({
    outcome: 'SUCCESS',
  });
  expect(await step(first, anna, proposal('READ_FILE', { path }))).toMatchObject({ result: { content: 'mine' } });
  for (const [run, token] of [
    [second, otto],
    [third, anna],
  ] as const) {
    expect(await step(run, token, proposal('READ_FILE', { path }))).toMatchObject({ outcome: 'EXECUTION_ERROR' });
  }
});

test('S4-34: the key of a run without a case finds that run again', async () => {
  for (const lane of [FREE_LANES.files, LANES.files]) {
    const options = { lane, key: fresh(), actor: 'agent-key' };
    const [first, again] = [await bench.turnpike.startAgent(options), await bench.turnpike.startAgent(options)];
    expect([again.run_id, again.resumed]).toEqual([first.run_id, true]);
    const other = bench.turnpike.startAgent({ ...options, case: 'case-0001' });
    await expect(other).rejects.toMatchObject({ code: 'RUN_KEY_CONFLICT' });
  }
});

test('chooses, compares and returns cases alike', () => {
  const policy = shippedPolicy();
  expect(chooseCase('run_1', undefined, ['SANDBOX_FILES'], policy)).toBeNull();
  expect(chooseCase('run_1', undefined, ['NO_SUCH_LANE', 'SANDBOX_FILES'], policy)).toBeNull();
  expect(chooseCase('run_1', undefined, ['PROMOTE_SHARED_KNOWLEDGE'], policy)).toBe('case-of-run_1');
  expect(chooseCase('run_1', 'case-0001', ['SANDBOX_FILES'], policy)).toBe('case-0001');
  expect(() => chooseCase('run_1', 'case-of-run_2', [], policy)).toThrow('is the own case of a run');
  expect(() => chooseCase('run_1', 'case-of-ses_2', [], policy)).toThrow('is the own case of a run');
  expect(() => chooseCase('run_1', null as never, [], policy)).toThrow('case: it is not a text');
  for (const given of [undefined, 'case-0001']) {
    const case_id = chooseCase('run_1', given, [], policy);
    expect([
      isInCase({ case_id, root_run_id: 'run_1' }, given),
      isInCase({ case_id, root_run_id: 'run_2' }, 'case-2'),
    ]).toEqual([true, false]);
    expect(givenCaseOf({ case_id, root_run_id: 'run_1' })).toBe(given);
  }
  expect(givenCaseOf({ case_id: null, root_run_id: 'run_1' })).toBeUndefined();
});

// The official conformance suite against the MCP server, over HTTP and through the request guard, for each revision of
// the protocol that it has scenarios for. The tools that its scenarios call are behind the tool gateway.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawToken } from '../../src/stores/keys/access-token.js';
import { MCP_PATH, serveGuarded, serveHttp, type McpHttpServer } from '../../src/interfaces/mcp/serve-http.js';
import { Bench } from '../fixtures/bench.js';
import { serviceOn } from '../interfaces/mcp/mcp-harness.js';
import { ROOT } from '../sources.js';
import {
  extensionScenarios,
  relay,
  REVISIONS,
  scenarios,
  verdicts,
  type Relay,
  type Verdicts,
} from './conformance-suite.js';
import { CONFORMANCE_AGENT, scenarioEdit, SCENARIO_TOOLS } from './scenario-tools.js';

/** The scenarios that fail in every revision to which they apply, each with the reason why that is intended. */
const EXPECTED = JSON.parse(readFileSync(join(ROOT, 'test/conformance/mcp-baseline.json'), 'utf8')) as Record<
  string,
  string
>;
/** How many scenarios apply to a revision. */
const COUNTS = { '2025-06-18': 27, '2025-11-25': 33, '2026-07-28': 40 } as const;
const PASSING = [
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
];
const WITH_SESSIONS = [...PASSING, 'server-initialize', 'server-session-lifecycle', 'ping'];
/** Scenarios that pass, by revision. */
const PASSED = {
  '2025-06-18': WITH_SESSIONS,
  '2025-11-25': [...WITH_SESSIONS, 'server-sse-multiple-streams', 'dns-rebinding-protection'],
  '2026-07-28': [
    ...PASSING,
    'server-sse-multiple-streams',
    'dns-rebinding-protection',
    'http-header-validation',
    'input-required-result-unsupported-methods',
    'input-required-result-validate-input',
  ],
} as const;

const MS_MAX = 180_000;
const token = drawToken();
let bench: Bench;
let door: Relay;
let server: McpHttpServer;

const serving = () => ({
  host: '127.0.0.1',
  port: 0,
  token,
  hosts: [`localhost:${door.port}`],
  origins: [`http://localhost:${door.port}`],
});
const service = () => serviceOn(bench, { tools: SCENARIO_TOOLS, agent: CONFORMANCE_AGENT });
const url = (): string => `http://localhost:${door.port}${MCP_PATH}`;

beforeAll(async () => {
  // The scenarios call tools that do not exist, and all stateless calls of the suite are those of one agent.
  const edit: typeof scenarioEdit = (name, text) =>
    scenarioEdit(name, text).replace('denials_per_run_max: 10', 'denials_per_run_max: 1000');
  bench = await Bench.open({ edit, tools: SCENARIO_TOOLS });
  door = await relay();
  server = await serveHttp(service(), serving());
  door.lead(server.url, token);
});
afterAll(async () => {
  await door.close();
  await server.close();
  await bench.close();
});

const gatewayCalls = async (): Promise<readonly (string | undefined)[]> =>
  (await bench.entries()).flatMap((entry) =>
    entry.type === 'run_created' && entry.body.run_kind === 'tool_gateway' ? [entry.body.request?.name] : [],
  );

describe.each(REVISIONS)('every server scenario of %s', (revision) => {
  let found: Verdicts;
  let calls: readonly (string | undefined)[];
  beforeAll(async () => {
    const before = (await gatewayCalls()).length;
    found = await verdicts(url(), revision);
    calls = (await gatewayCalls()).slice(before);
  }, MS_MAX);

  test('was run', async () => {
    expect([...found.keys()].sort()).toEqual([...(await scenarios(revision))].sort());
    expect(found.size).toBe(COUNTS[revision]);
  });

  test('passes, or is listed as failing with its reason', () => {
    const failing = [...found].filter(([, wrong]) => wrong.length > 0).map(([name]) => name);
    expect(failing.sort()).toEqual(
      Object.keys(EXPECTED)
        .filter((name) => found.has(name))
        .sort(),
    );
    const passed = [...found.keys()].filter((name) => !failing.includes(name));
    expect(passed.sort()).toEqual([...PASSED[revision]].sort());
  });

  test('S4-19: every tool call went through the gateway, in a run of its own', () => {
    // Of a tool that is not registered, the entry has a hash instead of its name: the call was denied.
    const names = [...new Set(calls)].filter((name) => name?.startsWith('sha256:') !== true);
    expect(names.sort()).toEqual(SCENARIO_TOOLS.map(({ definition }) => definition.name).sort());
  });

  test('fails in what is not offered, and in nothing else', () => {
    const wrong = ['server-stateless', 'http-custom-header-server-validation'].flatMap((name) => found.get(name) ?? []);
    expect(wrong.filter((problem) => !problem.startsWith('Not testable'))).toEqual([]);
    const caching = (found.get('caching') ?? []).map((problem) => problem.replace(/ returned JSON-RPC error.*/, ''));
    if (found.has('caching')) expect(caching).toEqual(['prompts/list', 'resources/list', 'resources/templates/list']);
  });
});

test('every listed scenario exists and has a reason; those of extensions are not run', async () => {
  const all = new Set((await Promise.all(REVISIONS.map(scenarios))).flat());
  expect(Object.keys(EXPECTED).filter((name) => !all.has(name))).toEqual([]);
  expect(Object.values(EXPECTED).filter((reason) => reason.length < 20)).toEqual([]);
  // Neither the extension for tasks nor the one for skills is offered.
  expect((await extensionScenarios()).filter((name) => !/^(?:tasks|sep-2640-skills)-/.test(name))).toEqual([]);
});

test.each(['2025-11-25', '2026-07-28'] as const)(
  'CVE-2025-66414: a server without the request guard fails the scenario on DNS rebinding of %s',
  async (revision) => {
    const unguarded = () => () => Promise.resolve({ refusal: null, principal: null });
    const open = await serveGuarded(unguarded, service(), serving());
    door.lead(open.url, token);
    const found = await verdicts(url(), revision, 'dns-rebinding-protection');
    expect(found.get('dns-rebinding-protection')).toEqual([expect.stringContaining('Expected HTTP 4xx')]);
    await open.close();
    door.lead(server.url, token);
  },
  MS_MAX,
);

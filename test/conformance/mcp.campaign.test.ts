// The official conformance suite against the MCP server, over HTTP and through the request guard. The tools that its
// scenarios call are behind the tool gateway.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawToken } from '../../src/adapters/keys/access-token.js';
import { MCP_PATH, serveGuarded, serveHttp, type McpHttpServer } from '../../src/service/mcp/serve-http.js';
import { Bench } from '../fixtures/bench.js';
import { serviceOn } from '../service/mcp/mcp-harness.js';
import { ROOT } from '../sources.js';
import { relay, scenarios, verdicts, type Relay, type Verdicts } from './conformance-suite.js';
import { CONFORMANCE_AGENT, scenarioEdit, SCENARIO_TOOLS } from './scenario-tools.js';

/** The scenarios that fail, each with the reason why that is intended. */
const EXPECTED = JSON.parse(readFileSync(join(ROOT, 'test/conformance/mcp-baseline.json'), 'utf8')) as Record<
  string,
  string
>;

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
  bench = await Bench.open({ edit: scenarioEdit, tools: SCENARIO_TOOLS });
  door = await relay();
  server = await serveHttp(service(), serving());
  door.lead(server.url, token);
});
afterAll(async () => {
  await door.close();
  await server.close();
  await bench.close();
});

describe('every server scenario', () => {
  let found: Verdicts;
  beforeAll(async () => {
    found = await verdicts(url());
  }, MS_MAX);

  test('was run', async () => {
    expect([...found.keys()].sort()).toEqual([...(await scenarios())].sort());
    expect(found.size).toBe(32);
  });

  test('passes, or is listed as failing with its reason', () => {
    const failing = [...found].filter(([, wrong]) => wrong.length > 0).map(([name]) => name);
    expect(failing.sort()).toEqual(Object.keys(EXPECTED).sort());
    expect(Object.values(EXPECTED).filter((reason) => reason.length < 20)).toEqual([]);
  });

  test.each([
    'server-initialize',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'server-sse-multiple-streams',
    'dns-rebinding-protection',
  ])('%s passes', (name) => {
    expect(found.get(name)).toEqual([]);
  });

  test('S4-19: every tool call went through the gateway, in a run of its own', async () => {
    const calls = (await bench.entries()).flatMap((entry) =>
      entry.type === 'run_created' && entry.body.run_kind === 'tool_gateway' ? [entry.body.request?.name] : [],
    );
    expect(calls.sort()).toEqual(SCENARIO_TOOLS.map(({ definition }) => definition.name).sort());
  });
});

test(
  'CVE-2025-66414: a server without the request guard fails the scenario on DNS rebinding',
  async () => {
    const open = await serveGuarded(() => () => ({ refusal: null, principal: null }), service(), serving());
    door.lead(open.url, token);
    const found = await verdicts(url(), 'dns-rebinding-protection');
    expect(found.get('dns-rebinding-protection')).toEqual([expect.stringContaining('Expected HTTP 4xx')]);
    await open.close();
    door.lead(server.url, token);
  },
  MS_MAX,
);

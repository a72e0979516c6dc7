// One trace for each run tree, as a collector on loopback sees it: through HTTP, MCP, a tool and an upstream server.
// V5 is an invariant of run-traces.ts.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { OtlpSettings } from '../../../src/features/telemetry/otel/otlp-settings.js';
import type { ServiceTelemetry } from '../../../src/engine/ports/telemetry.js';
import { sdkTelemetry } from '../../../src/features/telemetry/otel/sdk-telemetry.js';
import { spanIdOf, traceIdOf } from '../../../src/core/contract/trace-context.js';
import { createConnection, mcpService } from '../../../src/interfaces/mcp/mcp-service.js';
import { sdkServer } from '../../../src/interfaces/mcp/sdk-server.js';
import { Bench } from '../../fixtures/bench.js';
import { startHttpUpstream } from '../../fixtures/http-upstream.js';
import { settingsFor, startCollector, type Collector, type ReceivedSpan } from '../../fixtures/otlp-collector.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { UpstreamGround } from '../../fixtures/upstreams.js';
import { HttpBench, proposal } from '../../interfaces/http/http-harness.js';
import { silent } from '../../interfaces/mcp/mcp-harness.js';

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
const OTHER_SPAN = 'c'.repeat(16);
const carrier = (span = SPAN, trace = TRACE, flags = '01') => ({ traceparent: `00-${trace}-${span}-${flags}` });

let collector: Collector;
let telemetry: ServiceTelemetry;

const telemetryWith = (more: Partial<OtlpSettings> = {}): ServiceTelemetry =>
  sdkTelemetry({ version: '1', otlp: settingsFor(collector.url, more), log: winstonLog('silent') });

beforeEach(async () => {
  collector = await startCollector();
  telemetry = telemetryWith();
});
afterEach(async () => {
  await telemetry.close();
  await collector.close();
});

/** Everything that was sent. */
async function received(): Promise<readonly ReceivedSpan[]> {
  await telemetry.close();
  return collector.spans;
}

const named = (spans: readonly ReceivedSpan[], name: string): readonly ReceivedSpan[] =>
  spans.filter((span) => span.name === name);

function only(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const [span, ...more] = named(spans, name);
  if (span === undefined || more.length > 0) throw new Error(`${more.length + (span ? 1 : 0)} spans ${name}`);
  return span;
}

describe('a run tree that no caller traces', () => {
  test('has one trace whose id follows from the tree, with its run at the top', async () => {
    const bench = await Bench.open({ telemetry });
    const agent = await bench.turnpike.startAgent();
    bench.put('note.md', 'Hello.');
    await agent.submit(proposal('READ_FILE', { path: '/sandbox/note.md' }));
    await agent.end();
    await bench.close();
    const spans = await received();
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(agent.root_run_id)]));
    const run = only(spans, 'invoke_agent SANDBOX_AGENT');
    expect(run).toMatchObject({
      parentId: '',
      spanId: spanIdOf(agent.run_id),
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'SANDBOX_AGENT',
        'turnpike.run.id': agent.run_id,
        'turnpike.lane': 'SANDBOX_FILES',
        'turnpike.run.state': 'completed',
      },
    });
    const step = only(spans, 'turnpike.step');
    expect(step).toMatchObject({
      parentId: run.spanId,
      attributes: { 'turnpike.action': 'READ_FILE', 'turnpike.outcome': 'SUCCESS', 'turnpike.step.index': 1 },
    });
    const effect = only(spans, 'execute_tool READ_FILE');
    expect(effect).toMatchObject({
      parentId: step.spanId,
      attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'READ_FILE' },
    });
    expect(only(spans, 'turnpike.phases')).toMatchObject({
      parentId: step.spanId,
      attributes: { 'turnpike.phase.first': 'RECEIVE', 'turnpike.phase.last': 'RECORD' },
    });
    const commits = named(spans, 'turnpike.commit').filter(({ parentId }) => parentId === step.spanId);
    expect(commits).toHaveLength(1);
    for (const { startMs, endMs } of [effect, ...commits]) {
      expect(startMs).toBeGreaterThanOrEqual(step.startMs);
      expect(endMs).toBeLessThanOrEqual(step.endMs);
    }
  });

  test('continues the same trace in the next process, whose run ends the span that the first began', async () => {
    const first = await Bench.open({ telemetry });
    const { run_id } = await first.turnpike.remoteAgents.start({ case: 'case-local' });
    await first.turnpike.remoteAgents.submit(run_id, proposal('THINK'));
    await first.turnpike.close();
    await telemetry.close();
    telemetry = telemetryWith();
    const second = await Bench.reopen(first, { telemetry, clock: first.clock });
    await second.turnpike.remoteAgents.submit(run_id, proposal('THINK'));
    await second.turnpike.remoteAgents.end(run_id);
    await second.close();
    const spans = await received();
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    const run = only(spans, 'invoke_agent SANDBOX_AGENT');
    expect(run.attributes['turnpike.run.resumed']).toBe(true);
    expect(named(spans, 'turnpike.step').map(({ parentId }) => parentId)).toEqual([run.spanId, run.spanId]);
  });

  test('is not recorded outside of the share, and its tools still get its trace, as not recorded', async () => {
    await telemetry.close();
    telemetry = telemetryWith({ ratio: 0 });
    const made = service();
    const bench = await Bench.open({ ...made, edit: serviceEdit, telemetry });
    const agent = await bench.turnpike.startAgent(CASE_AGENT);
    await agent.submit(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 1 } }));
    await bench.close();
    expect(await received()).toEqual([]);
    expect(made.world.calls[0]?.trace?.traceparent).toBe(
      `00-${traceIdOf(agent.root_run_id)}-${spanIdOf(agent.root_run_id)}-00`,
    );
  });
});

describe('a run tree of a caller with a trace', () => {
  test('belongs to that trace over HTTP, from the request to the tool', async () => {
    const made = service();
    const served = await HttpBench.open({ ...made, edit: serviceEdit, telemetry });
    const token = served.token({ role: 'CASE_AGENT' });
    const started = await served.ask('/agents', token, { json: { lane: 'CASE_WORK' }, headers: carrier() });
    const { run_id } = (await started.json()) as { run_id: string };
    const body = proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 3 } });
    const sent = await served.ask(`/agents/${run_id}/steps`, token, { body, headers: carrier(OTHER_SPAN) });
    expect(await sent.json()).toMatchObject({ outcome: 'SUCCESS' });
    await served.close();
    const spans = await received();
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
    const step = only(spans, 'turnpike.step');
    expect(step.parentId).toBe(OTHER_SPAN);
    // SPAN_KIND_SERVER
    expect(step.kind).toBe(2);
    const effect = only(spans, 'execute_tool billing.charge');
    expect(effect.parentId).toBe(step.spanId);
    expect(made.world.calls[0]?.trace?.traceparent).toBe(`00-${TRACE}-${effect.spanId}-01`);
  });

  test('belongs to that trace over MCP, and the upstream server gets it', async () => {
    const ground = new UpstreamGround();
    const web = await startHttpUpstream();
    try {
      const server = { name: 'web', transport: 'http', url: web.url } as const;
      const upstreams = await ground.connect([server], await ground.pins(server));
      const bench = await ground.bench(upstreams, ['web.act'], { telemetry });
      const { turnpike } = bench;
      const mcp = mcpService({ turnpike, policy: () => turnpike.policy(), agent: CASE_AGENT, log: silent });
      const [here, there] = InMemoryTransport.createLinkedPair();
      await sdkServer(createConnection(mcp, 'one'), mcp, 'legacy').connect(there);
      const client = new Client({ name: 'test', version: '1' });
      await client.connect(here);
      const hostile = { ...carrier(), tracestate: 'v=secret-state', baggage: 'k=secret-baggage' };
      await client.callTool({ name: 'web.act', arguments: {}, _meta: hostile });
      await client.close();
      await ground.close();
      const spans = await received();
      expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
      const step = only(spans, 'turnpike.step');
      expect(step.parentId).toBe(SPAN);
      const effect = only(spans, 'execute_tool web.act');
      expect(effect.parentId).toBe(step.spanId);
      const [call] = web.calls as readonly { readonly _meta: Readonly<Record<string, unknown>> }[];
      expect(call?._meta).toEqual({
        traceparent: `00-${TRACE}-${effect.spanId}-01`,
        'turnpike/idempotency-key': expect.any(String),
      });
    } finally {
      await ground.close();
      await web.close();
    }
  });

  test('passes on the state and baggage of an embedding service', async () => {
    const made = service();
    const bench = await Bench.open({ ...made, edit: serviceEdit, telemetry });
    const trace = { ...carrier(), tracestate: 'v=1', baggage: 'tenant=7' };
    const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, trace });
    await agent.submit(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 3 } }), { trace });
    await bench.close();
    expect(made.world.calls[0]?.trace).toMatchObject({ tracestate: 'v=1', baggage: 'tenant=7' });
  });

  test('keeps its trace when a later request has another one, which the step links', async () => {
    const bench = await Bench.open({ telemetry });
    const agent = await bench.turnpike.startAgent({ trace: carrier() });
    const other = 'd'.repeat(32);
    await agent.submit(proposal('THINK'), { trace: carrier(OTHER_SPAN, other) });
    await agent.end();
    await bench.close();
    const spans = await received();
    const step = only(spans, 'turnpike.step');
    expect(step.traceId).toBe(TRACE);
    expect(step.parentId).toBe(spanIdOf(agent.run_id));
    expect(step.links).toEqual([{ traceId: other, spanId: OTHER_SPAN }]);
  });

  test('is recorded whatever the share if the caller records it, and cannot be hidden by a caller', async () => {
    await telemetry.close();
    telemetry = telemetryWith({ ratio: 0 });
    const bench = await Bench.open({ telemetry });
    await (await bench.turnpike.startAgent({ trace: carrier() })).end();
    expect((await collector.waitForSpans(1)).length).toBeGreaterThan(0);
    await bench.turnpike.close();
    await telemetry.close();
    telemetry = telemetryWith();
    const before = collector.spans.length;
    const again = await Bench.reopen(bench, { telemetry, clock: bench.clock });
    await (await again.turnpike.startAgent({ trace: carrier(SPAN, TRACE, '00') })).end();
    await again.close();
    expect((await received()).length).toBeGreaterThan(before);
  });
});

describe('what telemetry must not change', () => {
  test('V5: with a trace, without one and without telemetry, the ledger has the same bytes', async () => {
    const run = async (options: object, trace: object): Promise<string[]> => {
      const bench = await Bench.open({ ...service(), edit: serviceEdit, ...options });
      const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, ...trace });
      const raw = '{"schema_version":"1.0.0","id":"00000000-0000-4000-8000-000000000001","reasoning":"x",';
      await agent.submit(`${raw}"action":"CALL_TOOL","args":{"tool":"billing.charge","input":{"amount":3}}}`, trace);
      await agent.submit(`${raw}"action":"NO_SUCH_ACTION","args":{}}`, trace);
      await agent.end();
      const texts: string[] = [];
      for await (const { text } of bench.turnpike.ledger.log()) texts.push(text);
      await bench.close();
      return texts;
    };
    const plain = await run({}, {});
    expect(await run({ telemetry }, {})).toEqual(plain);
    expect(await run({ telemetry }, { trace: { ...carrier(), baggage: 'a=b' } })).toEqual(plain);
  });

  test('an invalid context is ignored', async () => {
    const bench = await Bench.open({ telemetry });
    const roots: string[] = [];
    for (const traceparent of [
      '',
      '00-xyz',
      `00-${'0'.repeat(32)}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}-01-extra`,
      `ff-${TRACE}-${SPAN}-01`,
    ]) {
      const agent = await bench.turnpike.startAgent({ trace: { traceparent } });
      roots.push(agent.root_run_id);
      await agent.end();
    }
    await bench.close();
    const runs = named(await received(), 'invoke_agent SANDBOX_AGENT');
    expect(runs.map(({ traceId }) => traceId)).toEqual(roots.map(traceIdOf));
  });
});

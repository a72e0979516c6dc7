// What telemetry shows of a run: metrics with bounded labels, lines of the log, and never content.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { ServiceTelemetry } from '../../../src/engine/ports/telemetry.js';
import { sdkTelemetry } from '../../../src/features/telemetry/otel/sdk-telemetry.js';
import { traceIdOf } from '../../../src/core/contract/trace-context.js';
import type { Log } from '../../../src/engine/ports/log.js';
import { ruleLabel } from '../../../src/features/telemetry/engine-metrics.js';
import { Bench } from '../../fixtures/bench.js';
import { settingsFor, startCollector, type Collector } from '../../fixtures/otlp-collector.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { ROOT } from '../../root.js';
import { proposal } from '../../interfaces/http/http-harness.js';

let collector: Collector;
let telemetry: ServiceTelemetry;
let lines: string;
let log: Log;

beforeEach(async () => {
  collector = await startCollector();
  const stream = new PassThrough();
  lines = '';
  stream.on('data', (text: Buffer) => (lines += text.toString('utf8')));
  log = winstonLog('info', stream);
  telemetry = sdkTelemetry({
    version: '1',
    otlp: settingsFor(collector.url, { metrics: `${collector.url}/v1/metrics` }),
    log,
  });
});
afterEach(async () => {
  await telemetry.close();
  await collector.close();
});

async function series(): Promise<ReadonlyMap<string, number>> {
  const { text } = await telemetry.collect();
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

const logged = (): readonly Readonly<Record<string, unknown>>[] =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('metrics', () => {
  test('measure steps, effects, commits, waiting, folding and denials', async () => {
    const bench = await Bench.open({ telemetry, log });
    bench.put('note.md', 'Hello.');
    const agent = await bench.turnpike.startAgent();
    await agent.submit(proposal('READ_FILE', { path: '/sandbox/note.md' }));
    await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/run.sh', content: 'x' }));
    await agent.submit(proposal('INVENTED_BY_AN_AGENT'));
    await agent.end();
    const size = await bench.turnpike.ledger.size();
    const found = await series();
    expect(found.get('turnpike_step_duration_seconds_count{action="READ_FILE",outcome="SUCCESS"}')).toBe(1);
    expect(found.get('turnpike_step_duration_seconds_count{action="WRITE_FILE",outcome="DENIED"}')).toBe(1);
    expect(found.get('turnpike_step_duration_seconds_count{action="_OTHER",outcome="DENIED"}')).toBe(1);
    expect(found.get('turnpike_effect_duration_seconds_count{action="READ_FILE",status="done"}')).toBe(1);
    expect(found.get('turnpike_denials_total{rule="extension.not_allowed"}')).toBe(1);
    expect(found.get('turnpike_runs_ended_total{kind="agent",state="completed"}')).toBe(1);
    expect(found.get('turnpike_log_entries_total')).toBe(size);
    expect(found.get('turnpike_log_bytes_total')).toBeGreaterThan(size * 100);
    expect(found.get('turnpike_commit_duration_seconds_count')).toBeGreaterThan(0);
    expect(found.get('turnpike_queue_wait_duration_seconds_count')).toBeGreaterThan(0);
    expect(found.get('turnpike_approvals_waiting')).toBe(0);
    expect([...found.keys()].join('\n')).not.toContain('INVENTED');
    await bench.turnpike.close();
    const again = await Bench.reopen(bench, { telemetry, log, clock: bench.clock });
    await again.turnpike.remoteAgents.find(agent.run_id);
    expect((await series()).get('turnpike_fold_duration_seconds_count')).toBeGreaterThan(0);
    await again.close();
  });

  test('count an approval that waits', async () => {
    const bench = await Bench.open({ telemetry, log, approvals: true });
    await bench.turnpike.export({
      actor: 'anna',
      role: 'ATTORNEY_ADMIN',
      case: 'case-local',
      reason: 'A test.',
      destination: 'bag',
    });
    expect((await series()).get('turnpike_approvals_waiting')).toBe(1);
    await bench.close();
  });

  test.each([
    ['lane.unknown', 'lane.unknown'],
    ['scope.missing.any_field_at_all', 'scope.missing'],
    ['scope.mismatch.case_id', 'scope.mismatch'],
    ['Text of another person', 'other'],
    [`lane.${'x'.repeat(100)}`, 'other'],
  ])('the rule %j has the label %j', (rule_id, label) => {
    expect(ruleLabel(rule_id)).toBe(label);
  });
});

describe('the service log', () => {
  test('has one line for each denied step and each end of a run, with run, rule, actor and trace', async () => {
    const bench = await Bench.open({ telemetry, log });
    const agent = await bench.turnpike.startAgent({ actor: 'agent-one' });
    await agent.submit(proposal('WRITE_FILE', { path: '/sandbox/run.sh', content: 'x' }));
    await agent.end();
    await bench.close();
    const trace_id = traceIdOf(agent.root_run_id);
    const common = { level: 'info', trace_id };
    expect(logged().map(({ timestamp, ...line }) => ({ ...line, at: typeof timestamp }))).toEqual([
      expect.objectContaining({
        ...common,
        message: 'a step was denied',
        run_id: agent.run_id,
        rule: 'extension.not_allowed',
        code: 'POLICY_VIOLATION',
        action: 'WRITE_FILE',
        actor: 'agent-one',
      }),
      expect.objectContaining({
        ...common,
        message: 'a run has ended',
        run_id: agent.run_id,
        kind: 'agent',
        state: 'completed',
        rule: 'end_of_input',
        actor: 'agent-one',
      }),
      expect.objectContaining({ ...common, message: 'a run has ended', run_id: agent.root_run_id }),
    ]);
  });
});

/** A word in every text that an agent or its caller can choose. */
const CANARY = 'Qvillfeder';

/** Every string of a payload, with the canary. */
const marked = (value: unknown): unknown => {
  if (typeof value === 'string') return `${value} ${CANARY}`;
  if (Array.isArray(value)) return value.map(marked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [`${name}${CANARY}`, marked(member)]));
};

/** Some payloads of the suite are no JSON. */
function parsed(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return { action: line };
  }
}

const HOSTILE = readFileSync(join(ROOT, 'docs/examples/material/hostile.jsonl'), 'utf8').trim().split('\n');

test('no content reaches a span, a metric or a log line: of hostile payloads, arguments, results and names', async () => {
  const made = service();
  const bench = await Bench.open({ ...made, edit: serviceEdit, telemetry, log });
  bench.put(`${CANARY}.md`, `${CANARY} is the content.`);
  const trace = {
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    tracestate: `k=${CANARY}`,
    baggage: CANARY,
  };
  for (const line of HOSTILE) {
    const { id, action, args, ...rest } = parsed(line);
    const agent = await bench.turnpike.startAgent({ ...CASE_AGENT, actor: `An agent ${CANARY}`, trace });
    const payloads = [
      line.replace(/"reasoning":"/, `"reasoning":"${CANARY} `),
      JSON.stringify({ ...rest, id, action, args: marked(args) }),
      JSON.stringify({ ...rest, id, action: `${String(action)}_${CANARY}`, args }),
      `${CANARY} is no JSON`,
    ];
    for (const raw of payloads) await agent.submit(raw, { trace }).catch(() => undefined);
    await agent.cancel(`because ${CANARY}`).catch(() => undefined);
  }
  const files = await bench.turnpike.startAgent({ lane: CANARY }).catch(() => null);
  await files?.cancel(CANARY).catch(() => undefined);
  const reader = await bench.turnpike.startAgent();
  const read = await reader.submit(proposal('READ_FILE', { path: `/sandbox/${CANARY}.md` }));
  // The canary does reach the agent: the search below would find it.
  expect(JSON.stringify(read)).toContain(CANARY);
  await reader.submit(proposal('WRITE_FILE', { path: `/sandbox/${CANARY}.sh`, content: CANARY }));
  const tools = await bench.turnpike.startAgent(CASE_AGENT);
  await tools.submit(proposal('CALL_TOOL', { tool: `tool.${CANARY}`, input: { amount: 1 } }));
  await tools.submit(
    proposal('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: CANARY, text: CANARY } }),
  );
  const { text } = await telemetry.collect();
  await bench.close();
  await telemetry.close();
  expect(collector.spans.length).toBeGreaterThan(100);
  const seen = [text, lines, ...collector.bodies.map((body) => body.toString('latin1'))];
  expect(collector.paths).toContain('/v1/metrics');
  for (const output of seen) expect(output).not.toContain(CANARY);
}, 60_000);

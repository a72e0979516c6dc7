// Telemetry never delays or fails a step: with a collector that hangs, refuses or is not there, steps go on, spans are
// dropped, and a metric counts them.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { winstonLog } from '../../../../src/system/winston-log.js';
import type { ServiceTelemetry } from '../../../../src/engine/ports/telemetry.js';
import { sdkTelemetry } from '../../../../src/features/telemetry/otel/sdk-telemetry.js';
import { Bench } from '../../../fixtures/bench.js';
import { settingsFor, startCollector, type Collector } from '../../../fixtures/otlp-collector.js';
import { proposal } from '../../../interfaces/http/http-harness.js';

let collector: Collector;

beforeEach(async () => {
  collector = await startCollector();
});
afterEach(() => collector.close());

const open = (url: string): ServiceTelemetry =>
  sdkTelemetry({
    version: '1',
    otlp: settingsFor(url, { queue: { spansMax: 8, batchMax: 4, intervalMs: 1 }, timeoutMs: 300 }),
    log: winstonLog('silent'),
  });

async function valueOf(telemetry: ServiceTelemetry, series: string): Promise<number> {
  const { text } = await telemetry.collect();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(series))
      ?.split(' ')[1],
  );
}

const DROPPED = 'turnpike_telemetry_spans_dropped_total';

/** Ten steps, whose ledger is verified and replayed. */
async function tenSteps(telemetry: ServiceTelemetry): Promise<void> {
  const bench = await Bench.open({ telemetry });
  const agent = await bench.turnpike.startAgent();
  for (let step = 0; step < 10; step += 1) {
    expect(await agent.submit(proposal('THINK'))).toMatchObject({ outcome: 'SUCCESS' });
  }
  await agent.end();
  await bench.close();
}

test('a collector that hangs: steps succeed, the queue stays bounded, and what it cannot hold is counted', async () => {
  collector.mode = 'hang';
  const telemetry = open(collector.url);
  await tenSteps(telemetry);
  // There are more than forty spans; the queue and the batch that hangs hold twelve.
  expect(await valueOf(telemetry, `${DROPPED}{reason="queue_full"}`)).toBeGreaterThan(10);
  expect(await valueOf(telemetry, 'turnpike_telemetry_spans_exported_total')).toBe(0);
  // A close that waited for the collector would never end.
  await telemetry.close();
});

test('a collector that refuses: steps succeed, and every batch is counted', async () => {
  collector.mode = 'refuse';
  const telemetry = open(collector.url);
  await tenSteps(telemetry);
  const failed = (): Promise<number> => valueOf(telemetry, `${DROPPED}{reason="export_failed"}`);
  while ((await failed()) === 0) await new Promise((later) => setTimeout(later, 5));
  await telemetry.close();
  expect(collector.spans).toEqual([]);
});

test('no collector at all: steps succeed', async () => {
  const url = collector.url;
  await collector.close();
  const telemetry = open(url);
  await tenSteps(telemetry);
  await telemetry.close();
  collector = await startCollector();
}, 60_000);

test('a collector that accepts again gets the spans from then on', async () => {
  collector.mode = 'refuse';
  const telemetry = open(collector.url);
  await tenSteps(telemetry);
  collector.mode = 'accept';
  await tenSteps(telemetry);
  await collector.waitForSpans(1);
  await telemetry.close();
  expect(collector.spans.length).toBeGreaterThan(0);
});

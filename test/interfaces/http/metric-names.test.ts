// The metrics that monitoring of operators relies on: what the service reported with `prom-client`, and what it
// reports now (decision 0049). The file of the earlier report was made by the earlier code.

import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sdkTelemetry } from '../../../src/features/telemetry/otel/sdk-telemetry.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { Metrics } from '../../../src/interfaces/http/metrics.js';
import { ROOT } from '../../root.js';

const STATUS = {
  format: 2,
  entries: 5,
  workers: [],
  pending: { commits: 3, oldest_ms: 250 },
  timers: { due: 1, oldest_ms: 1_500 },
  standby_lag_ms: null,
};
const COUNTS = { running: 0, waiting: 0, admitted: { step: 1 }, queued: { step: 1 }, refused: { load: 1 } };

/** Types and samples, without the texts of descriptions. */
const linesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line !== '' && !/^# (?:HELP|UNIT) /.test(line))
    .sort();

test('every earlier metric has its name, type, labels and value', async () => {
  const registry = sdkTelemetry({ version: '1', otlp: null, log: winstonLog('silent') });
  const metrics = new Metrics(
    {
      size: () => Promise.resolve(5),
      streams: () => 0,
      admission: () => COUNTS as never,
      cluster: { status: () => Promise.resolve(STATUS as never) },
    },
    registry,
  );
  metrics.request('/x', 'GET', 200);
  metrics.step('{"outcome":"SUCCESS"}');
  const before = readFileSync(join(ROOT, 'test/fixtures/metrics/before-0052.prom'), 'utf8');
  expect(linesOf(await metrics.text())).toEqual(linesOf(before));
  expect(metrics.type).toBe('text/plain; version=0.0.4; charset=utf-8');
});

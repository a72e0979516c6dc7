import { expect, test } from '@jest/globals';
import type { OverlayFact } from '../../../src/core/contract/policy/overlay.js';
import type { WorkerReport } from '../../../src/engine/ports/ledger/cluster.js';
import { REPORT_MS, WorkerReporter } from '../../../src/features/cluster/worker-reporter.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

test('reports at the start and every second, with the overlay of that time, and logs an outage once', async () => {
  const clock = new ManualClock();
  const reports: WorkerReport[] = [];
  const warnings: string[] = [];
  let fact: OverlayFact | null = null;
  let code: string | null = null;
  let isDown = false;
  let isClosed = false;
  const log = { info: () => undefined, warn: (text: string) => void warnings.push(text), error: () => undefined };
  const report = (worker: WorkerReport): Promise<void> => {
    if (isDown) return Promise.reject(new Error('down'));
    reports.push(worker);
    return Promise.resolve();
  };
  const close = (): Promise<void> => {
    isClosed = true;
    return Promise.resolve();
  };
  const reporter = new WorkerReporter({
    directory: { report, close },
    overlay: { current: () => fact },
    worker: { version: '1.2.3', volume_id: 'vol_1' },
    refuses: () => code,
    laterTrees: () => 0,
    clock,
    log,
  });
  const nextReport = async (): Promise<void> => {
    clock.advance(REPORT_MS);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await reporter.start();
  reporter.serveAt('http://a');
  fact = { epoch: 3, rules: [] };
  await nextReport();
  fact = { epoch: null, problem: 'missing' };
  await nextReport();
  isDown = true;
  await nextReport();
  await nextReport();
  isDown = false;
  code = 'LEDGER_BELOW_HEAD';
  await nextReport();
  isDown = true;
  await nextReport();
  const worker = { version: '1.2.3', volume_id: 'vol_1' };
  expect(reports).toEqual([
    { ...worker, address: null, overlay_epoch: 0, refuses: null, later_trees: 0 },
    { ...worker, address: 'http://a', overlay_epoch: 3, refuses: null, later_trees: 0 },
    { ...worker, address: 'http://a', overlay_epoch: null, refuses: null, later_trees: 0 },
    { ...worker, address: 'http://a', overlay_epoch: null, refuses: 'LEDGER_BELOW_HEAD', later_trees: 0 },
  ]);
  expect(warnings).toHaveLength(2);
  await reporter.close();
  isDown = false;
  await nextReport();
  expect({ reports: reports.length, isClosed }).toEqual({ reports: 4, isClosed: true });
});

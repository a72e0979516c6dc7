import { expect, test } from '@jest/globals';
import { sdkTelemetry } from '../../../src/features/telemetry/otel/sdk-telemetry.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { ClusterStatus } from '../../../src/engine/ports/ledger/cluster.js';
import { Metrics, type MetricSources } from '../../../src/interfaces/http/metrics.js';

const WORKER = {
  host: 'h',
  pid: 1,
  joined_at: '',
  version: null,
  address: null,
  volume_id: null,
  overlay_epoch: 0,
  refuses: null,
  later_trees: 0,
};
const STATUS: ClusterStatus = {
  format: 2,
  entries: 5,
  workers: [
    { ...WORKER, worker_id: 1, over_at: null, connected: true, effects: 2, callers: 0 },
    { ...WORKER, worker_id: 2, over_at: null, connected: false, effects: 0, callers: 0 },
    { ...WORKER, worker_id: 3, over_at: '2026-01-01T00:00:00.000Z', connected: false, effects: 4, callers: 1 },
  ],
  pending: { commits: 3, oldest_ms: 250 },
  timers: { due: 1, oldest_ms: 1_500 },
  standby_lag_ms: null,
};

const own = {
  size: () => Promise.resolve(5),
  streams: () => 0,
  admission: () => ({ running: 0, waiting: 0, admitted: {}, queued: {}, refused: {} }) as never,
};

const metricsOf = (sources: MetricSources): Metrics =>
  new Metrics(sources, sdkTelemetry({ version: '1', otlp: null, log: winstonLog('error') }));

const valuesOf = (text: string): readonly string[] =>
  text.split('\n').filter((line) => /^turnpike_(?:cluster|ledger)_/.test(line));

test('a worker reports the state of its cluster, with one query for a scrape', async () => {
  let queries = 0;
  const status = (): Promise<ClusterStatus> => {
    queries += 1;
    return Promise.resolve(STATUS);
  };
  expect(valuesOf(await metricsOf({ ...own, cluster: { status } }).text())).toEqual([
    'turnpike_ledger_entries 5',
    'turnpike_cluster_performers 1',
    'turnpike_cluster_unfinished_effects 6',
    'turnpike_cluster_lost_effects 4',
    'turnpike_cluster_pending_commits 3',
    'turnpike_cluster_merge_delay_seconds 0.25',
    'turnpike_cluster_timers_due 1',
    'turnpike_cluster_timer_delay_seconds 1.5',
  ]);
  expect(queries).toBe(1);
});

test('without its database, a worker reports NaN for what it cannot read', async () => {
  const down = (): Promise<never> => Promise.reject(new Error('down'));
  const values = valuesOf(await metricsOf({ ...own, size: down, cluster: { status: down } }).text());
  expect(values).toHaveLength(8);
  for (const value of values) expect(value).toMatch(/ nan$/i);
});

test('a ledger with one writer has no metrics of a cluster', async () => {
  expect(valuesOf(await metricsOf(own).text())).toEqual(['turnpike_ledger_entries 5']);
});

import { expect, test } from '@jest/globals';
import { awaitOverlay, withoutEpoch } from '../../../../src/interfaces/cli/commands/policy/policy-deny-command.js';
import type { ClusterStatus, ClusterWorker } from '../../../../src/engine/ports/ledger/cluster.js';

const worker = (over: Partial<ClusterWorker>): ClusterWorker => ({
  worker_id: 1,
  host: 'h',
  pid: 1,
  joined_at: '2026-01-01T00:00:00.000Z',
  over_at: null,
  connected: true,
  version: null,
  address: null,
  volume_id: null,
  overlay_epoch: null,
  refuses: null,
  later_trees: 0,
  effects: 0,
  callers: 0,
  ...over,
});

const status = (workers: readonly ClusterWorker[]): ClusterStatus => ({
  format: 2,
  entries: 0,
  workers,
  pending: { commits: 0, oldest_ms: 0 },
  timers: { due: 0, oldest_ms: 0 },
  standby_lag_ms: null,
});

test('a worker applies an epoch when it has reported it or a later one, or is over', () => {
  const over = worker({ worker_id: 4, over_at: '2026-01-01T00:00:00.000Z' });
  const workers = [0, 1, 2].map((overlay_epoch) => worker({ worker_id: overlay_epoch, overlay_epoch }));
  const silent = worker({ worker_id: 9 });
  expect(withoutEpoch([...workers, over, silent], 1).map(({ worker_id }) => worker_id)).toEqual([0, 9]);
});

test('D1 waits for every worker, declares lost ones over, and returns those that are missing at the limit', async () => {
  let ended = 0;
  let epoch = 0;
  const cluster = {
    endLost: () => {
      ended += 1;
      return Promise.resolve();
    },
    status: () => Promise.resolve(status([worker({ overlay_epoch: epoch++ })])),
  };
  expect(await awaitOverlay(cluster, 2)).toEqual([]);
  expect(ended).toBe(3);
  expect(await awaitOverlay(cluster, 99, 0)).toMatchObject([{ worker_id: 1 }]);
});

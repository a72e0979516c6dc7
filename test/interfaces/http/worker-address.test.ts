// The worker that a client is sent to if this process has no sandbox volume.

import { expect, test } from '@jest/globals';
import { createRefusal } from '../../../src/interfaces/service/problems.js';
import { WorkerAddresses, withWorkerAddress } from '../../../src/interfaces/http/worker-address.js';
import type { ClusterStatus, ClusterWorker } from '../../../src/engine/ports/ledger/cluster.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

const WORKER: ClusterWorker = {
  worker_id: 1,
  host: 'h',
  pid: 1,
  joined_at: '',
  over_at: null,
  connected: true,
  version: null,
  address: null,
  volume_id: 'vol_1',
  overlay_epoch: 0,
  refuses: null,
  later_trees: 0,
  effects: 0,
  callers: 0,
};
const STATUS = {
  format: 2,
  entries: 0,
  pending: { commits: 0, oldest_ms: 0 },
  timers: { due: 0, oldest_ms: 0 },
  standby_lag_ms: null,
};
const REFUSAL = createRefusal('VOLUME_ELSEWHERE');

function bench(workers: readonly Partial<ClusterWorker>[]) {
  const state = { reads: 0, isAway: false, workers };
  const status = (): Promise<ClusterStatus> => {
    state.reads += 1;
    if (state.isAway) return Promise.reject(new Error('the database is away'));
    return Promise.resolve({ ...STATUS, workers: state.workers.map((some) => ({ ...WORKER, ...some })) });
  };
  const clock = new ManualClock();
  const addresses = new WorkerAddresses({ status }, clock, '0.1.0');
  return { state, clock, find: (run_id: string, isOfLater?: boolean) => addresses.find(run_id, isOfLater) };
}

test('names only connected workers with the volume and a web address', async () => {
  const { find } = bench([
    { address: 'http://over', over_at: '2026-01-01T00:00:00.000Z' },
    { address: 'http://lost', connected: false },
    { address: 'http://front', volume_id: null },
    { address: 'javascript:x' },
    { address: 'http://a\r\nSet-Cookie: x' },
    { address: null },
    { address: 'https://one:7391' },
  ]);
  for (const run_id of ['run_a.1', 'run_b.1', '']) expect(await find(run_id)).toBe('https://one:7391');
});

test('names the same worker for all runs of a tree, and all workers for many trees, with one query a second', async () => {
  const { find, state, clock } = bench([{ address: 'http://one' }, { address: 'http://two' }]);
  expect(await find('run_a.1.2')).toBe(await find('run_a'));
  const found = await Promise.all(Array.from({ length: 64 }, (_, at) => find(`run_${at}`)));
  expect(new Set(found)).toEqual(new Set(['http://one', 'http://two']));
  expect(state.reads).toBe(1);
  clock.advance(1_000);
  await find('run_a');
  expect(state.reads).toBe(2);
});

test('a refusal has the address in a header, or none if no worker is known', async () => {
  const { find, state, clock } = bench([{ address: 'http://one' }]);
  const service = { findWorker: find };
  expect(await withWorkerAddress(REFUSAL, service, 'run_a')).toMatchObject({
    status: 421,
    headers: { 'Turnpike-Worker': 'http://one' },
  });
  expect(await withWorkerAddress(REFUSAL, {}, 'run_a')).toEqual(REFUSAL);
  const other = createRefusal('RUN_ENDED');
  expect(await withWorkerAddress(other, service, 'run_a')).toBe(other);
  state.isAway = true;
  clock.advance(1_000);
  expect(await withWorkerAddress(REFUSAL, service, 'run_a')).toEqual(REFUSAL);
});

test('for a run of a later version, names only workers of another version that can serve it', async () => {
  const { find } = bench([
    { address: 'http://same', version: '0.1.0' },
    { address: 'http://unknown', version: null },
    { address: 'http://earlier', version: '0.0.9', later_trees: 1 },
    { address: 'http://refusing', version: '0.2.0', refuses: 'LEDGER_BELOW_HEAD' },
    { address: 'http://later', version: '0.2.0' },
  ]);
  for (const run_id of ['run_a.1', 'run_b.1', '']) expect(await find(run_id, true)).toBe('http://later');
  const findWorker = find;
  for (const code of ['LEDGER_OF_LATER_VERSION', 'LEDGER_UNSUPPORTED'] as const)
    expect((await withWorkerAddress(createRefusal(code), { findWorker }, 'run_a')).headers).toEqual({
      'Turnpike-Worker': 'http://later',
    });
});

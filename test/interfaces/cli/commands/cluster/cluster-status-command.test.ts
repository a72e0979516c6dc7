import { expect, test } from '@jest/globals';
import type { ClusterStatus, ClusterWorker } from '../../../../../src/engine/ports/ledger/cluster.js';
import { statusJson, statusText } from '../../../../../src/features/cluster/commands/cluster-commands.js';
import { createPainter } from '../../../../../src/interfaces/cli/text/terminal.js';
import { initialised, turnpike } from '../../fake-io.js';

const worker = (worker_id: number, over: Partial<ClusterWorker> = {}): ClusterWorker => ({
  worker_id,
  host: 'h',
  pid: 10 * worker_id,
  joined_at: '2026-01-01T00:00:00.000Z',
  over_at: null,
  connected: true,
  version: '1.0.0',
  address: null,
  volume_id: null,
  overlay_epoch: 0,
  refuses: null,
  later_trees: 0,
  effects: 0,
  callers: 0,
  ...over,
});

const status = (workers: readonly ClusterWorker[], over: Partial<ClusterStatus> = {}): ClusterStatus => ({
  format: 2,
  entries: 1,
  workers,
  pending: { commits: 0, oldest_ms: 0 },
  timers: { due: 0, oldest_ms: 0 },
  standby_lag_ms: null,
  ...over,
});
const textOf = (...given: Parameters<typeof status>): string => statusText(status(...given), createPainter(false));

test('prints a line for each worker, with what waits', () => {
  const workers = [
    worker(1, { volume_id: 'vol_1', address: 'http://a', effects: 1 }),
    worker(2, { connected: false, version: null, overlay_epoch: null, callers: 2 }),
    worker(3, { over_at: '2026-01-01T00:00:01.000Z', version: 'a\u001bb', overlay_epoch: 1 }),
  ];
  const waiting = { pending: { commits: 2, oldest_ms: 30 }, timers: { due: 1, oldest_ms: 5 }, standby_lag_ms: 7 };
  expect(textOf(workers, waiting).split('\n')).toEqual([
    'ledger of format 2: 1 entry',
    'commits not in the log yet: 2, merge delay 30 ms',
    'timers overdue: 1, by up to 5 ms',
    'slowest standby: 7 ms behind',
    'workers: 1 working',
    '1  working  pid 10  version 1.0.0     since 2026-01-01T00:00:00.000Z                                 1 effect, 0 callers   vol_1      http://a',
    '2  lost     pid 20  version unknown   since 2026-01-01T00:00:00.000Z                                 0 effects, 2 callers  -          -',
    '3  over     pid 30  version a\\u001bb  since 2026-01-01T00:00:00.000Z, over 2026-01-01T00:00:01.000Z  0 effects, 0 callers  no volume  -',
    '',
  ]);
});

test.each(['cluster status', 'worker', 'serve --store postgres://db/ledger'])(
  '%s refuses a home with a ledger of its own',
  async (words) => {
    const refused = await turnpike(await initialised(), words.split(' '));
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('does not name a database') });
  },
);

test('a worker that refuses every request is not working, and says why', () => {
  expect(textOf([worker(1, { refuses: 'LEDGER_BELOW_HEAD' }), worker(2)])).toContain(
    'workers: 1 working, 1 refusing everything\n1  refusing (LEDGER_BELOW_HEAD)  pid 10',
  );
});

test('a worker of an earlier version says how many run trees it cannot serve', () => {
  expect(textOf([worker(1, { later_trees: 2 })])).toContain(
    'version 1.0.0, cannot serve 2 run trees of a later version  since',
  );
});

test('--json names the workers `performers`, with their numbers', () => {
  const json = statusJson(status([worker(7)], { entries: 2 }));
  expect(json).toMatchObject({ entries: 2, performers: [{ performer: 7, pid: 70 }] });
  expect(json).not.toHaveProperty('workers');
});

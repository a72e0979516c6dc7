import { expect, test } from '@jest/globals';
import { statusJson, statusText } from '../../../../../src/features/cluster/commands/cluster-commands.js';
import { createPainter } from '../../../../../src/interfaces/cli/text/terminal.js';
import { initialised, turnpike } from '../../fake-io.js';

const WORKER = {
  host: 'h',
  joined_at: '2026-01-01T00:00:00.000Z',
  over_at: null,
  connected: true,
  volume_id: null,
  refuses: null,
  later_trees: 0,
};

test('prints a line for each worker, with what waits', () => {
  const text = statusText(
    {
      format: 2,
      entries: 1,
      workers: [
        {
          ...WORKER,
          worker_id: 1,
          volume_id: 'vol_1',
          pid: 10,
          version: '1.0.0',
          address: 'http://a',
          overlay_epoch: 0,
          effects: 1,
          callers: 0,
        },
        {
          ...WORKER,
          worker_id: 2,
          pid: 20,
          connected: false,
          version: null,
          address: null,
          overlay_epoch: null,
          effects: 0,
          callers: 2,
        },
        {
          ...WORKER,
          worker_id: 3,
          pid: 30,
          over_at: '2026-01-01T00:00:01.000Z',
          version: 'a\u001bb',
          address: null,
          overlay_epoch: 1,
          effects: 0,
          callers: 0,
        },
      ],
      pending: { commits: 2, oldest_ms: 30 },
      timers: { due: 1, oldest_ms: 5 },
      standby_lag_ms: 7,
    },
    createPainter(false),
  );
  expect(text.split('\n')).toEqual([
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
  const worker = { ...WORKER, worker_id: 1, pid: 10, version: '1.0.0', address: null, overlay_epoch: 0, effects: 0 };
  const text = statusText(
    {
      format: 2,
      entries: 1,
      workers: [
        { ...worker, callers: 0, refuses: 'LEDGER_BELOW_HEAD', later_trees: 0 },
        { ...worker, callers: 0, worker_id: 2 },
      ],
      pending: { commits: 0, oldest_ms: 0 },
      timers: { due: 0, oldest_ms: 0 },
      standby_lag_ms: null,
    },
    createPainter(false),
  );
  expect(text).toContain('workers: 1 working, 1 refusing everything\n1  refusing (LEDGER_BELOW_HEAD)  pid 10');
});

test('a worker of an earlier version says how many run trees it cannot serve', () => {
  const worker = { ...WORKER, worker_id: 1, pid: 10, version: '1.0.0', address: null, overlay_epoch: 0, effects: 0 };
  const text = statusText(
    {
      format: 2,
      entries: 1,
      workers: [{ ...worker, callers: 0, later_trees: 2 }],
      pending: { commits: 0, oldest_ms: 0 },
      timers: { due: 0, oldest_ms: 0 },
      standby_lag_ms: null,
    },
    createPainter(false),
  );
  expect(text).toContain('version 1.0.0, cannot serve 2 run trees of a later version  since');
});

test('--json names the workers `performers`, with their numbers', () => {
  const worker = { ...WORKER, worker_id: 7, pid: 10, version: null, address: null, overlay_epoch: 0, effects: 0 };
  const members = { format: 1, entries: 2, pending: { commits: 0, oldest_ms: 0 }, standby_lag_ms: null };
  const timers = { due: 0, oldest_ms: 0 };
  const json = statusJson({ ...members, timers, workers: [{ ...worker, callers: 0, later_trees: 0 }] });
  expect(json).toMatchObject({ ...members, performers: [{ performer: 7, pid: 10 }] });
  expect(json).not.toHaveProperty('workers');
});

import { expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ReadinessReporter } from '../../../src/host/readiness/readiness-reporter.js';
import { Readiness } from '../../../src/host/readiness/readiness.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: unknown;
}

/** @param failures how many times the reporter cannot be loaded */
function open({ failures = 0, standardNames = [] as readonly string[] } = {}) {
  const lines: Line[] = [];
  const clock = new ManualClock();
  const at = (level: string) => (message: string, fields?: unknown) => void lines.push({ level, message, fields });
  const log = { info: at('info'), warn: at('warn'), error: at('error') };
  const opened = { times: 0 };
  const readiness = new Readiness({
    standardNames,
    openReporter: (added) => {
      opened.times += 1;
      if (opened.times <= failures) return Promise.reject(new Error('the module is missing'));
      return Promise.resolve(new ReadinessReporter({ standard: [], added, clock, log }));
    },
    clock,
    log,
  });
  return { readiness, clock, lines, opened };
}

test('the first report loads what runs the checks, and concurrent callers share one report', async () => {
  const { readiness, opened } = open();
  let runs = 0;
  readiness.add({ name: 'one', run: () => ((runs += 1), null) });
  expect([readiness.has('one'), opened.times]).toEqual([true, 0]);
  const report = readiness.report();
  expect(readiness.report()).toBe(report);
  expect(await report).toEqual({ isReady: true, checks: [{ name: 'one', reason: null }] });
  await readiness.report();
  expect([runs, opened.times]).toEqual([2, 1]);
});

test('a report rejects if the checks cannot be loaded, and the next one loads them', async () => {
  const { readiness } = open({ failures: 1 });
  await expect(readiness.report()).rejects.toThrow('the module is missing');
  expect(await readiness.report()).toEqual({ isReady: true, checks: [] });
});

test('a watch logs each change without a request for a report, until it ends', async () => {
  const { readiness, clock, lines } = open();
  let reason: string | null = null;
  let runs = 0;
  readiness.add({
    name: 'disk',
    run: () => {
      runs += 1;
      return reason;
    },
  });
  const round = async (): Promise<void> => {
    const before = runs;
    clock.advance(5_000);
    while (runs === before) await nextTurn();
    await readiness.report();
  };
  const end = readiness.watch();
  await round();
  reason = 'full';
  await round();
  await round();
  reason = null;
  await round();
  end();
  expect(lines).toEqual([
    { level: 'error', message: 'this process is not ready', fields: { check: 'disk', reason: 'full' } },
    { level: 'info', message: 'a readiness check holds again', fields: { check: 'disk' } },
  ]);
  expect(clock.timers).toBe(0);
});

test('a watch logs that the checks cannot be loaded, and goes on', async () => {
  const { readiness, clock, lines } = open({ failures: 1 });
  const end = readiness.watch();
  clock.advance(5_000);
  while (clock.timers === 0) await nextTurn();
  expect(lines).toMatchObject([{ level: 'error', message: 'the readiness checks cannot be loaded' }]);
  let runs = 0;
  readiness.add({ name: 'own', run: () => ((runs += 1), null) });
  clock.advance(5_000);
  while (runs === 0) await nextTurn();
  end();
});

test('refuses a malformed name and one that is taken, also by a standard check, and removes a check', async () => {
  const { readiness } = open({ standardNames: ['disk'] });
  const remove = readiness.add({ name: 'one', run: () => 'no' });
  expect(() => readiness.add({ name: 'one', run: () => null })).toThrow('there is a readiness check one already');
  expect(() => readiness.add({ name: 'disk', run: () => null })).toThrow('there is a readiness check disk already');
  expect(readiness.has('disk')).toBe(true);
  expect(() => readiness.add({ name: 'a b', run: () => null })).toThrow('lower-case letters');
  remove();
  expect(await readiness.report()).toEqual({ isReady: true, checks: [] });
});

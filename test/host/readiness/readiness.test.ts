import { expect, test } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Readiness, type ReadinessCheck } from '../../../src/host/readiness/readiness.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: unknown;
}

function open(...checks: readonly ReadinessCheck[]) {
  const lines: Line[] = [];
  const clock = new ManualClock();
  const at = (level: string) => (message: string, fields?: unknown) => void lines.push({ level, message, fields });
  const log = { info: at('info'), warn: at('warn'), error: at('error') };
  return { readiness: new Readiness({ standard: checks, clock, log }), clock, lines };
}

test('is ready if every check holds, and reports the reason of each that does not', async () => {
  let reason: string | null = null;
  const { readiness } = open({ name: 'one', run: () => null }, { name: 'two', run: () => Promise.resolve(reason) });
  expect(await readiness.report()).toEqual({
    isReady: true,
    checks: [
      { name: 'one', reason: null },
      { name: 'two', reason: null },
    ],
  });
  reason = 'it is broken';
  expect(await readiness.report()).toMatchObject({ isReady: false, checks: [{}, { reason: 'it is broken' }] });
});

test('a check that throws fails with a constant reason, and only the log has the error', async () => {
  const error = new Error('secret /path');
  const reject = (): Promise<null> => Promise.reject(error);
  const { readiness, lines } = open({ name: 'own', run: reject, thrown: 'a constant' }, { name: 'none', run: reject });
  const { checks } = await readiness.report();
  expect(checks).toEqual([
    { name: 'own', reason: 'a constant' },
    { name: 'none', reason: 'the check failed: see the log' },
  ]);
  expect(lines.filter(({ message }) => message === 'a readiness check failed')).toEqual([
    { level: 'error', message: 'a readiness check failed', fields: { check: 'own', error } },
    { level: 'error', message: 'a readiness check failed', fields: { check: 'none', error } },
  ]);
});

test('a check that does not answer fails after two seconds, and delays no other process', async () => {
  const { readiness, clock } = open({ name: 'hangs', run: () => new Promise(() => undefined) });
  const report = readiness.report();
  clock.advance(2_000);
  expect((await report).checks).toEqual([{ name: 'hangs', reason: 'no answer within 2 s' }]);
});

test('a check that does not answer is not begun again: a thread or a connection may wait for each run of it', async () => {
  let runs = 0;
  let answer: (reason: null) => void = () => undefined;
  const { readiness, clock } = open({
    name: 'hangs',
    run: () => {
      runs += 1;
      return new Promise((resolve) => (answer = resolve));
    },
  });
  for (let n = 0; n < 3; n += 1) {
    const report = readiness.report();
    clock.advance(2_000);
    expect((await report).checks).toEqual([{ name: 'hangs', reason: 'no answer within 2 s' }]);
  }
  expect(runs).toBe(1);
  const report = readiness.report();
  answer(null);
  expect((await report).isReady).toBe(true);
  const next = readiness.report();
  expect(runs).toBe(2);
  answer(null);
  expect((await next).isReady).toBe(true);
});

test('concurrent callers share one report', async () => {
  let runs = 0;
  const { readiness } = open({ name: 'one', run: () => ((runs += 1), null) });
  const report = readiness.report();
  expect(readiness.report()).toBe(report);
  await report;
  await readiness.report();
  expect(runs).toBe(2);
});

test('a watch logs each change without a request for a report, until it ends', async () => {
  let reason: string | null = null;
  let runs = 0;
  const { readiness, clock, lines } = open({
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

test('refuses a malformed name and one that is taken, and runs an added check after the standard ones until it is removed', async () => {
  const { readiness } = open({ name: 'disk', run: () => null });
  const remove = readiness.add({ name: 'one', run: () => 'no' });
  expect(() => readiness.add({ name: 'one', run: () => null })).toThrow('there is a readiness check one already');
  expect(() => readiness.add({ name: 'disk', run: () => null })).toThrow('there is a readiness check disk already');
  expect(readiness.has('disk')).toBe(true);
  expect(() => readiness.add({ name: 'a b', run: () => null })).toThrow('lower-case letters');
  expect(await namesOf(readiness)).toEqual(['disk', 'one']);
  remove();
  expect(await namesOf(readiness)).toEqual(['disk']);
});

const namesOf = async (readiness: Readiness): Promise<readonly string[]> =>
  (await readiness.report()).checks.map(({ name }) => name);

import { expect, test } from '@jest/globals';
import { ReadinessReporter, type ReadinessCheck } from '../../../src/host/readiness/readiness-reporter.js';
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
  const added = new Map(checks.map((check) => [check.name, check]));
  return { reporter: new ReadinessReporter({ standard: [], added, clock, log }), added, clock, lines };
}

test('is ready if every check holds, and reports the reason of each that does not', async () => {
  let reason: string | null = null;
  const { reporter } = open({ name: 'one', run: () => null }, { name: 'two', run: () => Promise.resolve(reason) });
  expect(await reporter.report()).toEqual({
    isReady: true,
    checks: [
      { name: 'one', reason: null },
      { name: 'two', reason: null },
    ],
  });
  reason = 'it is broken';
  expect(await reporter.report()).toMatchObject({ isReady: false, checks: [{}, { reason: 'it is broken' }] });
});

test('a check that throws fails with a constant reason, and only the log has the error', async () => {
  const error = new Error('secret /path');
  const reject = (): Promise<null> => Promise.reject(error);
  const { reporter, lines } = open({ name: 'own', run: reject, thrown: 'a constant' }, { name: 'none', run: reject });
  const { checks } = await reporter.report();
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
  const { reporter, clock } = open({ name: 'hangs', run: () => new Promise(() => undefined) });
  const report = reporter.report();
  clock.advance(2_000);
  expect((await report).checks).toEqual([{ name: 'hangs', reason: 'no answer within 2 s' }]);
});

test('a check that does not answer is not begun again: a thread or a connection may wait for each run of it', async () => {
  let runs = 0;
  let answer: (reason: null) => void = () => undefined;
  const { reporter, clock } = open({
    name: 'hangs',
    run: () => {
      runs += 1;
      return new Promise((resolve) => (answer = resolve));
    },
  });
  for (let n = 0; n < 3; n += 1) {
    const report = reporter.report();
    clock.advance(2_000);
    expect((await report).checks).toEqual([{ name: 'hangs', reason: 'no answer within 2 s' }]);
  }
  expect(runs).toBe(1);
  const report = reporter.report();
  answer(null);
  expect((await report).isReady).toBe(true);
  const next = reporter.report();
  expect(runs).toBe(2);
  answer(null);
  expect((await next).isReady).toBe(true);
});

test('logs each change once', async () => {
  let reason: string | null = null;
  const { reporter, lines } = open({ name: 'disk', run: () => reason });
  await reporter.report();
  reason = 'full';
  await reporter.report();
  await reporter.report();
  reason = null;
  await reporter.report();
  expect(lines).toEqual([
    { level: 'error', message: 'this process is not ready', fields: { check: 'disk', reason: 'full' } },
    { level: 'info', message: 'a readiness check holds again', fields: { check: 'disk' } },
  ]);
});

test('runs the standard checks first, and of the added ones those that are there at the time of the report', async () => {
  const clock = new ManualClock();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const added = new Map<string, ReadinessCheck>();
  const standard = [{ name: 'disk', run: () => null }];
  const reporter = new ReadinessReporter({ standard, added, clock, log });
  const names = async (): Promise<readonly string[]> => (await reporter.report()).checks.map(({ name }) => name);
  expect(await names()).toEqual(['disk']);
  added.set('own', { name: 'own', run: () => null });
  expect(await names()).toEqual(['disk', 'own']);
  added.delete('own');
  expect(await names()).toEqual(['disk']);
});

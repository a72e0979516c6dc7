import { expect, test } from '@jest/globals';
import { Readiness } from '../../../src/features/readiness/readiness.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: unknown;
}

function open(): { readiness: Readiness; clock: ManualClock; lines: Line[] } {
  const lines: Line[] = [];
  const clock = new ManualClock();
  const at = (level: string) => (message: string, fields?: unknown) => void lines.push({ level, message, fields });
  const readiness = new Readiness(clock, { info: at('info'), warn: at('warn'), error: at('error') });
  return { readiness, clock, lines };
}

test('is ready if every check holds, and reports the reason of each that does not', async () => {
  const { readiness } = open();
  let reason: string | null = null;
  readiness.add({ name: 'one', run: () => null }, { name: 'two', run: () => Promise.resolve(reason) });
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
  const { readiness, lines } = open();
  const error = new Error('secret /path');
  const reject = (): Promise<null> => Promise.reject(error);
  readiness.add({ name: 'own', run: reject, thrown: 'a constant' }, { name: 'none', run: reject });
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
  const { readiness, clock } = open();
  readiness.add({ name: 'hangs', run: () => new Promise(() => undefined) });
  const report = readiness.report();
  expect(readiness.report()).toBe(report);
  clock.advance(2_000);
  expect((await report).checks).toEqual([{ name: 'hangs', reason: 'no answer within 2 s' }]);
});

test('a check that does not answer is not begun again: a thread or a connection may wait for each run of it', async () => {
  const { readiness, clock } = open();
  let runs = 0;
  let answer: (reason: null) => void = () => undefined;
  readiness.add({
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

test('logs each change once, also without a request for a report', async () => {
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
    while (runs === before) await new Promise(setImmediate);
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
});

test('refuses a malformed name and one that is taken, and removes a check', async () => {
  const { readiness } = open();
  const remove = readiness.add({ name: 'one', run: () => 'no' });
  expect(() => readiness.add({ name: 'one', run: () => null })).toThrow('there is a readiness check one already');
  expect(() => readiness.add({ name: 'a b', run: () => null })).toThrow('lower-case letters');
  remove();
  expect(await readiness.report()).toEqual({ isReady: true, checks: [] });
});

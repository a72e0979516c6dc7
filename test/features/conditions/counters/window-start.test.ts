import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { CounterWindow } from '../../../../src/core/contract/run/counter-fact.js';
import { isTimeZone, slidingLength, windowStart } from '../../../../src/features/conditions/counters/window-start.js';

const startOf = (window: CounterWindow, at: string): string =>
  new Date(windowStart(window, Date.parse(at))).toISOString();
const day = (time_zone: string): CounterWindow => ({ calendar: 'day', time_zone });

describe('a calendar window begins at midnight of its zone', () => {
  test.each([
    ['in winter', 'Europe/Berlin', '2026-01-05T10:00:00.000Z', '2026-01-04T23:00:00.000Z'],
    ['in summer', 'Europe/Berlin', '2026-07-05T10:00:00.000Z', '2026-07-04T22:00:00.000Z'],
    ['at its first moment', 'Europe/Berlin', '2026-01-04T23:00:00.000Z', '2026-01-04T23:00:00.000Z'],
    ['just before it', 'Europe/Berlin', '2026-01-04T22:59:59.999Z', '2026-01-03T23:00:00.000Z'],
    ['behind UTC', 'America/Los_Angeles', '2026-01-05T05:00:00.000Z', '2026-01-04T08:00:00.000Z'],
    ['with an offset of 45 minutes', 'Asia/Kathmandu', '2026-01-05T10:00:00.000Z', '2026-01-04T18:15:00.000Z'],
    ['far ahead of UTC', 'Pacific/Kiritimati', '2026-01-05T11:00:00.000Z', '2026-01-05T10:00:00.000Z'],
    ['on the day of 23 hours', 'Europe/Berlin', '2026-03-29T12:00:00.000Z', '2026-03-28T23:00:00.000Z'],
    ['after the day of 23 hours', 'Europe/Berlin', '2026-03-30T12:00:00.000Z', '2026-03-29T22:00:00.000Z'],
    ['on the day of 25 hours', 'Europe/Berlin', '2026-10-25T22:59:59.999Z', '2026-10-24T22:00:00.000Z'],
    ['after the day of 25 hours', 'Europe/Berlin', '2026-10-25T23:00:00.000Z', '2026-10-25T23:00:00.000Z'],
    ['on a day without midnight', 'Africa/Cairo', '2026-04-24T10:00:00.000Z', '2026-04-23T22:00:00.000Z'],
    ['on a day with two midnights', 'America/Havana', '2026-11-01T12:00:00.000Z', '2026-11-01T04:00:00.000Z'],
  ])('%s', (_what, zone, at, expected) => {
    expect(startOf(day(zone), at)).toBe(expected);
  });

  test('of Monday and of the first of the month', () => {
    const at = '2026-03-01T00:30:00.000Z';
    expect(startOf({ calendar: 'week', time_zone: 'UTC' }, at)).toBe('2026-02-23T00:00:00.000Z');
    expect(startOf({ calendar: 'month', time_zone: 'UTC' }, at)).toBe('2026-03-01T00:00:00.000Z');
    expect(startOf({ calendar: 'month', time_zone: 'America/New_York' }, at)).toBe('2026-02-01T05:00:00.000Z');
  });
});

describe('the windows of a zone', () => {
  const zone = fc.constantFrom('Europe/Berlin', 'Africa/Cairo', 'America/Havana', 'Australia/Lord_Howe', 'UTC');
  const unit = fc.constantFrom('day' as const, 'week' as const, 'month' as const);
  const moment = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2030, 0, 1) });

  /** The local date, by another path than the windows: the text of the date alone. */
  const dateOf = (time_zone: string, at: number): string =>
    new Intl.DateTimeFormat('sv-SE', { timeZone: time_zone, dateStyle: 'short' }).format(at);

  test('have no gaps and do not overlap: a window begins in itself, and the moment before is in another', () => {
    fc.assert(
      fc.property(zone, unit, moment, (time_zone, calendar, at) => {
        const window: CounterWindow = { calendar, time_zone };
        const start = windowStart(window, at);
        expect(start).toBeLessThanOrEqual(at);
        expect(windowStart(window, start)).toBe(start);
        expect(windowStart(window, start - 1)).toBeLessThan(start);
        expect(dateOf(time_zone, start - 1) < dateOf(time_zone, start)).toBe(true);
        if (calendar === 'day') expect(dateOf(time_zone, at)).toBe(dateOf(time_zone, start));
      }),
      { numRuns: 500, seed: 1 },
    );
  });
});

test('a sliding window is as long as its text says, and contains its last moment', () => {
  expect([slidingLength('90m'), slidingLength('24h'), slidingLength('31d')]).toEqual([
    5_400_000, 86_400_000, 2_678_400_000,
  ]);
  expect(windowStart({ sliding: '1m' }, 100_000)).toBe(40_001);
});

test('names of time zones', () => {
  expect(['Europe/Berlin', 'UTC', 'Mars/Olympus', ''].map(isTimeZone)).toEqual([true, true, false, false]);
});

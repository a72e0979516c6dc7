// When the window of a counter begins. A sliding window moves with each step; a calendar window begins at midnight of
// its time zone. Where a day has no midnight, because clocks are set forward, it begins at its first moment; where
// midnight comes twice, at the first of the two.

import type { CounterWindow } from '../../../core/contract/run/counter-fact.js';

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const HOUR = UNITS.h;
const DAY = UNITS.d;

/** The length of a sliding window in milliseconds. */
export function slidingLength(text: string): number {
  const unit = text.at(-1) as keyof typeof UNITS;
  return Number(text.slice(0, -1)) * UNITS[unit];
}

/**
 * The first moment of the window that contains `at`, in ms since the epoch. The window is closed at its beginning: a
 * step of exactly then is counted.
 */
export function windowStart(window: CounterWindow, at: number): number {
  if ('sliding' in window) return at - slidingLength(window.sliding) + 1;
  return calendarStart(window.calendar, window.time_zone ?? 'UTC', at);
}

export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

interface Period {
  readonly from: number;
  readonly until: number;
}

/** The last period of each calendar window: most steps are in the same one. */
const periods = new Map<string, Period>();
const PERIODS_MAX = 256;

function calendarStart(unit: 'day' | 'week' | 'month', zone: string, at: number): number {
  const key = `${unit} ${zone}`;
  const known = periods.get(key);
  if (known !== undefined && known.from <= at && at < known.until) return known.from;
  const day = localDay(zone, at);
  const period = { from: firstMoment(zone, firstDay(unit, day)), until: firstMoment(zone, nextDay(unit, day)) };
  if (periods.size >= PERIODS_MAX) periods.clear();
  periods.set(key, period);
  return period.from;
}

/** Days are the midnights of UTC with the same date. */
const firstDay = (unit: 'day' | 'week' | 'month', day: number): number => {
  const date = new Date(day);
  if (unit === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
  return unit === 'week' ? day - ((date.getUTCDay() + 6) % 7) * DAY : day;
};

const nextDay = (unit: 'day' | 'week' | 'month', day: number): number => {
  const first = new Date(firstDay(unit, day));
  if (unit === 'month') return Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1);
  return first.getTime() + (unit === 'week' ? 7 : 1) * DAY;
};

/** The first moment at which the zone has this date or a later one. */
function firstMoment(zone: string, day: number): number {
  const offsets = [-DAY, 0, DAY].map((shift) => offsetAt(zone, day + shift));
  const midnights = offsets.map((offset) => day - offset).toSorted((a, b) => a - b);
  const midnight = midnights.find((moment) => moment + offsetAt(zone, moment) === day);
  return midnight ?? firstAfterGap(zone, day, midnights[0] ?? day);
}

/** Clocks are set forward at midnight: the day begins when they are. */
function firstAfterGap(zone: string, day: number, near: number): number {
  let [before, after] = [near - 3 * HOUR, near + 3 * HOUR];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (localDay(zone, middle) >= day) after = middle;
    else before = middle;
  }
  return after;
}

const localDay = (zone: string, at: number): number => {
  const local = at + offsetAt(zone, at);
  return local - (((local % DAY) + DAY) % DAY);
};

/** How far the clocks of the zone are ahead of UTC, in ms. */
function offsetAt(zone: string, at: number): number {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  const whole = Math.floor(at / 1_000) * 1_000;
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** @throws RangeError for an unknown zone */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const numeric = 'numeric' as const;
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, hourCycle: 'h23', calendar: 'gregory', numberingSystem: 'latn' },
    ...{ year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric },
  });
  if (formats.size >= PERIODS_MAX) formats.clear();
  formats.set(timeZone, format);
  return format;
}

// Cedar's extension types, each built from a string: decimal, datetime, duration and ipaddr. The formats are those of
// docs.cedarpolicy.com, "Operators and functions to use in Cedar".

import { errorOf, type Evaluated, numberOf } from './values.js';

const DECIMAL = /^(-?)([0-9]+)\.([0-9]{1,4})$/;

export function parseDecimal(text: string): Evaluated {
  const [, sign = '', whole = '', fraction = ''] = DECIMAL.exec(text) ?? [];
  if (whole === '') return errorOf('format');
  const magnitude = BigInt(whole) * 10_000n + BigInt(fraction.padEnd(4, '0'));
  return numberOf('decimal', sign === '' ? magnitude : -magnitude);
}

const UNITS = [86_400_000n, 3_600_000n, 60_000n, 1_000n, 1n] as const;
const DURATION = /^(-?)(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?$/;

export function parseDuration(text: string): Evaluated {
  const found = DURATION.exec(text);
  const amounts = UNITS.map((_, unit) => found?.[unit + 2]);
  if (found === null || amounts.every((amount) => amount === undefined)) return errorOf('format');
  const milliseconds = UNITS.map((unit, index) => unit * BigInt(amounts[index] ?? 0));
  const magnitude = milliseconds.reduce((sum, each) => sum + each);
  return numberOf('duration', found[1] === '-' ? -magnitude : magnitude);
}

const DATE = /^([0-9]{4})-([0-9]{2})-([0-9]{2})(.*)$/s;
const TIME = /^T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}))?(?:Z|([+-])([0-9]{2})([0-9]{2}))$/;
const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

const isLeapYear = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);

/** Counts the days of whole years and months; the year 0 of the calendar comes before the year 1. */
function daysSince1970(year: number, month: number, day: number): number | null {
  const daysOf = (number: number): number => (MONTHS[number - 1] ?? 0) + (number === 2 && isLeapYear(year) ? 1 : 0);
  if (day < 1 || day > daysOf(month)) return null;
  const daysBefore = (before: number): number => {
    const last = before - 1;
    return before * 365 + Math.floor(last / 4) - Math.floor(last / 100) + Math.floor(last / 400);
  };
  let days = daysBefore(year) - daysBefore(1970) + day - 1;
  for (let each = 1; each < month; each += 1) days += daysOf(each);
  return days;
}

const millisecondsOf = (hours: number, minutes: number, seconds: number, rest: number): number | null =>
  hours < 24 && minutes < 60 && seconds < 60 ? ((hours * 60 + minutes) * 60 + seconds) * 1_000 + rest : null;

export function parseDatetime(text: string): Evaluated {
  const [, year, month, day, rest = ''] = DATE.exec(text) ?? [];
  if (year === undefined) return errorOf('format');
  const days = daysSince1970(Number(year), Number(month), Number(day));
  const time = rest === '' ? 0 : parseTime(rest);
  return days === null || time === null ? errorOf('format') : numberOf('datetime', BigInt(days * 86_400_000 + time));
}

/** Milliseconds between midnight and the time, in UTC: before midnight they are negative. */
function parseTime(text: string): number | null {
  const [found, hours, minutes, seconds, rest = 0, sign, zoneHours = 0, zoneMinutes = 0] = TIME.exec(text) ?? [];
  if (found === undefined) return null;
  const time = millisecondsOf(Number(hours), Number(minutes), Number(seconds), Number(rest));
  const zone = millisecondsOf(Number(zoneHours), Number(zoneMinutes), 0, 0);
  if (time === null || zone === null) return null;
  return sign === '-' ? time + zone : time - zone;
}

const NUMBER = '(0|[1-9][0-9]{0,2})';
const IPV4 = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}\\.${NUMBER}$`);
const PREFIX = new RegExp(`^${NUMBER}$`);
const GROUPS = /^[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})*$/;

export function parseIp(text: string): Evaluated {
  const [address = '', suffix, ...others] = text.split('/');
  if (others.length > 0) return errorOf('format');
  const version = address.includes(':') ? 6 : 4;
  const value = version === 6 ? parseIpv6(address) : parseIpv4(address);
  const bits = version === 6 ? 128 : 32;
  const prefix = suffix === undefined ? bits : PREFIX.test(suffix) ? Number(suffix) : bits + 1;
  return value === null || prefix > bits ? errorOf('format') : { type: 'ip', version, address: value, prefix };
}

function parseIpv4(text: string): bigint | null {
  const [, ...bytes] = IPV4.exec(text) ?? [];
  if (bytes.length === 0 || bytes.some((byte) => Number(byte) > 255)) return null;
  return bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

function parseIpv6(text: string): bigint | null {
  const halves = text.split('::');
  if (halves.length > 2 || halves.some((half) => half !== '' && !GROUPS.test(half))) return null;
  const [left = [], right = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - left.length - right.length;
  // Two colons stand for one group of zeros or more.
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...left, ...Array.from({ length: missing }, () => '0'), ...right];
  return groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

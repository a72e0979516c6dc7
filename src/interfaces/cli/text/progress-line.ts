// One line that says how far long work is. ASCII without colours: every terminal shows it.

import type { ProgressPart, ProgressUnit } from '../../../engine/ports/progress.js';

/** How far a part of the work is. */
export interface ProgressState extends ProgressPart {
  readonly done: number;
  /** The seconds since the part began. */
  readonly seconds: number;
  /** The width of the terminal. */
  readonly columns: number;
}

/** The lengths of the bar, of which the first that fits is used, so that it does not change with each number. */
const BAR_COLUMNS = [30, 10] as const;
/** An earlier estimate is of the start of the work, not of the work. */
const RATE_AFTER_SECONDS = 1;
const MIB = 1_048_576;

/**
 * The line of a part: `reading the ledger: 300 of 1200 entries, 25 %, 150/s, 6 s left [=====>       ]`. It is shorter
 * than the terminal is wide, so that it never wraps.
 */
export function progressLine(state: ProgressState): string {
  const { label, done, columns } = state;
  // A ledger may grow while it is read.
  const total = state.total === null ? null : Math.max(state.total, done);
  const facts = total === null ? openFacts(state) : boundedFacts({ ...state, total });
  const text = `${label}: ${facts.join(', ')}`;
  const room = Math.max(0, columns - 1);
  if (text.length > room) return text.slice(0, room);
  const bar = BAR_COLUMNS.find((columns) => text.length + columns + 3 <= room);
  if (total === null || total === 0 || bar === undefined) return text;
  const filled = Math.floor((done / total) * bar);
  const tip = filled > 0 && filled < bar ? `${'='.repeat(filled - 1)}>` : '='.repeat(filled);
  return `${text} [${tip.padEnd(bar)}]`;
}

function boundedFacts({ done, total, unit, seconds }: ProgressState & { readonly total: number }): readonly string[] {
  const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
  const amount = unit === 'bytes' ? `${mebibytes(done)} of ${mebibytes(total)} MiB` : `${done} of ${total} ${unit}`;
  const rate = rateOf(done, seconds);
  const left = rate === null ? [] : [rateText(rate, unit), `${durationText((total - done) / rate)} left`];
  return [amount, `${percent} %`, ...left];
}

/** Without a total: what is done, and for how long. */
function openFacts({ done, unit, seconds }: ProgressState): readonly string[] {
  const amount = unit === 'bytes' ? `${mebibytes(done)} MiB` : `${done} ${unit}`;
  const rate = rateOf(done, seconds);
  return [...(done === 0 ? [] : [amount]), ...(rate === null ? [] : [rateText(rate, unit)]), durationText(seconds)];
}

/** Units per second; null while nothing can be said about them. */
const rateOf = (done: number, seconds: number): number | null =>
  done > 0 && seconds >= RATE_AFTER_SECONDS ? done / seconds : null;

const rateText = (rate: number, unit: ProgressUnit): string =>
  unit === 'bytes' ? `${mebibytes(rate)} MiB/s` : `${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`;

const mebibytes = (bytes: number): string => (bytes / MIB).toFixed(1);

/** `7 s`, `2 min 05 s`, `1 h 04 min` */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60];
  if (minutes < 60) return `${minutes} min ${String(rest).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

// The progress bar of a command: one line on stderr that is drawn over itself, and removed before anything else is
// written to the terminal.

import type { Clock } from '../../engine/ports/clock.js';
import {
  NO_PROGRESS,
  type ProgressPart,
  type ProgressReporter,
  type ProgressUnit,
} from '../../engine/ports/progress.js';
import type { CommandArguments } from './command.js';
import type { CommandProgress, Io, Output } from './io.js';

/** A command that ends before this time shows no bar, in ms. */
const QUIET_MS = 500;
/** Between two drawings, in ms. */
const REDRAW_MS = 100;
const COLUMNS_DEFAULT = 80;
/** Back to the first column, and delete the line. */
const CLEAR_LINE = '\r\u001b[K';

/** What a bar uses. */
export interface ProgressBarParts extends Pick<Io, 'stdout' | 'stderr' | 'beforeSignal'> {
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'wake'>;
}

/** The bar for these arguments: none with `--json`. */
export const progressFor = (
  { values }: { readonly values: Pick<CommandArguments['values'], 'json'> },
  io: Pick<Io, 'progress'>,
): ProgressReporter => (values.json ? NO_PROGRESS : io.progress);

/** Draws nothing. */
export const HIDDEN_PROGRESS: CommandProgress = { ...NO_PROGRESS, close: () => undefined };

/** The bar on a terminal; nothing for any other stderr, and for a terminal that cannot delete a line. */
export function createProgress(parts: ProgressBarParts, terminal: string | undefined): CommandProgress {
  return parts.stderr.isTTY && terminal !== 'dumb' ? new ProgressBar(parts) : HIDDEN_PROGRESS;
}

class ProgressBar implements CommandProgress {
  readonly #stderr: Output;
  readonly #clock: ProgressBarParts['clock'];
  readonly #beforeSignal: ProgressBarParts['beforeSignal'];
  #part: ProgressPart | null = null;
  #done = 0;
  /** When the current part began, in ms. */
  #since = 0;
  /** When something may be drawn next, in ms; null before the first part. */
  #next: number | null = null;
  #isClosed = false;
  /** Present while the bar is on the terminal. */
  #ignoreSignals: (() => void) | null = null;
  #cancelWake: (() => void) | null = null;

  constructor({ stdout, stderr, clock, beforeSignal }: ProgressBarParts) {
    this.#stderr = stderr;
    this.#clock = clock;
    this.#beforeSignal = beforeSignal;
    stderr.onWrite(() => this.#hide());
    // What a command writes to stdout is its result: the work is done, or its reader sees it go on.
    stdout.onWrite(() => this.close());
  }

  begin(part: ProgressPart): void {
    if (this.#isClosed) return;
    const now = this.#now();
    this.#next ??= now + QUIET_MS;
    [this.#part, this.#done, this.#since] = [part, 0, now];
    this.#cancelWake ??= this.#wakeLater();
    this.#drawIfDue();
  }

  advance(count = 1): void {
    if (this.#part === null) return;
    this.#done += count;
    this.#drawIfDue();
  }

  end(): void {
    this.#part = null;
    this.#cancelWake?.();
    this.#cancelWake = null;
    this.#hide();
  }

  close(): void {
    this.#isClosed = true;
    this.end();
  }

  /** Time goes on while nothing is counted, too. */
  #wakeLater(): () => void {
    return this.#clock.wake(this.#clock.now() + REDRAW_MS, () => {
      this.#drawIfDue();
      this.#cancelWake = this.#wakeLater();
    });
  }

  #drawIfDue(): void {
    const now = this.#now();
    if (this.#part === null || this.#next === null || now < this.#next) return;
    this.#next = now + REDRAW_MS;
    const columns = this.#stderr.columns ?? COLUMNS_DEFAULT;
    const line = progressLine({ ...this.#part, done: this.#done, seconds: (now - this.#since) / 1_000, columns });
    this.#ignoreSignals ??= this.#beforeSignal(() => this.#hide());
    this.#stderr.draw(`${CLEAR_LINE}${line}`);
  }

  #hide(): void {
    if (this.#ignoreSignals === null) return;
    this.#ignoreSignals();
    this.#ignoreSignals = null;
    this.#stderr.draw(CLEAR_LINE);
  }

  #now(): number {
    return this.#clock.monotonic?.() ?? this.#clock.now();
  }
}

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

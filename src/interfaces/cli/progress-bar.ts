// The progress bar of a command: one line on stderr that is drawn over itself, and removed before anything else is
// written to the terminal.

import type { Clock } from '../../engine/ports/clock.js';
import { NO_PROGRESS, type ProgressPart, type ProgressReporter } from '../../engine/ports/progress.js';
import type { CommandArguments } from './command.js';
import type { CommandProgress, Io, Output } from './io.js';
import { progressLine } from './text/progress-line.js';

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
export const progressFor = (args: Pick<CommandArguments, 'flag'>, io: Pick<Io, 'progress'>): ProgressReporter =>
  args.flag('json') ? NO_PROGRESS : io.progress;

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

import { describe, expect, test } from '@jest/globals';
import { Writable } from 'node:stream';
import { Output } from '../../../src/interfaces/cli/io.js';
import {
  createProgress,
  durationText,
  progressFor,
  progressLine,
  type ProgressState,
} from '../../../src/interfaces/cli/progress-bar.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { terminalScreen } from './terminal-screen.js';

const PART = { label: 'reading', unit: 'entries', total: 100 } as const;

/** A bar on a terminal of which everything is recorded, and time that advances only when the test says so. */
function bar(terminal = 'xterm', isTTY = true) {
  const written: string[] = [];
  const signals = new Set<() => void>();
  const sink = (): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        written.push(String(chunk));
        done();
      },
    });
  const manual = new ManualClock();
  let time = 0;
  const clock = { now: () => manual.now(), monotonic: () => time, wake: manual.wake.bind(manual) };
  const [stdout, stderr] = [new Output(sink(), true), new Output(sink(), isTTY)];
  const beforeSignal = (action: () => void) => {
    signals.add(action);
    return () => void signals.delete(action);
  };
  const progress = createProgress({ stdout, stderr, clock, beforeSignal }, terminal);
  /** Lets time pass, with the timers of the bar. */
  const pass = (ms: number): void => {
    time += ms;
    manual.advance(ms);
  };
  return { progress, stdout, stderr, written, signals, pass, manual, wait: (ms: number) => (time += ms) };
}

describe('a progress bar', () => {
  test('shows nothing for work that ends within half a second', () => {
    const { progress, written, pass } = bar();
    progress.begin(PART);
    for (let i = 0; i < 4; i += 1) {
      pass(120);
      progress.advance();
    }
    progress.close();
    expect(written).toEqual([]);
  });

  test('counts the half second from the first part on, not for each part', () => {
    const { progress, written, wait } = bar();
    progress.begin(PART);
    wait(300);
    progress.begin({ ...PART, label: 'verifying' });
    wait(300);
    progress.advance(7);
    expect(terminalScreen(written.join(''))).toEqual([expect.stringMatching(/^verifying: 7 of 100 entries, 7 %/)]);
  });

  test('is drawn at most ten times a second, however often work is counted', () => {
    const { progress, written, wait } = bar();
    progress.begin(PART);
    wait(500);
    for (let i = 0; i < 1_000; i += 1) {
      wait(1);
      progress.advance(0.01);
    }
    expect(written.length).toBeGreaterThanOrEqual(9);
    expect(written.length).toBeLessThanOrEqual(11);
  });

  test('shows the time that passes while nothing is counted', () => {
    const { progress, written, pass } = bar();
    progress.begin({ label: 'opening', unit: 'entries', total: null });
    for (let i = 0; i < 30; i += 1) pass(100);
    expect(terminalScreen(written.join(''))).toEqual(['opening: 3 s']);
  });

  test.each(['stderr', 'stdout'] as const)('is removed before anything is written to %s', async (name) => {
    const at = bar();
    at.progress.begin(PART);
    at.wait(600);
    at.progress.advance();
    expect(terminalScreen(at.written.join(''))).not.toEqual([]);
    await at[name].write('a result\n');
    expect(terminalScreen(at.written.join(''))).toEqual(['a result']);
  });

  test('never returns after the first line of the result', async () => {
    const { progress, stdout, written, pass } = bar();
    progress.begin(PART);
    await stdout.write('a result\n');
    progress.begin({ ...PART, label: 'more' });
    for (let i = 0; i < 20; i += 1) {
      pass(100);
      progress.advance();
    }
    expect(written).toEqual(['a result\n']);
  });

  test('returns after a warning, because the work goes on', async () => {
    const { progress, stderr, written, wait } = bar();
    progress.begin(PART);
    await stderr.writeLine('a warning');
    wait(600);
    progress.advance(50);
    expect(terminalScreen(written.join(''))).toEqual(['a warning', expect.stringMatching(/^reading: 50 of 100/)]);
  });

  test('listens for signals only while it is on the terminal, and then removes itself', () => {
    const { progress, written, signals, wait } = bar();
    progress.begin(PART);
    expect(signals.size).toBe(0);
    wait(600);
    progress.advance();
    expect(signals.size).toBe(1);
    for (const action of [...signals]) action();
    expect(signals.size).toBe(0);
    expect(terminalScreen(written.join(''))).toEqual([]);
  });

  test('leaves no timer behind', () => {
    const { progress, pass, manual } = bar();
    progress.begin(PART);
    pass(1_000);
    expect(manual.timers).toBe(1);
    progress.close();
    expect(manual.timers).toBe(0);
  });

  test.each([
    ['stderr that is no terminal', 'xterm', false],
    ['a terminal that cannot delete a line', 'dumb', true],
  ] as const)('does nothing on %s', (_what, terminal, isTTY) => {
    const { progress, written, wait, manual } = bar(terminal, isTTY);
    progress.begin(PART);
    wait(10_000);
    progress.advance();
    expect({ written, timers: manual.timers }).toEqual({ written: [], timers: 0 });
  });

  test('does nothing with --json', () => {
    const { progress, written, wait } = bar();
    const reporter = progressFor({ values: { json: true } }, { progress });
    reporter.begin(PART);
    wait(10_000);
    reporter.advance();
    expect(written).toEqual([]);
  });
});

const line = (state: Partial<ProgressState>): string =>
  progressLine({ label: 'reading', unit: 'entries', total: 1_200, done: 300, seconds: 2, columns: 100, ...state });

describe('the line of a progress bar', () => {
  test('names what is done, of how many, the share, the rate and the time that is left', () => {
    expect(line({})).toBe('reading: 300 of 1200 entries, 25 %, 150/s, 6 s left [======>                       ]');
  });

  test('counts bytes in MiB', () => {
    expect(line({ unit: 'bytes', total: 4_194_304, done: 1_048_576 })).toMatch(
      /^reading: 1\.0 of 4\.0 MiB, 25 %, 0\.5 MiB\/s, 6 s left \[/,
    );
  });

  test('without a total, names what is done and for how long', () => {
    expect(line({ total: null })).toBe('reading: 300 entries, 150/s, 2 s');
    expect(line({ total: null, done: 0, seconds: 12.3 })).toBe('reading: 13 s');
  });

  test('claims no rate and no remaining time before there is one', () => {
    expect(line({ done: 0 })).toBe(`reading: 0 of 1200 entries, 0 % [${' '.repeat(30)}]`);
    expect(line({ seconds: 0.9 })).toMatch(/^reading: 300 of 1200 entries, 25 % \[/);
  });

  test('a ledger that grew while it was read is never more than complete', () => {
    expect(line({ done: 1_300 })).toBe(`reading: 1300 of 1300 entries, 100 %, 650/s, 0 s left [${'='.repeat(30)}]`);
    expect(line({ done: 0, total: 0 })).toBe('reading: 0 of 0 entries, 100 %');
  });

  test('never fills a terminal, however narrow, because then it would wrap', () => {
    for (let columns = 1; columns < 130; columns += 1) {
      for (const done of [0, 1, 600, 1_200]) expect(line({ columns, done }).length).toBeLessThan(columns);
    }
  });

  test('keeps its length while the numbers change, and shortens for a narrow terminal', () => {
    const barOf = (state: Partial<ProgressState>): number => (/\[.*\]$/.exec(line(state))?.[0].length ?? 2) - 2;
    expect([300, 1_000, 1_199].map((done) => barOf({ done, columns: 90 }))).toEqual([30, 30, 30]);
    expect([300, 1_000, 1_199].map((done) => barOf({ done, columns: 70 }))).toEqual([10, 10, 10]);
    expect(barOf({ columns: 50 })).toBe(0);
  });

  test('has only printable ASCII, which every terminal shows', () => {
    expect(line({})).toMatch(/^[ -~]+$/);
  });

  test.each([
    [0.2, '1 s'],
    [59, '59 s'],
    [65, '1 min 05 s'],
    [3_599.5, '1 h 00 min'],
    [7_300, '2 h 01 min'],
  ])('shows %d seconds as %s', (seconds, text) => expect(durationText(seconds)).toBe(text));
});

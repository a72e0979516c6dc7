import { describe, expect, test } from '@jest/globals';
import { Writable } from 'node:stream';
import { Output } from '../../../src/interfaces/cli/io.js';
import { createProgress, progressFor } from '../../../src/interfaces/cli/progress-bar.js';
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
    const reporter = progressFor({ flag: (name) => name === 'json' }, { progress });
    reporter.begin(PART);
    wait(10_000);
    reporter.advance();
    expect(written).toEqual([]);
  });
});

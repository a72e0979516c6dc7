import { describe, expect, test } from '@jest/globals';
import { durationText, progressLine, type ProgressState } from '../../../../src/interfaces/cli/text/progress-line.js';

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

import { expect, test } from '@jest/globals';
import { joinChecks } from '../../../../src/features/conditions/counters/join-checks.js';
import type { QuotaChange } from '../../../../src/engine/ports/ledger/shared-store.js';

const NONE = { bytes: 0, files: 0 };
const change = (case_id: string, version: string, more: Partial<QuotaChange> = {}): QuotaChange => ({
  ...{ case_id, version, isChecked: true, total: NONE, room: null, reserved: [], released: [] },
  ...more,
});
const isCounter = (case_id: string): boolean => case_id.startsWith('counter');
const idsOf = (changes: readonly QuotaChange[] | undefined): readonly string[] =>
  (changes ?? []).map(({ case_id, version }) => `${case_id}@${version}`).toSorted();

test('appends that share a counter get the checks of all of them, and change nothing more', () => {
  const first = [change('case-1', '7'), change('counter', '3', { released: ['x'] })];
  const second = [change('case-2', '9'), change('counter', '3', { released: ['y'] })];
  const other = [change('case-3', '1')];
  const joined = joinChecks([first, second, other], isCounter);
  expect(idsOf(joined[0])).toEqual(['case-1@7', 'case-1@7', 'case-2@9', 'counter@3', 'counter@3']);
  expect(idsOf(joined[1])).toEqual(['case-1@7', 'case-2@9', 'case-2@9', 'counter@3', 'counter@3']);
  expect(joined[2]).toBe(other);
  expect(joined[0]?.slice(2).every(({ reserved, released }) => reserved.length + released.length === 0)).toBe(true);
});

test('a joined check is the strictest: another version fails, and the least room counts', () => {
  const room = (bytes: number) => ({ total: { bytes: 10, files: 1 }, room: { bytes, files: 5 } });
  const [joined] = joinChecks(
    [
      [change('case-1', '7', room(100)), change('counter', '3')],
      [change('case-1', '7', room(40)), change('counter', '3')],
      [change('case-2', 'a'), change('counter', '3')],
      [change('case-2', 'b'), change('counter', '3')],
    ],
    isCounter,
  );
  const checks = joined?.slice(2) ?? [];
  expect(checks.find(({ case_id }) => case_id === 'case-1')).toMatchObject({
    version: '7',
    room: { bytes: 50, files: 6 },
  });
  expect(checks.find(({ case_id }) => case_id === 'case-2')).toMatchObject({ version: '?', room: null });
});

test('an append that only changes a counter depends on no other', () => {
  const settles = [change('counter', '3', { isChecked: false, released: ['x'] })];
  const decides = [change('counter', '3'), change('case-1', '7')];
  const joined = joinChecks([settles, decides], isCounter);
  expect(joined[0]).toBe(settles);
  expect(idsOf(joined[1])).toEqual(['case-1@7', 'case-1@7', 'counter@3', 'counter@3']);
});

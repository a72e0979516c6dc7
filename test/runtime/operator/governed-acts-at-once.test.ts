// Acts of operators that are requested at the same time.

import { afterEach, expect, test } from '@jest/globals';
import { readHomeHistory } from '../../../src/runtime/home/ledger-key.js';
import { homePaths } from '../../../src/runtime/home/home-paths.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';

const OPERATOR = { actor: 'olga operator', role: 'ARCHIVIST' } as const;
let bench: Bench;
afterEach(() => bench.close());

const rotate = (approved?: string) =>
  bench.turnpike.rotateLedgerKey({ ...OPERATOR, ...(approved === undefined ? {} : { approved }) });
const rotated = (): readonly number[] =>
  (readHomeHistory(homePaths(bench.home).ledgerKey)?.rotations ?? []).map(({ number }) => number);

test('C101: rotations that are requested at once follow one another', async () => {
  bench = await Bench.open({});
  const rotations = await Promise.all([rotate(), rotate()]);
  expect(rotations.map(({ number }) => number)).toEqual([1, 2]);
  expect(rotated()).toEqual([1, 2]);
});

test('C101: two calls that take up one approval at once execute the act once', async () => {
  const conditions: BenchOptions['conditions'] =
    '@id("held")\n@approvals("1")\n@approver_role("ATTORNEY_ADMIN")\n' +
    'forbid (principal, action == Action::"key_rotation", resource);\n';
  bench = await Bench.open({ conditions });
  const message = await rotate().then(
    () => '',
    (error: unknown) => (error as Error).message,
  );
  const [, run = '', digest = ''] = /turnpike approve (\S+) ([0-9a-f]{64})/.exec(message) ?? [];
  const approver = { actor: 'second person', role: 'ATTORNEY_ADMIN', decision: 'approve' } as const;
  await bench.turnpike.approve({ run, digests: [digest], ...approver });
  const found = await Promise.allSettled([rotate(run), rotate(run)]);
  expect(found).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'ACT_DENIED' } }]);
  expect(rotated()).toEqual([1]);
});

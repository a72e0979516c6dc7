// Acts of operators that are requested at the same time.

import { afterEach, expect, test } from '@jest/globals';
import { readHomeHistory } from '../../../src/home/ledger-key.js';
import { homePaths } from '../../../src/home/home-paths.js';
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

/** Opens a Turnpike whose policy asks for a second person, and approves a request. @returns its run */
async function approved(action: string, request: () => Promise<unknown>): Promise<string> {
  const conditions: BenchOptions['conditions'] =
    '@id("held")\n@approvals("1")\n@approver_role("ATTORNEY_ADMIN")\n' +
    `forbid (principal, action == Action::"${action}", resource);\n`;
  bench = await Bench.open({ conditions });
  const message = await request().then(
    () => '',
    (error: unknown) => (error as Error).message,
  );
  const [, run = '', digest = ''] = /turnpike approve (\S+) ([0-9a-f]{64})/.exec(message) ?? [];
  const approver = { actor: 'second person', role: 'ATTORNEY_ADMIN', decision: 'approve' } as const;
  await bench.turnpike.approve({ run, digests: [digest], ...approver });
  return run;
}

const archive = (more: { readonly approved?: string } = {}) =>
  bench.turnpike.requestAct({ ...OPERATOR, ...more }, { action: 'ARCHIVE_LEDGER', cases: [], details: {} });
const resumedAlready = {
  code: 'INVALID_STATE_TRANSITION',
  message: expect.stringContaining('request it anew') as unknown,
};

test('C101: an approved act is granted once, at whatever time it is requested again and in every process', async () => {
  const run = await approved('archive', () => archive());
  const found = await Promise.allSettled([1, 2, 3].map(() => archive({ approved: run })));
  expect(found.filter(({ status }) => status === 'fulfilled')).toEqual([
    { status: 'fulfilled', value: { run_id: run } },
  ]);
  for (const one of found) if (one.status === 'rejected') expect(one.reason).toMatchObject(resumedAlready);
  await expect(archive({ approved: run })).rejects.toMatchObject(resumedAlready);
  await bench.turnpike.close();
  bench = await Bench.reopen(bench, { clock: bench.clock });
  await expect(archive({ approved: run })).rejects.toMatchObject(resumedAlready);
  await bench.turnpike.reportAct({ run_id: run }, 'done');
  await expect(archive({ approved: run })).rejects.toMatchObject({ code: 'ACT_DENIED' });
});

test('C101: an act that policy has allowed without votes is not granted again while it runs', async () => {
  bench = await Bench.open({});
  const { run_id } = await archive();
  await expect(archive({ approved: run_id })).rejects.toMatchObject(resumedAlready);
  await bench.turnpike.reportAct({ run_id }, 'done');
});

test('C101: two calls that resume one approved act at once execute it once', async () => {
  const run = await approved('key_rotation', () => rotate());
  const found = await Promise.allSettled([rotate(run), rotate(run)]);
  expect(found).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'ACT_DENIED' } }]);
  expect(rotated()).toEqual([1]);
});

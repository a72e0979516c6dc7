// What each standard check says, on a whole Turnpike. Full and broken disks: test/interfaces/service/failures.

import { chmodSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { standardChecks, type StandardCheckParts } from '../../../src/host/readiness/standard-checks.js';
import { keyFolder } from '../../../src/home/home-paths.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { Bench } from '../../fixtures/bench.js';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

const failedOf = async ({ turnpike }: Bench): Promise<Record<string, string>> => {
  const { checks } = await turnpike.readiness.report();
  return Object.fromEntries(checks.flatMap(({ name, reason }) => (reason === null ? [] : [[name, reason]])));
};

test('an open home is ready', async () => {
  const { isReady, checks } = await bench.turnpike.readiness.report();
  expect(checks.map(({ name }) => name)).toEqual(['ledger-write', 'ledger-read', 'disk', 'policy', 'keys']);
  expect(isReady).toBe(true);
  // The disk was written to, and nothing is left.
  expect(existsSync(join(bench.home, 'ledger.reserve.probe'))).toBe(false);
});

test('a key that others may read, or that is gone, makes the process not ready until it is restored', async () => {
  const { ledgerKey, keys } = keyFolder(join(bench.home, 'keys'));
  chmodSync(ledgerKey.privateKey, 0o644);
  expect(await failedOf(bench)).toEqual({ keys: 'a key cannot be read' });
  chmodSync(ledgerKey.privateKey, 0o600);
  expect(await failedOf(bench)).toEqual({});
  renameSync(keys, `${keys}.away`);
  expect(await failedOf(bench)).toEqual({ keys: 'the key of the ledger is missing' });
  renameSync(`${keys}.away`, keys);
  expect(await failedOf(bench)).toEqual({});
});

function checksWith(parts: Partial<StandardCheckParts>): Promise<Record<string, string | null>> {
  const whole: StandardCheckParts = {
    condition: () => ({ state: 'running', permanentCode: null, laterTrees: 0 }),
    restartsItself: true,
    readLedger: () => Promise.resolve(1),
    storage: { admitsStarts: () => true, isWritable: () => Promise.resolve(true) },
    countActions: () => Promise.resolve(1),
    keys: null,
    isSigned: false,
    readClock: null,
    log: winstonLog('silent'),
    ...parts,
  };
  const run = async ({ name, run: check, thrown }: ReturnType<typeof standardChecks>[number]) => {
    const reason = await Promise.resolve()
      .then(check)
      .catch(() => thrown ?? '');
    return [name, reason] as const;
  };
  return Promise.all(standardChecks(whole).map(run)).then(Object.fromEntries) as Promise<Record<string, string | null>>;
}

test('the check of the ledger tells a failure that passes from one that does not', async () => {
  const reasonOf = async (condition: Partial<ReturnType<StandardCheckParts['condition']>>, restartsItself = true) => {
    const checks = await checksWith({
      condition: () => ({ state: 'failed', permanentCode: null, laterTrees: 0, ...condition }),
      restartsItself,
    });
    return checks['ledger-write'];
  };
  expect(await reasonOf({})).toBe('a write to the ledger failed: restarts follow until one succeeds');
  expect(await reasonOf({}, false)).toBe('a write to the ledger failed: a restart is needed');
  expect(await reasonOf({ state: 'recovering' })).toBe('unfinished work is being settled after a failed write');
  expect(await reasonOf({ permanentCode: 'LEDGER_BELOW_HEAD' })).toContain('has lost entries');
  expect(await reasonOf({ permanentCode: 'INVARIANT' })).toContain('a restart does not remove');
});

test('a disk below the reserve, or one that takes no write, is named', async () => {
  const low = { admitsStarts: () => false, isWritable: () => Promise.resolve(true) };
  expect(await checksWith({ storage: low })).toMatchObject({
    disk: 'less space is free than the reserve: no run starts',
  });
  const broken = { admitsStarts: () => true, isWritable: () => Promise.resolve(false) };
  expect(await checksWith({ storage: broken })).toMatchObject({ disk: 'the disk cannot be written' });
});

test('a policy that cannot be used, or lists nothing, is named', async () => {
  const broken = () => Promise.reject(new Error('x'));
  expect(await checksWith({ countActions: broken })).toMatchObject({ policy: 'the policy cannot be used' });
  expect(await checksWith({ countActions: () => Promise.resolve(0) })).toMatchObject({
    policy: 'no action is registered',
  });
});

test('a clock that was set back by more than a minute makes the process not ready; each change is logged', async () => {
  const lines: unknown[] = [];
  const note = (message: string, fields?: unknown): void => void lines.push([message, fields]);
  const log = { info: note, warn: note, error: note };
  let reading = { offset_ms: 0, behind_ms: 0 };
  const [clock] = standardChecks({
    condition: () => ({ state: 'running', permanentCode: null, laterTrees: 0 }),
    restartsItself: true,
    readLedger: () => Promise.resolve(1),
    storage: { admitsStarts: () => true, isWritable: () => Promise.resolve(true) },
    countActions: () => Promise.resolve(1),
    keys: null,
    isSigned: false,
    readClock: () => reading,
    log,
  }).filter(({ name }) => name === 'clock');
  expect(await clock?.run()).toBeNull();
  reading = { offset_ms: 7_200_000, behind_ms: 0 };
  expect(await clock?.run()).toBeNull();
  reading = { offset_ms: 0, behind_ms: 7_200_000 };
  expect(await clock?.run()).toContain('set back');
  reading = { offset_ms: 0, behind_ms: 1_000 };
  expect(await clock?.run()).toBeNull();
  expect(lines).toEqual([
    ['the clock of this machine was set forward', { seconds: 7_200 }],
    ['the clock of this machine was set back', { seconds: 7_200 }],
  ]);
});

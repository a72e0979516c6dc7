// What each standard check says, on a whole Turnpike. Full and broken disks: test/interfaces/service/failures.

import { chmodSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Readiness } from '../../../src/host/readiness/readiness.js';
import { standardChecks, type StandardCheckParts } from '../../../src/host/readiness/turnpike-readiness.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { keyFolder } from '../../../src/home/home-paths.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { Bench } from '../../fixtures/bench.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const ALWAYS = ['ledger-write', 'ledger-read', 'disk', 'policy'];

const benched = async (options: Parameters<typeof Bench.open>[0]): Promise<Turnpike> =>
  (await Bench.open(options)).turnpike;

test.each<readonly [string, () => Promise<Turnpike>, readonly string[]]>([
  ['keys and the clock of this machine', () => openOnMachine(), [...ALWAYS, 'keys', 'clock']],
  ['keys and a clock of the caller', () => benched({}), [...ALWAYS, 'keys']],
  ['neither', () => benched({ store: memoryStore() }), ALWAYS],
])('with %s, an open Turnpike has these checks, and no other may take their names', async (_what, open, names) => {
  const turnpike = await open();
  const { readiness } = turnpike;
  for (const name of names) {
    expect(() => readiness.add({ name, run: () => null })).toThrow(`there is a readiness check ${name} already`);
  }
  readiness.add({ name: 'own', run: () => null });
  const { isReady, checks } = await readiness.report();
  expect([isReady, ...checks.map(({ name }) => name)]).toEqual([true, ...names, 'own']);
  await turnpike.close();
});

const openOnMachine = (): Promise<Turnpike> =>
  openTurnpike({ home: join(tempFolder(), 'home'), log: winstonLog('silent') });

test('a key that others may read, or that is gone, makes the process not ready until it is restored', async () => {
  const bench = await Bench.open();
  const { readiness } = bench.turnpike;
  const { ledgerKey, keys } = keyFolder(join(bench.home, 'keys'));
  renameSync(keys, `${keys}.away`);
  expect(await failedOf(readiness)).toEqual({ keys: 'the key of the ledger is missing' });
  renameSync(`${keys}.away`, keys);
  expect(await failedOf(readiness)).toEqual({});
  chmodSync(ledgerKey.privateKey, 0o644);
  expect(await failedOf(readiness)).toEqual({ keys: 'a key cannot be read' });
  chmodSync(ledgerKey.privateKey, 0o600);
  expect(await failedOf(readiness)).toEqual({});
  // The disk was written to, and nothing is left.
  expect(existsSync(join(bench.home, 'ledger.reserve.probe'))).toBe(false);
  await bench.close();
});

async function failedOf(readiness: Readiness): Promise<Readonly<Record<string, string | null>>> {
  const { checks } = await readiness.report();
  return Object.fromEntries(checks.flatMap(({ name, reason }) => (reason === null ? [] : [[name, reason]])));
}

const HEALTHY: StandardCheckParts = {
  condition: () => ({ state: 'running', permanentCode: null, laterTrees: 0 }),
  restartsItself: true,
  readLedger: () => Promise.resolve(1),
  storage: { admitsStarts: () => true, isWritable: () => Promise.resolve(true) },
  countActions: () => Promise.resolve(1),
  keys: null,
  readClock: null,
  log: winstonLog('silent'),
};

/** The checks that fail with these parts. */
function failedWith(parts: Partial<StandardCheckParts>): Promise<Readonly<Record<string, string | null>>> {
  const { log } = HEALTHY;
  return failedOf(new Readiness({ standard: standardChecks({ ...HEALTHY, ...parts }), clock: new ManualClock(), log }));
}

test('the check of the ledger tells a failure that passes from one that does not', async () => {
  const reasonOf = async (condition: Partial<ReturnType<StandardCheckParts['condition']>>, restartsItself = true) => {
    const checks = await failedWith({
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
  expect(await failedWith({ storage: low })).toEqual({
    disk: 'less space is free than the reserve: no run starts',
  });
  const broken = { admitsStarts: () => true, isWritable: () => Promise.resolve(false) };
  expect(await failedWith({ storage: broken })).toEqual({ disk: 'the disk cannot be written' });
});

test('a policy that cannot be used, or lists nothing, is named', async () => {
  const broken = () => Promise.reject(new Error('x'));
  expect(await failedWith({ countActions: broken })).toEqual({ policy: 'the policy cannot be used' });
  expect(await failedWith({ countActions: () => Promise.resolve(0) })).toEqual({
    policy: 'no action is registered',
  });
});

test('a clock that was set back by more than a minute makes the process not ready; each change is logged', async () => {
  const lines: unknown[] = [];
  const note = (message: string, fields?: unknown): void => void lines.push([message, fields]);
  const log = { info: note, warn: note, error: note };
  let reading = { offset_ms: 0, behind_ms: 0 };
  const clock = standardChecks({ ...HEALTHY, readClock: () => reading, log }).find(({ name }) => name === 'clock');
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

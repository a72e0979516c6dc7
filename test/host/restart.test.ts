// A temporary failure to write the ledger, in a process that continues.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../fixtures/ledger-model/model-store.js';
import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { embeddedEngine } from '../../src/engine/embedded.js';
import type { EngineFactory } from '../../src/engine/tree-engine.js';
import { laterFormatError, LedgerError } from '../../src/core/errors.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { ExternalHeadStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { RESTART_MS, RESTART_MS_MAX } from '../../src/host/automatic-restarts.js';
import { openTurnpikeIn, type StorageEnvironment, type Turnpike } from '../../src/host/turnpike.js';
import { Bench } from '../fixtures/bench.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import { proposal } from '../fixtures/tree.js';

const think = () => JSON.stringify(proposal('THINK', {}));
const write = (path: string) => JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${path}`, content: 'x' }));
const auditFailure = expect.objectContaining({ error: expect.objectContaining({ error_code: 'AUDIT_FAILURE' }) });
const unavailable = expect.objectContaining({ code: 'LEDGER_UNAVAILABLE' });

/** Lets every commit on the ledger of a home fail, like a broken disk. */
const BREAK = `CREATE TRIGGER breakage BEFORE INSERT ON blocks BEGIN SELECT RAISE(ABORT, 'broken'); END`;
function exec(home: string, sql: string): void {
  const db = new Database(join(home, 'ledger.db'));
  db.exec(sql);
  db.close();
}

let folder: string;
let sandbox: Sandbox & { close(): void };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-restart-'));
  mkdirSync(join(folder, 'case-local'));
  sandbox = openSandbox({ root: folder });
});
afterEach(() => {
  sandbox.close();
  rmSync(folder, { recursive: true, force: true });
});

const KINDS = {
  'in memory': async () => {
    const state = new LedgerModel();
    const bench = await Bench.open({ store: modelStore(state), sandbox });
    return { bench, broken: (is: boolean) => state.breakCommits(is) };
  },
  'in a home': async () => {
    const bench = await Bench.open();
    const setBroken = (is: boolean) => exec(bench.home, is ? BREAK : 'DROP TRIGGER breakage');
    return { bench, broken: setBroken };
  },
} as const;

describe.each(Object.keys(KINDS) as (keyof typeof KINDS)[])('a ledger %s that could not be written', (kind) => {
  test('D2 D3 D8: continues in the same object: remote runs keep their ids, attached ones are interrupted', async () => {
    const { bench, broken } = await KINDS[kind]();
    const { turnpike } = bench;
    const attached = await turnpike.startAgent({ case: 'case-local' });
    const remote = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
    await remote.submit(write('before.txt'));
    broken(true);
    expect(turnpike.failed).toBe(false);
    expect(await attached.submit(write('never.txt'))).toEqual(auditFailure);
    expect(turnpike.failed).toBe(true);
    await expect(attached.finished).resolves.toMatchObject({ state: 'failed', reason: 'AUDIT_FAILURE' });
    await expect(turnpike.submit(remote.run_id, think())).rejects.toEqual(unavailable);
    broken(false);
    await expect(turnpike.startAgent({ case: 'case-local' })).rejects.toEqual(unavailable);
    expect(await turnpike.restart()).toMatchObject({ trees: 2, interrupted: 1, damaged: 0 });
    expect(turnpike.failed).toBe(false);
    expect(await turnpike.submit(remote.run_id, write('after.txt'))).toMatchObject({ outcome: 'SUCCESS' });
    // The old handle does not work, although the run continues.
    await expect(remote.submit(think())).rejects.toMatchObject({ code: 'RUN_ENDED' });
    await expect(attached.submit(think())).rejects.toMatchObject({ code: 'RUN_ENDED' });
    expect(await turnpike.ledger.run(attached.run_id)).toMatchObject({ status: 'failed' });
    const again = await turnpike.agent(remote.run_id);
    expect(await again?.submit(think())).toMatchObject({ outcome: 'SUCCESS' });
    await again?.end();
    expect(await (await turnpike.startAgent({ case: 'case-local' })).submit(write('new.txt'))).toMatchObject({
      outcome: 'SUCCESS',
    });
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
    expect(await turnpike.replay()).toMatchObject({ ok: true });
    await bench.close();
  });

  test('D2: may fail and restart repeatedly', async () => {
    const { bench, broken } = await KINDS[kind]();
    const { turnpike } = bench;
    const { run_id } = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
    for (let round = 0; round < 3; round += 1) {
      broken(true);
      expect(await (await turnpike.agent(run_id))?.submit(think())).toEqual(auditFailure);
      broken(false);
      await turnpike.restart();
      expect(await turnpike.submit(run_id, think())).toMatchObject({ outcome: 'SUCCESS' });
    }
    expect(await turnpike.replay()).toMatchObject({ ok: true });
    await bench.close();
  });
});

test('D2: the service gets each failure once, and readiness names it until the restart has recovered', async () => {
  const state = new LedgerModel();
  const failures: unknown[] = [];
  const onLedgerFailed = (error: unknown): void => {
    failures.push(error);
    throw new Error('a callback of the service must not stop the engine');
  };
  const bench = await Bench.open({ store: modelStore(state), sandbox, onLedgerFailed });
  const { turnpike } = bench;
  const reasonOf = async (): Promise<string | null | undefined> =>
    (await turnpike.readiness.report()).checks.find(({ name }) => name === 'ledger-write')?.reason;
  expect(await reasonOf()).toBeNull();
  const { run_id } = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
  state.breakCommits(true);
  await (await turnpike.agent(run_id))?.submit(think());
  expect(failures).toEqual([unavailable]);
  expect(await reasonOf()).toBe('a write to the ledger failed: a restart is needed');
  state.breakCommits(false);
  await turnpike.restart();
  expect(failures).toHaveLength(1);
  expect(await reasonOf()).toBeNull();
  expect(turnpike.vitals.condition().state).toBe('running');
  await bench.close();
});

test('D2: the service gets a failure after the callers of promotions and exports', async () => {
  const state = new LedgerModel();
  const events: string[] = [];
  const onLedgerFailed = (): void => void Promise.resolve().then(() => events.push('the service'));
  const bench = await Bench.open({ store: modelStore(state), sandbox, onLedgerFailed, approvals: true });
  const { turnpike } = bench;
  const run = await turnpike.export({
    ...{ actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local' },
    ...{ reason: 'A test.', destination: 'bag' },
  });
  void run.finished.then(({ reason }) => events.push(`the export: ${reason}`));
  const agent = await turnpike.startAgent({ case: 'case-local' });
  state.breakCommits(true);
  await agent.submit(think());
  expect(events).toEqual(['the export: AUDIT_FAILURE', 'the service']);
  state.breakCommits(false);
  await turnpike.restart();
  await bench.close();
});

test('S4-08: runs that ended around a failure have their records after the restart', async () => {
  const state = new LedgerModel();
  const bench = await Bench.open({ store: modelStore(state), sandbox });
  const { turnpike, clock } = bench;
  const attached = await turnpike.startAgent({ case: 'case-local' });
  state.breakCommits(true);
  await attached.submit(think());
  state.breakCommits(false);
  await turnpike.restart();
  const later = await turnpike.startAgent({ case: 'case-local' });
  await later.end();
  clock.advance(1_000);
  await until(() => state.runRecords.trees().length === 2);
  const recorded = state.runRecords.trees().map(({ tree_id }) => tree_id);
  expect(recorded.sort()).toEqual([attached.root_run_id, later.root_run_id].sort());
  await bench.close();
});

test('D15: a head file that could not be written is written after a restart', async () => {
  const state = new LedgerModel();
  const head = memoryHeadStore(state.head);
  let isBroken = false;
  let isOpen = true;
  const externalHeadStore: ExternalHeadStore = {
    ...head,
    write: async (to) => {
      isOpen &&= !isBroken;
      if (!isOpen) throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'no space left' });
      await head.write(to);
    },
    reopen: async () => {
      isOpen = !isBroken;
      await head.reopen();
    },
  };
  const turnpike = await on({ store: modelStore(state), externalHeadStore });
  const { run_id } = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
  isBroken = true;
  await turnpike.submit(run_id, think());
  await until(() => turnpike.failed);
  isBroken = false;
  await turnpike.restart();
  expect(await turnpike.submit(run_id, think())).toMatchObject({ outcome: 'SUCCESS' });
  await turnpike.close();
  expect(await externalHeadStore.read()).toMatchObject({ size: state.head.size, root: state.head.root });
});

describe('automatic restarts', () => {
  async function failing(
    options: { readonly restarts?: 'manual' | 'automatic' } = { restarts: 'automatic' },
    reopenError: Error | null = null,
  ) {
    const state = new LedgerModel();
    const clock = new ManualClock();
    const store = modelStore(state);
    let tries = 0;
    const reopen = () => {
      tries += 1;
      return reopenError === null ? store.reopen() : Promise.reject(reopenError);
    };
    const watched = new Proxy(store, {
      get: (of, name) => (name === 'reopen' ? reopen : bound(Reflect.get(of, name), of)),
    });
    const bench = await Bench.open({ store: watched, sandbox, clock, ...options });
    const agent = await bench.turnpike.startAgent({ case: 'case-local' });
    state.breakCommits(true);
    await agent.submit(think());
    return { bench, clock, state, tries: () => tries };
  }

  test('D2: by default nothing is tried before `restart` is called', async () => {
    const { bench, clock, state, tries } = await failing({});
    state.breakCommits(false);
    clock.advance(10 * RESTART_MS_MAX);
    await turns();
    expect([tries(), bench.turnpike.failed]).toEqual([0, true]);
    await bench.close();
  });

  test('D2: the first try is after a second, then at intervals that double up to a minute, until one succeeds', async () => {
    const { bench, clock, state, tries } = await failing();
    // Nine tries fail: 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60 seconds.
    const waited: number[] = [];
    for (let at = 1; at <= 9; at += 1) {
      const ms = Math.min(RESTART_MS * 2 ** (at - 1), RESTART_MS_MAX);
      clock.advance(ms - 200);
      await turns();
      expect(tries()).toBe(at - 1);
      clock.advance(400);
      await until(() => tries() === at);
      await turns();
      waited.push(ms);
    }
    expect(waited.at(-1)).toBe(RESTART_MS_MAX);
    expect(bench.turnpike.failed).toBe(true);
    state.breakCommits(false);
    clock.advance(RESTART_MS_MAX);
    await until(() => !bench.turnpike.failed);
    expect(await (await bench.turnpike.startAgent({ case: 'case-local' })).submit(think())).toMatchObject({
      outcome: 'SUCCESS',
    });
    await bench.close();
  });

  test('stop when another writer takes the ledger', async () => {
    const { bench, clock, state, tries } = await failing();
    state.loseLock();
    const other = modelStore(state);
    await other.acquire();
    clock.advance(2 * RESTART_MS);
    await until(() => tries() === 1);
    await turns();
    clock.advance(10 * RESTART_MS_MAX);
    await turns();
    expect([tries(), bench.turnpike.failed, clock.timers]).toEqual([1, true, 0]);
    await expect(bench.turnpike.restart()).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    await other.close();
    await bench.close();
  });

  test('stop when a later version has migrated the ledger', async () => {
    const { bench, clock, tries } = await failing(undefined, laterFormatError('the ledger', 2, 1));
    clock.advance(2 * RESTART_MS);
    await until(() => tries() === 1);
    await turns();
    clock.advance(10 * RESTART_MS_MAX);
    await turns();
    expect([tries(), bench.turnpike.failed, clock.timers]).toEqual([1, true, 0]);
    await expect(bench.turnpike.restart()).rejects.toMatchObject({ code: 'LEDGER_UNSUPPORTED' });
    await bench.close().catch(() => undefined);
  });

  test('stop at closing', async () => {
    const { bench, clock, tries } = await failing();
    await bench.close();
    expect(clock.timers).toBe(0);
    clock.advance(10 * RESTART_MS_MAX);
    await turns();
    expect(tries()).toBe(0);
  });
});

test('an engine of the caller replaces the embedded one', async () => {
  const state = new LedgerModel();
  let made = 0;
  const engine: EngineFactory = (parts) => {
    made += 1;
    return embeddedEngine(parts);
  };
  const turnpike = await on({ store: modelStore(state), externalHeadStore: memoryHeadStore(state.head), engine });
  expect(await (await turnpike.startAgent({ case: 'case-local' })).submit(think())).toMatchObject({
    outcome: 'SUCCESS',
  });
  expect(made).toBe(1);
  await turnpike.close();
});

const on = (ground: Omit<StorageEnvironment, 'home'>): Promise<Turnpike> =>
  openTurnpikeIn({ home: null, ...ground }, { store: ground.store, sandbox, log: winstonLog('silent') });

const bound = (value: unknown, to: object): unknown =>
  typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(to) : value;

async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

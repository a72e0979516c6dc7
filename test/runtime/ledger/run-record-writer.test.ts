// The records of a run tree are written after its end (S4-08, S4-43): once, in the background, from its entries.

import { afterEach, expect, test } from '@jest/globals';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { RunRecord } from '../../../src/core/contract/run/run-record.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import { BatchBuilder } from '../../../src/engine/tick/batch-builder.js';
import { LedgerError } from '../../../src/core/errors.js';
import type { Decision } from '../../../src/kernel/decision.js';
import { verifyLedger } from '../../../src/core/ledger/verification/verify-ledger.js';
import type { LedgerStore, TreeEntry } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { RecordBatch, RunRecordTable } from '../../../src/engine/ports/ledger/run-record-table.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { RunRecords } from '../../../src/runtime/ledger/run-records.js';
import {
  CLOSE_MS,
  ENTRIES_PER_STRETCH,
  RECORDS_IN_MEMORY_MAX,
  PAUSE_MS,
  PAUSE_MS_MAX,
  RunRecordWriter,
} from '../../../src/runtime/ledger/run-record-writer.js';
import { Bench } from '../../fixtures/bench.js';
import { sized } from '../../fixtures/campaign.js';
import { all } from '../../fixtures/entries.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { randomTree } from '../../fixtures/random-tree.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { editedPolicy, proposal, TreeDriver } from '../../fixtures/tree.js';

const json = (action: string, args: object): string => JSON.stringify(proposal(action, args));
const settled = async (): Promise<void> => {
  for (let turns = 0; turns < 100; turns += 1) await new Promise((resolve) => setImmediate(resolve));
};

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
function sandbox(): string {
  const folder = tempFolder('run-records');
  folders.push(folder);
  mkdirSync(join(folder, 'case-local'));
  return folder;
}

/** Every run of the tree, from its entries and from its stored records. */
async function bothOf(store: LedgerStore, tree_id: string) {
  const trees = await all(new LedgerReader(store, memoryHeadStore(await store.head())).trees());
  const { runs = [] } = trees.find(({ root_run_id }) => root_run_id === tree_id) ?? {};
  const written = await Promise.all(runs.map(({ run_id }) => store.runRecords.load(tree_id, run_id)));
  return { runs, written };
}

async function expectRecorded(store: LedgerStore, tree_id: string): Promise<readonly RunRecord[]> {
  const { runs, written } = await bothOf(store, tree_id);
  expect(runs.length).toBeGreaterThan(0);
  expect(written).toEqual(runs.map((run) => canonicalJson(run)));
  expect(runs.filter((run) => !isConforming(RunRecord, run))).toEqual([]);
  expect(await store.runRecords.recorded(tree_id)).toBe((await all(store.tree(tree_id))).length);
  expect(await store.runRecords.count(tree_id)).toBe(runs.length);
  return runs;
}

test('S4-08 S4-43 S4-82: after the end of a tree, the record of each of its runs is written, from its entries', async () => {
  const bench = await Bench.open();
  const { store } = openHome(homePaths(bench.home), { readOnly: true });
  bench.put('a.txt', 'old');
  const agent = await bench.turnpike.startAgent();
  await agent.respond(json('WRITE_FILE', { path: '/sandbox/a.txt', content: 'new' }));
  await agent.respond(json('DELETE_FILE', { path: '/sandbox/a.sh' }));
  await agent.respond(json('READ_FILE', { path: '/sandbox/none.txt' }));
  await agent.respond(json('FINISH', { response: 'done' }));
  await settled();
  // Not at once: a process that ends many trees writes their records in batches.
  expect(await store.runRecords.recorded(agent.root_run_id)).toBeNull();
  bench.clock.advance(PAUSE_MS);
  await settled();
  const runs = await expectRecorded(store, agent.root_run_id);
  expect(runs.map(({ run_kind, status }) => [run_kind, status])).toEqual([
    ['orchestrator', 'completed'],
    ['agent', 'completed'],
    ['tool_gateway', 'completed'],
    ['db_write', 'completed'],
    ['tool_gateway', 'denied'],
    ['tool_gateway', 'failed'],
  ]);
  const [orchestrator] = runs;
  for (const { schema_version, policy_versions, contract_version } of runs) {
    expect({ schema_version, contract_version }).toEqual({ schema_version: '1.1.0', contract_version: 'v1' });
    expect(policy_versions).toEqual(orchestrator!.policy_versions);
  }
  expect(runs[3]!.outputs.artifact_refs).toHaveLength(1);
  for (const run of runs) expect(await bench.turnpike.ledger.run(run.run_id)).toEqual(run);
  await store.close();
  await bench.close();
});

test('S4-43: the tree of a session is recorded when the session has ended: all activations, and no run with its own id', async () => {
  const bench = await Bench.open();
  const { store } = openHome(homePaths(bench.home), { readOnly: true });
  const { sessions } = bench.turnpike;
  const tasks = [{ id: 't1', title: 'First', instruction: 'Write a.md.' }];
  const spec = { spec_version: 1 as const, id: 'spec-a', title: 'A file', phases: [{ id: 'p1', title: 'One', tasks }] };
  const by = { actor: 'anna', role: 'maintainer' };
  const started = await sessions.start({ spec, case: 'case-local', by, stopOnPhaseCompletion: false });
  const id = started.data!.session_id;
  const runner = { actor: 'agent', role: 'autonomy_runner' };
  const { step_id, type, step_proof, task_id } = (await sessions.next(id, {}, runner)).data!.next_step!;
  expect(await bench.turnpike.ledger.run(`${id}.1`)).toMatchObject({ status: 'running' });
  const report = { step_id, step_type: type, outcome: 'success', step_proof, task_id };
  const answer = await sessions.next(id, { last_step_result: report }, runner);
  expect(answer.data).toMatchObject({ status: 'completed' });
  bench.clock.advance(PAUSE_MS);
  await settled();
  const runs = await expectRecorded(store, id);
  expect(runs.map(({ run_id, run_kind, status }) => [run_id, run_kind, status])).toEqual([
    [`${id}.1`, 'orchestrator', 'completed'],
    [`${id}.1.1`, 'agent', 'completed'],
  ]);
  await store.close();
  await bench.close();
});

test('S4-08: the record of a live run can be derived at any time, and nothing of its tree is written', async () => {
  const state = new LedgerModel();
  const store = modelStore(state);
  const bench = await Bench.open({ store, sandbox: sandbox() });
  const agent = await bench.turnpike.startAgent();
  const other = await bench.turnpike.startAgent();
  expect(await bench.turnpike.ledger.run(agent.run_id)).toMatchObject({ status: 'running' });
  await agent.respond(json('READ_FILE', { path: '/sandbox/none.txt' }));
  await other.end();
  bench.clock.advance(PAUSE_MS);
  await settled();
  expect(await all(store.runRecords.trees())).toMatchObject([{ tree_id: other.root_run_id }]);
  expect(await store.runRecords.count(agent.root_run_id)).toBe(0);
  expect(await bench.turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ status: 'failed' });
  await bench.close();
  const again = modelStore(state);
  await expectRecorded(again, agent.root_run_id);
  await expectRecorded(again, other.root_run_id);
});

test('S4-43: the next opening writes what a crash left unwritten, also for trees that only recovery ends', async () => {
  const state = new LedgerModel();
  const folder = sandbox();
  const store = modelStore(state);
  const first = await Bench.open({ store, sandbox: folder });
  const ended = await first.turnpike.startAgent();
  await ended.end();
  const left = await first.turnpike.startAgent();
  left.finished.catch(() => undefined);
  await settled();
  expect(await all(store.runRecords.trees())).toEqual([]);
  // A crash: the process is gone without a close.
  state.loseLock();
  const second = await Bench.open({ store: modelStore(state), sandbox: folder });
  expect(second.turnpike.recovery).toMatchObject({ interrupted: 1 });
  await settled();
  const reader = modelStore(state);
  await expectRecorded(reader, ended.root_run_id);
  const [, agent] = await expectRecorded(reader, left.root_run_id);
  expect(agent).toMatchObject({ status: 'failed', error: { error_code: 'INTERRUPTED' } });
  await second.close();
});

test('S4-24 S4-70: entries after the end of a tree do not change the stored records, and are read with them', async () => {
  const state = new LedgerModel();
  const unsure = {
    gather: () => ({ paths: [{ status: 'absent' as const }], usage: { bytes: 0, files: 0 } }),
    perform: () => ({ status: 'unknown' as const }),
    settle: () => ({ status: 'unknown' as const }),
  };
  const bench = await Bench.open({ store: modelStore(state), sandbox: unsure });
  const agent = await bench.turnpike.startAgent();
  await agent.respond(json('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));
  await agent.end();
  bench.clock.advance(PAUSE_MS);
  await settled();
  const reader = modelStore(state);
  const { runs, written } = await bothOf(reader, agent.root_run_id);
  const unknown = runs.find(({ error }) => error?.error_code === 'OUTCOME_UNKNOWN')!;
  const leaf = runs.at(-1)!;
  expect(unknown).toBeDefined();
  const resolution = { outcome: 'done', actor: 'operator-1', role: 'OPERATOR' } as const;
  await bench.turnpike.resolve({ ...resolution, run: leaf.run_id });
  const after = await bench.turnpike.ledger.run(leaf.run_id);
  expect(after!.audit.audit_event_ids.slice(0, -1)).toEqual(leaf.audit.audit_event_ids);
  expect(after!.audit.audit_event_ids).toHaveLength(leaf.audit.audit_event_ids.length + 1);
  expect((await bothOf(reader, agent.root_run_id)).written).toEqual(written);
  expect(await bench.turnpike.ledger.verify()).toMatchObject({ ok: true });
  await bench.close();
});

/** Puts a tree into the store like an engine, with its end if it has ended. */
async function commit(store: LedgerStore, epoch: number, driver: TreeDriver, isSaidToEnd = false): Promise<void> {
  const batch = new BatchBuilder();
  const { tree_id } = driver;
  const hasEnded =
    isSaidToEnd || driver.decisions.some(({ ended }: Decision) => ended.some(({ run_id }) => run_id === tree_id));
  const nothing = { inputs: [], recoveryHint: null, snapshot: null };
  const [opening] = driver.inputs.map(({ recorded }) => recorded);
  const case_id = opening?.kind === 'open' ? opening.case_id : null;
  batch.add({ tree_id, decisions: driver.decisions, ...nothing, opened: { case_id }, ended: hasEnded });
  await store.commit(batch.build(epoch));
}

const messages: string[] = [];
afterEach(() => void messages.splice(0));
const log = {
  info: () => undefined,
  warn: (message: string) => void messages.push(`warn: ${message}`),
  error: (message: string) => void messages.push(`error: ${message}`),
};

function writerOn(store: LedgerStore, clock = new ManualClock()): RunRecordWriter {
  return new RunRecordWriter({ store, clock, log, defer: (task) => void setImmediate(task) });
}

/** The findings of a verification about the records; the marks of these trees were not committed. */
async function recordProblems(store: LedgerStore) {
  const verdict = await new LedgerReader(store, memoryHeadStore(await store.head())).verify();
  return verdict.ok ? [] : verdict.problems.filter(({ rule }) => !rule.startsWith('mark.'));
}

/** A store with one tree, all of whose ended runs can be recorded. */
async function recordedStore(driver: TreeDriver, store: LedgerStore = memoryStore()): Promise<LedgerStore> {
  await commit(store, await store.acquire(), driver);
  const writer = writerOn(store);
  writer.open();
  await writer.close();
  return store;
}

/** The number of random trees to record. */
const RANDOM_TREES = sized(30, 100);

test(`S4-01 S4-02 S4-08: all ended trees of ${RANDOM_TREES} random ones are recorded, and verification succeeds`, async () => {
  let ended = 0;
  for (let seed = 7_001; seed <= 7_000 + RANDOM_TREES; seed += 1) {
    const driver = randomTree(seed, { close: seed % 3 > 0 });
    const store = await recordedStore(driver);
    if (Object.hasOwn(driver.endings, driver.tree_id)) {
      await expectRecorded(store, driver.tree_id);
      ended += 1;
    } else expect(await all(store.runRecords.trees())).toEqual([]);
    expect(await recordProblems(store)).toEqual([]);
  }
  expect(ended).toBeGreaterThan(0.6 * RANDOM_TREES);
  expect(messages).toEqual([]);
});

/** Observes saves, and can be made to fail. */
class Watched extends FaultyStore {
  readonly saved: RecordBatch[] = [];
  loads = 0;
  /** Results of the next saves, returned in place of saving. */
  answers: (boolean | Error)[] = [];
  /** A tree whose entries cannot be parsed. */
  broken: string | null = null;
  /** Saves wait for this promise. */
  gate: Promise<unknown> = Promise.resolve();
  looks = 0;
  /** The number of trees whose reading has started, and a hook at the first of them. */
  reads = 0;
  reading: () => void = () => undefined;

  override get runRecords(): RunRecordTable {
    const { runRecords } = this.inner;
    return {
      unrecorded: () => {
        this.looks += 1;
        return runRecords.unrecorded();
      },
      save: async (batch) => {
        await this.gate;
        const answer = this.answers.shift() ?? true;
        if (answer instanceof Error) throw answer;
        if (!answer) return false;
        this.saved.push(batch);
        return runRecords.save(batch);
      },
      trees: () => runRecords.trees(),
      recorded: (tree_id) => runRecords.recorded(tree_id),
      load: (tree_id, run_id) => {
        this.loads += 1;
        return runRecords.load(tree_id, run_id);
      },
      count: (tree_id) => runRecords.count(tree_id),
    };
  }

  override tree = (tree_id: string, fromSeq?: number) => {
    this.reads += 1;
    this.reading();
    this.reading = () => undefined;
    const entries = this.inner.tree(tree_id, fromSeq);
    return tree_id === this.broken ? torn(entries) : entries;
  };
}

async function* torn(entries: AsyncIterable<TreeEntry>): AsyncIterable<TreeEntry> {
  for await (const entry of entries) yield { ...entry, text: entry.seq === 3 ? '{}' : entry.text };
}

const RUNS = 2 * RECORDS_IN_MEMORY_MAX + 40;
const PATIENT = editedPolicy({ actions: [['denials_per_run_max: 10', `denials_per_run_max: ${RUNS + 1}`]] });

test('S4-43: only some records of a tree of many runs are in memory, and each is written completely', async () => {
  const driver = new TreeDriver({ policies: PATIENT }).ready();
  const early = `${driver.tree_id}.1.1.1`;
  driver.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
  driver.result(early, { status: 'unknown' });
  for (let run = 0; run < RUNS; run += 1) driver.act('DELETE_FILE', { path: '/sandbox/a.sh' });
  // An event of a run that ended long ago.
  const actor = { actor_type: 'human', actor_id: 'operator-1' } as const;
  driver.send({ kind: 'resolve', run_id: early, outcome: 'done', actor, role_id: 'OPERATOR', note: 'Looked.' });
  driver.cancel();
  const store = new Watched(memoryStore());
  await recordedStore(driver, store);
  expect(await expectRecorded(store, driver.tree_id)).toHaveLength(RUNS + 4);
  expect(store.saved.length).toBeGreaterThan(2);
  for (const { records } of store.saved) expect(records.length).toBeLessThanOrEqual(RECORDS_IN_MEMORY_MAX);
  const texts = store.saved.flatMap(({ records }) => records.filter(({ run_id }) => run_id === early));
  expect(new Set(texts.map(({ text }) => text)).size).toBe(2);
  // No reader takes the first records for all of them before the tree is recorded.
  expect(store.saved.slice(0, -1).flatMap(({ trees }) => trees)).toEqual([]);
  expect(await recordProblems(store)).toEqual([]);
  const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
  expect(await reader.run(early)).toMatchObject({ status: 'failed', error: { error_code: 'OUTCOME_UNKNOWN' } });
  // Verification does not keep more than the live runs in memory either.
  let most = 0;
  class Counted extends RunRecords {
    override fold(entry: Entry): void {
      super.fold(entry);
      most = Math.max(most, this.size);
    }
  }
  const verified = (table: RunRecordTable) =>
    verifyLedger(
      {
        log: (from) => store.log(from),
        artifactsOf: (place) => store.artifactsOf(place),
        head: () => store.head(),
        externalHead: null,
        records: { table, newFold: () => new Counted() },
      },
      { complete: false },
    );
  expect(await verified(store.runRecords)).toMatchObject({ ok: true });
  expect(most).toBeGreaterThan(2);
  expect(most).toBeLessThan(8);
  // A stale record is found, although it was dropped from memory: it lacks the later event of its run.
  const [before] = texts;
  const table = store.runRecords;
  const outdated: RunRecordTable = {
    ...table,
    load: (tree_id, run_id) => (run_id === early ? Promise.resolve(before!.text) : table.load(tree_id, run_id)),
  };
  const problems = [expect.objectContaining({ rule: 'record.differs' })];
  expect(await verified(outdated)).toMatchObject({ ok: false, problems });
});

/** A store in which `count` trees have ended, left by an earlier process. */
async function unrecordedStore(count: number): Promise<{ readonly store: Watched; readonly trees: readonly string[] }> {
  const store = new Watched(memoryStore());
  const epoch = await store.acquire();
  const trees = Array.from({ length: count }, (_, n) => `run_${String(n).padStart(21, '0')}`);
  for (const tree_id of trees) {
    const driver = new TreeDriver({ tree_id }).ready();
    driver.cancel();
    await commit(store, epoch, driver);
  }
  return { store, trees };
}
const recordedIn = async (store: LedgerStore): Promise<readonly string[]> =>
  (await all(store.runRecords.trees())).map(({ tree_id }) => tree_id);

test('the trees of an old home are recorded in stretches, with pauses; closing records the rest without pauses', async () => {
  const { store, trees } = await unrecordedStore(200);
  const entries = (await store.head()).size / trees.length;
  const clock = new ManualClock();
  const writer = writerOn(store, clock);
  writer.open();
  for (let stretch = 1; stretch <= 3; stretch += 1) {
    await settled();
    const read = Math.ceil((stretch * ENTRIES_PER_STRETCH) / entries);
    expect(store.reads).toBe(read);
    expect((await recordedIn(store)).length).toBeLessThanOrEqual(read);
    clock.advance(PAUSE_MS - 10);
    await settled();
    expect(store.reads).toBe(read);
    expect(clock.timers).toBe(1);
    clock.advance(10);
  }
  expect(await recordedIn(store)).not.toEqual([]);
  await writer.close();
  expect(await recordedIn(store)).toEqual(trees);
  expect(clock.timers).toBe(0);
  expect(messages).toEqual([]);
});

test('in a busy process it pauses longer, up to a second', async () => {
  const { store } = await unrecordedStore(200);
  const clock = new ManualClock();
  // Other work takes ten seconds or ten milliseconds in the meantime.
  for (const [others, pause] of [
    [10_000, PAUSE_MS_MAX],
    [10, 300],
  ] as const) {
    const before = store.reads;
    store.reading = () => clock.advance(others);
    const writer = writerOn(store, clock);
    writer.open();
    await settled();
    store.reading = () => undefined;
    const stretch = store.reads;
    expect(stretch).toBeGreaterThan(before);
    clock.advance(pause - 20);
    await settled();
    expect(store.reads).toBe(stretch);
    clock.advance(pause);
    await settled();
    expect(store.reads).toBeGreaterThan(stretch);
    writer.stop();
  }
});

test('however many trees end while it is busy, it looks for them once more', async () => {
  const { store, trees } = await unrecordedStore(1);
  let open = (): void => undefined;
  store.gate = new Promise<void>((resolve) => (open = resolve));
  const clock = new ManualClock();
  const writer = writerOn(store, clock);
  writer.open();
  for (let ends = 0; ends < 5; ends += 1) {
    writer.onTreeEnded();
    clock.advance(2 * PAUSE_MS);
    await settled();
  }
  expect(store.looks).toBe(1);
  open();
  await settled();
  expect(store.looks).toBe(2);
  expect(await recordedIn(store)).toEqual(trees);
  writer.onTreeEnded();
  clock.advance(2 * PAUSE_MS);
  await settled();
  expect(store.looks).toBe(3);
  await writer.close();
});

test('S4-70: recorded trees are not recorded again by the next opening', async () => {
  const { store, trees } = await unrecordedStore(3);
  for (let opening = 1; opening <= 2; opening += 1) {
    const writer = writerOn(store);
    writer.open();
    await writer.close();
    expect(store.saved).toHaveLength(1);
  }
  expect(await recordedIn(store)).toEqual(trees);
});

test('a failed write is logged, blocks no work, and is repeated with the next tree that ends', async () => {
  const store = new Watched(memoryStore());
  const bench = await Bench.open({ store, sandbox: sandbox(), log });
  const first = await bench.turnpike.startAgent();
  await first.end();
  store.answers = [new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'the test broke this' })];
  bench.clock.advance(PAUSE_MS);
  await settled();
  expect(messages).toEqual(['warn: run records could not be written now; they can be derived at any time']);
  expect(await recordedIn(store)).toEqual([]);
  expect(await bench.turnpike.ledger.run(first.run_id)).toMatchObject({ status: 'completed' });
  const second = await bench.turnpike.startAgent();
  expect(await second.submit(json('THINK', {}))).toMatchObject({ outcome: 'SUCCESS' });
  await second.end();
  bench.clock.advance(PAUSE_MS);
  await settled();
  expect(await recordedIn(store)).toEqual([first.root_run_id, second.root_run_id]);
  expect(messages).toHaveLength(1);
  await bench.close();
});

test('while another transaction is open it retries, a limited number of times', async () => {
  const { store, trees } = await unrecordedStore(1);
  store.answers = [false, false];
  const writer = writerOn(store);
  writer.open();
  await settled();
  expect(await recordedIn(store)).toEqual(trees);
  const other = await unrecordedStore(1);
  other.store.answers = Array<boolean>(200).fill(false);
  const late = writerOn(other.store);
  late.open();
  await settled();
  await settled();
  expect(messages).toEqual(['warn: run records could not be written now; they can be derived at any time']);
  expect(other.store.answers).toHaveLength(100);
});

test('a tree that cannot be folded is set aside, and the others are recorded', async () => {
  const { store, trees } = await unrecordedStore(3);
  store.broken = trees[1]!;
  const writer = writerOn(store);
  writer.open();
  await writer.close();
  expect(messages).toEqual(['error: the records of a run tree cannot be derived']);
  expect(await all(store.runRecords.trees())).toMatchObject([
    { tree_id: trees[0], seq: expect.any(Number) },
    { tree_id: trees[1], seq: 0 },
    { tree_id: trees[2], seq: expect.any(Number) },
  ]);
  expect(await store.runRecords.count(trees[1]!)).toBe(0);
  store.broken = null;
  const reader = new LedgerReader(store, memoryHeadStore(await store.head()));
  expect(await reader.run(trees[1]!)).toMatchObject({ status: 'cancelled' });
  expect(await recordProblems(store)).toEqual([]);
});

test('S4-43: a tree that is declared ended but has a live run is not recorded', async () => {
  const store = memoryStore();
  await commit(store, await store.acquire(), new TreeDriver().ready(), true);
  const writer = writerOn(store);
  writer.open();
  await writer.close();
  expect(messages).toEqual(['error: the records of a run tree cannot be derived']);
  expect(await all(store.runRecords.trees())).toMatchObject([{ seq: 0 }]);
});

test('closing has a timeout', async () => {
  const { store } = await unrecordedStore(1);
  store.gate = new Promise(() => undefined);
  const clock = new ManualClock();
  const writer = writerOn(store, clock);
  writer.open();
  await settled();
  let closed = false;
  const closing = writer.close().then(() => (closed = true));
  await settled();
  expect(closed).toBe(false);
  clock.advance(CLOSE_MS);
  await closing;
  expect(clock.timers).toBe(0);
});

test('D2: after a failed write of the ledger nothing is tried any more', async () => {
  const store = new Watched(memoryStore());
  const bench = await Bench.open({ store, sandbox: sandbox(), log });
  const agent = await bench.turnpike.startAgent();
  await agent.end();
  const last = await bench.turnpike.startAgent();
  last.finished.catch(() => undefined);
  store.breakage = 'fails, not written';
  await last.submit(json('THINK', {})).catch(() => undefined);
  bench.clock.advance(PAUSE_MS);
  await settled();
  await bench.turnpike.close();
  expect(store.saved).toEqual([]);
  expect(messages.filter((line) => line.includes('run records'))).toEqual([]);
});

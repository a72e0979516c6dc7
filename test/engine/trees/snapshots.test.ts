// D16: a snapshot changes how long it takes to load a tree, and nothing else.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { Batch, LedgerStore, StoredSnapshot } from '../../../src/engine/ports/ledger/ledger-store.js';
import { keyFolder } from '../../../src/home/home-paths.js';
import { openTurnpikeIn, type Turnpike } from '../../../src/host/turnpike.js';
import { countedIds } from '../../fixtures/bench.js';
import { sized } from '../../fixtures/campaign.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { random } from '../../fixtures/random.js';
import { FaultyStore } from '../../fixtures/faulty-store.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

const STEPS = 40;
const EVERY = 16;

let folder: string;
beforeEach(() => {
  folder = tempFolder('snapshots');
  for (const part of ['sandbox', 'keys']) mkdirSync(join(folder, part), { mode: 0o700 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Counts the entries that are read to fold trees, and records where snapshots were taken. */
class CountingStore extends FaultyStore {
  read = 0;
  readonly saved: number[] = [];
  override before = ({ trees }: Batch): void => {
    for (const { snapshot } of trees) if (snapshot !== null) this.saved.push(snapshot.seq);
  };
  override tree = (tree_id: string, fromSeq?: number) => this.#counted(this.inner.tree(tree_id, fromSeq));
  override histories: LedgerStore['histories'] = (places) => this.#counted(this.inner.histories(places));

  async *#counted<Read>(reads: AsyncIterable<Read>): AsyncGenerator<Read> {
    for await (const read of reads) {
      this.read += 1;
      yield read;
    }
  }
}

const open = async (store: LedgerStore, snapshotEntries = EVERY, liveTreesMax = 1_024): Promise<Turnpike> =>
  openTurnpikeIn(
    {
      home: null,
      keys: keyFolder(join(folder, 'keys')),
      store,
      externalHeadStore: memoryHeadStore(await store.head()),
      snapshotEntries,
    },
    {
      ...{ store, sandbox: join(folder, 'sandbox'), clock: new ManualClock(), ids: countedIds() },
      ...{ log: winstonLog('silent'), liveTreesMax },
    },
  );

/** A remote agent that outlives its callers: one process proposes and ends, and the next one continues. */
async function runLongTree(store: () => LedgerStore, between: () => void, snapshotEntries = EVERY): Promise<string[]> {
  const first = await open(store(), snapshotEntries);
  const { run_id } = await first.startAgent({ case: 'case-local', link: 'remote' });
  const responses: string[] = [];
  const propose = async (turnpike: Turnpike): Promise<void> => {
    for (const action of ['THINK', 'LIST_FILES', 'READ_FILE'] as const) {
      const args = action === 'THINK' ? {} : { path: action === 'LIST_FILES' ? '/sandbox/' : '/sandbox/none.txt' };
      responses.push(JSON.stringify(await turnpike.submit(run_id, JSON.stringify(proposal(action, args)))));
    }
  };
  for (let step = 0; step < STEPS; step += 3) await propose(first);
  await first.close();
  between();
  const second = await open(store(), snapshotEntries);
  await propose(second);
  expect(await second.ledger.verify()).toMatchObject({ ok: true });
  expect(await second.replay()).toMatchObject({ ok: true, difference: null });
  await second.close();
  return responses;
}

const outcomes = (responses: readonly string[]): string[] =>
  responses.map((response) => (JSON.parse(response) as { readonly outcome: string }).outcome);

test('D16: a long tree is loaded from its last snapshot, and continues as it would have', async () => {
  const state = new LedgerModel();
  let last = new CountingStore(modelStore(state));
  const store = (): LedgerStore => (last = new CountingStore(modelStore(state)));
  const with16 = await runLongTree(store, () => undefined);
  const [snapshot] = state.snapshots.values();
  expect(snapshot?.seq).toBeGreaterThan(state.head.size - 2 * EVERY - 30);
  // Replay and verification read all entries; folding read the few after the snapshot.
  const replayed = state.head.size;
  expect(last.read).toBeLessThan(2 * replayed);
  const without = await runLongTree(
    () => modelStore(other),
    () => undefined,
    Infinity,
  );
  expect(other.snapshots.size).toBe(0);
  expect(outcomes(with16)).toEqual(outcomes(without));
});
const other = new LedgerModel();

test('D16: loading a tree reads the entries after its snapshot; the next snapshot follows at the same distance', async () => {
  const state = new LedgerModel();
  const stores: CountingStore[] = [];
  const upTo: number[] = [];
  for (const opening of [1, 2]) {
    const store = new CountingStore(modelStore(state));
    stores.push(store);
    const turnpike = await open(store);
    upTo.push(store.read);
    const run_id =
      opening === 1 ? (await turnpike.startAgent({ case: 'case-local', link: 'remote' })).run_id : agentOf(state);
    for (let step = 0; step < STEPS; step += 1) {
      await turnpike.submit(run_id, JSON.stringify(proposal('LIST_FILES', { path: '/sandbox/' })));
    }
    await turnpike.close();
  }
  // One step may have more entries than are left until the next snapshot.
  expect(state.head.size).toBeGreaterThan(20 * EVERY);
  expect(upTo[1]).toBeLessThan(3 * EVERY);
  const saved = stores.flatMap((store) => store.saved);
  expect(saved.length).toBeGreaterThan(10);
  const apart = saved.map((seq, place) => seq - (saved[place - 1] ?? 0));
  expect(Math.min(...apart)).toBeGreaterThanOrEqual(EVERY);
});
const agentOf = (state: LedgerModel): string => `${[...state.snapshots.keys()][0] ?? ''}.1`;

const BAD: Readonly<Record<string, (snapshot: StoredSnapshot) => StoredSnapshot>> = {
  'without its MAC': (snapshot) => ({ ...snapshot, mac: '' }),
  'whose text does not match its MAC': (snapshot) => ({
    ...snapshot,
    text: snapshot.text.replace('"steps":', '"steps":9'),
  }),
  'that is not JSON': (snapshot) => sealed(snapshot, 'half of a'),
  'of another entry': (snapshot) => ({ ...snapshot, seq: snapshot.seq - 1 }),
  'that names another position than its own': (snapshot) =>
    sealed(snapshot, snapshot.text.replace(`"seq":${snapshot.seq}`, `"seq":${snapshot.seq - 1}`)),
  'of another tree': (snapshot) =>
    sealed(snapshot, snapshot.text.replace(`"tree_id":"${snapshot.tree_id}"`, '"tree_id":"run_another"')),
  'of another history': (snapshot) =>
    sealed(snapshot, snapshot.text.replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${'f'.repeat(64)}"`)),
  'ahead of the ledger': (snapshot) => ({
    ...sealed(snapshot, snapshot.text.replace(`"seq":${snapshot.seq}`, '"seq":9999')),
    seq: 9_999,
  }),
};
/** As one can who writes the database, and has no key. */
const sealed = (snapshot: StoredSnapshot, text: string): StoredSnapshot => ({ ...snapshot, text, mac: sha256(text) });

test.each(Object.keys(BAD))('D16: a snapshot %s is ignored: the tree is folded from its first entry', async (name) => {
  const state = new LedgerModel();
  const spoil = (): void => {
    for (const [tree_id, snapshot] of state.snapshots) state.snapshots.set(tree_id, BAD[name]!(snapshot));
  };
  const responses = await runLongTree(() => modelStore(state), spoil);
  expect(outcomes(responses).slice(-3)).toEqual(['SUCCESS', 'SUCCESS', 'EXECUTION_ERROR']);
});

test('D16: the SQLite store stores them, one per tree', async () => {
  const at = { file: join(folder, 'ledger.db'), artifactsDir: join(folder, 'artifacts') };
  await createSqliteStore(at).close();
  const responses = await runLongTree(
    () => openSqliteStore(at),
    () => undefined,
  );
  expect(outcomes(responses).slice(-3)).toEqual(['SUCCESS', 'SUCCESS', 'EXECUTION_ERROR']);
  const store = openSqliteStore({ ...at, readOnly: true });
  let tree: { readonly tree_id: string } | null = null;
  for await (const each of store.trees()) tree = each;
  const snapshot = await store.snapshots.load(tree?.tree_id ?? '');
  expect(snapshot?.mac).toMatch(/^[0-9a-f]{64}$/);
  await store.close();
});

// An attacker who can write the database tries to give a run what its ledger does not have.

/** Every place of a value in a JSON text, as its path. */
function* leavesOf(value: unknown, path: readonly (string | number)[] = []): Generator<readonly (string | number)[]> {
  if (typeof value !== 'object' || value === null) yield path;
  else for (const [key, inner] of Object.entries(value)) yield* leavesOf(inner, [...path, key]);
}

/** The text with one value changed. */
function withChange(text: string, draw: () => number): string {
  const root = JSON.parse(text) as Record<string, unknown>;
  const leaves = [...leavesOf(root)].filter(([first]) => !['tree_id', 'seq', 'prev'].includes(String(first)));
  const path = leaves[Math.floor(draw() * leaves.length)] ?? [];
  const parent = path
    .slice(0, -1)
    .reduce<Record<string, unknown>>((at, key) => at[key] as Record<string, unknown>, root);
  const key = path.at(-1) ?? '';
  const value = parent[key];
  if (typeof value === 'number') parent[key] = value + 1;
  else if (typeof value === 'boolean') parent[key] = !value;
  else parent[key] = typeof value === 'string' ? `${value}1` : 1;
  return JSON.stringify(root);
}

const FORGERIES = sized(6, 100);

/** A store, and how one who writes its database changes the rows of snapshots. */
interface ForgedStore {
  open(): LedgerStore;
  forge(change: (snapshot: StoredSnapshot) => StoredSnapshot): void;
}

function memoryPlace(): ForgedStore {
  const state = new LedgerModel();
  return {
    open: () => modelStore(state),
    forge: (change) => {
      for (const [tree_id, snapshot] of state.snapshots) state.snapshots.set(tree_id, change(snapshot));
    },
  };
}

function sqlitePlace(number: number): ForgedStore {
  const at = {
    file: join(folder, `forged-${number}.db`),
    artifactsDir: join(folder, `artifacts-${number}`),
    caseKeysDir: join(folder, `keys-${number}`),
  };
  void createSqliteStore(at).close();
  return {
    open: () => openSqliteStore(at),
    forge: (change) => {
      const db = new Database(at.file);
      for (const row of db.prepare('SELECT tree_id, seq, text, mac FROM snapshots').all()) {
        const { tree_id, seq, text, mac } = change(row as StoredSnapshot);
        db.prepare('UPDATE snapshots SET seq = ?, text = ?, mac = ? WHERE tree_id = ?').run(seq, text, mac, tree_id);
      }
      db.close();
    },
  };
}

test.each([
  ['memory', memoryPlace],
  ['SQLite', sqlitePlace],
] as const)(
  'D16: no forged row of a snapshot changes a decision, at a start and while the gate runs, %s',
  async (_kind, place) => {
    const draw = random(16);
    for (let forgery = 0; forgery < FORGERIES; forgery += 1) {
      const forged = place(forgery);
      let older: StoredSnapshot | null = null;
      const change = (snapshot: StoredSnapshot): StoredSnapshot => {
        const kept = (older ??= snapshot);
        // An older row that was valid, or one with another value and a hash of its own.
        return forgery % 4 === 0 ? kept : sealed(snapshot, withChange(snapshot.text, draw));
      };
      // Every other gate has no tree in memory, so that it restores one for each step.
      const liveTreesMax = forgery % 2 === 0 ? 0 : 1_024;
      const list = (turnpike: Turnpike, run_id: string) =>
        turnpike.submit(run_id, JSON.stringify(proposal('LIST_FILES', { path: '/sandbox/' })));
      const turnpike = await open(forged.open(), EVERY, liveTreesMax);
      const { run_id } = await turnpike.startAgent({ link: 'remote', case: 'case-local' });
      for (let step = 0; step < STEPS / 2; step += 1) {
        expect(await list(turnpike, run_id)).toMatchObject({ outcome: 'SUCCESS' });
        if (step > STEPS / 4) forged.forge(change);
      }
      await turnpike.close();
      forged.forge(change);
      const next = await open(forged.open(), EVERY, liveTreesMax);
      expect(await list(next, run_id)).toMatchObject({ outcome: 'SUCCESS' });
      // The replay folds the entries alone.
      expect(await next.replay()).toMatchObject({ ok: true });
      await next.close();
    }
  },
  600_000,
);

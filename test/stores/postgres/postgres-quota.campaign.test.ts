// The quota of one case, with three workers that change its sandbox at once (C82).

import { afterAll, describe, expect, test } from '@jest/globals';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/index.js';
import { openSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { artifactRef, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import type { TreeEngine } from '../../../src/engine/tree-engine.js';
import type { SharedBatch, SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { FaultySharedStore } from '../../fixtures/faulty-shared-store.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { editedPolicy, proposal } from '../../fixtures/tree.js';
import { Random } from '../../simulation/random.js';
import { start } from '../../engine/start-tree.js';
import { ledgerPlace, startWorker } from './postgres-harness.js';
import { LOCAL_EFFECTS } from '../../fixtures/local-effects.js';

const BYTES_MAX = 1_000;
const FILES_MAX = 12;
const WORKERS = 3;
const TREES = 9;
const ROUNDS = 30;
/** More than enough for a fault to show. */
const PLANTED_ROUNDS = 400;
const CASE = 'case-1';

const POLICY = editedPolicy({
  actions: [
    ['  bytes_max: 104857600', `  bytes_max: ${BYTES_MAX}`],
    ['  files_max: 10000', `  files_max: ${FILES_MAX}`],
    ['denials_per_run_max: 10 ', 'denials_per_run_max: 1000 '],
  ],
});

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

/** Workers of one ledger, each with its own view of one sandbox. */
class Hammer {
  readonly #root = tempFolder('quota-sandbox');
  readonly #engines: TreeEngine[] = [];
  readonly #stores: SharedLedgerStore[] = [];
  /** Resolved by the reply to an input. */
  readonly #random = new Random('quota');
  #inputs = 0;

  async open(url: string, plant: (store: SharedLedgerStore) => SharedLedgerStore) {
    const place = ledgerPlace(url);
    await (await createPostgresStore(place)).close();
    for (let worker = 0; worker < WORKERS; worker += 1) {
      const store = plant(await openPostgresStore(place));
      const sandbox = openSandbox({ root: this.#root });
      const { engine } = await startWorker(store, {
        clock: systemClock(),
        effects: {
          ...LOCAL_EFFECTS,
          gather: (request) => sandbox.gather(request),
          // Not at once: other workers decide meanwhile.
          run: (effect, inCommit) =>
            inCommit ? sandbox.perform(effect) : turns(3).then(() => this.#measured(sandbox.perform(effect))),
          settle: (effect) => sandbox.settle(effect),
          forgetUsage: (case_id) => sandbox.forget(case_id),
        },
      });
      this.#engines.push(engine);
      this.#stores.push(store);
    }
    return place;
  }

  start = (tree: string): Promise<void> =>
    start({ engine: this.#engine() }, tree, { link: 'remote', idle_ms: null }, POLICY);

  /** @returns whether the action succeeded */
  async act(tree: string, action: string, args: object): Promise<boolean> {
    const bytes = Buffer.from(JSON.stringify(proposal(action, args)));
    const artifact: Artifact = { kind: 'raw_payload', case_id: CASE, bytes };
    const input_id = `input-${(this.#inputs += 1)}`;
    const input = {
      kind: 'proposal',
      run_id: `${tree}.1`,
      input_id,
      payload: artifactRef(artifact),
      tokens: null,
    } as const;
    const submission = { input, materials: [artifact], rememberInputId: true, expectsResponse: true } as const;
    const { refused, response } = await this.#engine().submit(tree, submission);
    if (refused) throw new Error(`${tree} refused ${input_id}`);
    return (await response)?.includes('SUCCESS') === true;
  }

  /** Every tree changes some file, all at once and at any worker. */
  async round(trees: readonly string[]): Promise<void> {
    await Promise.all(
      trees.map((tree) => {
        const path = `/sandbox/f${this.#random.below(16)}.txt`;
        if (this.#random.below(4) === 0) return this.act(tree, 'DELETE_FILE', { path });
        return this.act(tree, 'WRITE_FILE', { path, content: 'x'.repeat(this.#random.below(300)) });
      }),
    );
  }

  /** The largest usage after any change. */
  most = { bytes: 0, files: 0 };

  get hasExceeded(): boolean {
    return this.most.bytes > BYTES_MAX || this.most.files > FILES_MAX;
  }

  #measured<T>(result: T): T {
    const folder = join(this.#root, CASE);
    const names = readdirSync(folder);
    const bytes = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    this.most = { bytes: Math.max(this.most.bytes, bytes), files: Math.max(this.most.files, names.length) };
    return result;
  }

  #engine(): TreeEngine {
    const engine = this.#engines[this.#random.below(this.#engines.length)];
    if (engine === undefined) throw new Error('no engine was started');
    return engine;
  }

  async close(): Promise<void> {
    for (const engine of this.#engines) await engine.stop();
    for (const store of this.#stores) await store.close();
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** The largest usage after any change, and what is reserved at the end. It ends when the quota is exceeded. */
async function hammer(url: string, rounds: number, plant: (store: SharedLedgerStore) => SharedLedgerStore) {
  const workers = new Hammer();
  const place = await workers.open(url, plant);
  const trees = Array.from({ length: TREES }, (_, index) => `run_quota${String(index).padStart(4, '0')}`);
  for (const tree of trees) await workers.start(tree);
  for (let round = 0; round < rounds && !workers.hasExceeded; round += 1) await workers.round(trees);
  const { most, hasExceeded } = workers;
  const reserved = await place.exec('SELECT * FROM reservations');
  // Room for one more file, then the rest of it to the last byte.
  for (const name of Array.from({ length: 16 }, (_, index) => `f${index}`))
    await workers.act(trees[0] ?? '', 'DELETE_FILE', { path: `/sandbox/${name}.txt` });
  const fits = await workers.act(trees[1] ?? '', 'WRITE_FILE', {
    path: '/sandbox/a.txt',
    content: 'x'.repeat(BYTES_MAX),
  });
  const exceeds = await workers.act(trees[2] ?? '', 'WRITE_FILE', { path: '/sandbox/b.txt', content: 'x' });
  await workers.close();
  await place.remove();
  return { most, hasExceeded, reserved, fits, exceeds };
}

/** A store that does not know reservations. */
class WithoutReservations extends FaultySharedStore {
  override commitTrees: SharedLedgerStore['commitTrees'] = (batch) => this.inner.commitTrees(without(batch));
  override commitLocked: SharedLedgerStore['commitLocked'] = async (tree_ids, decide) => {
    const locked = await this.inner.commitLocked(tree_ids, async () => without(await decide()));
    return locked as never;
  };
}

const without = (batch: SharedBatch): SharedBatch => ({
  ...batch,
  trees: batch.trees.map((append) => ({ ...append, quotas: [] })),
});

(server === null ? describe.skip : describe)('three workers at the quota of one case', () => {
  const { url } = server ?? { url: '' };

  test('S0-50, C82: the quota is never exceeded, nothing stays reserved, and the rest is available', async () => {
    const { most, hasExceeded, reserved, fits, exceeds } = await hammer(url, ROUNDS, (store) => store);
    expect({ most, hasExceeded }).toEqual({ most, hasExceeded: false });
    expect(most.bytes).toBeGreaterThan(BYTES_MAX / 2);
    expect(reserved).toEqual([]);
    expect([fits, exceeds]).toEqual([true, false]);
  });

  test('C82: without the reservations of the case, the quota is exceeded', async () => {
    const { hasExceeded } = await hammer(url, PLANTED_ROUNDS, (store) => new WithoutReservations(store));
    expect(hasExceeded).toBe(true);
  });
});

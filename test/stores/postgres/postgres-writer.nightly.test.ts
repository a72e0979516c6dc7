// The writer of the PostgreSQL store over a failing network and with other writers: each batch is committed once.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { commitBatch } from '../../../src/engine/tick/batch-builder.js';
import type { Batch } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { AppendStatus, SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { all, answered, audited, content, opening, scribeOf, type Scribe } from '../../fixtures/entries.js';
import { bundled } from '../../fixtures/bundled.js';
import { inputOf } from '../../fixtures/marks.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { ROOT } from '../../root.js';
import { A, at, B, C, code } from '../ledger/ledger-bench.js';
import { Network, type Loss } from './network.js';
import { END_WRITER, ledgerPlace, type LedgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });

afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('the writer of the PostgreSQL store', () => {
  let place: LedgerPlace;
  let opened: { close(): unknown }[];
  let store: SharedLedgerStore;
  let scribe: Scribe;

  const keep = <T extends { close(): unknown }>(one: T): T => {
    opened.push(one);
    return one;
  };
  /** Opens the ledger through a network, as the writer. */
  const behind = async (): Promise<Network> => {
    const network = keep(new Network(Number(new URL(place.url).port)));
    const url = new URL(place.url);
    url.port = String(await network.port());
    store = keep(await openPostgresStore({ ...place, url: `${url.href}?query_timeout=1500` }));
    scribe = await scribeOf(store);
    return network;
  };
  const seqs = async (tree_id: string): Promise<readonly number[]> =>
    (await all(store.tree(tree_id))).map(({ seq }) => seq);

  /** Reopens the store as soon as the server is back. */
  const acquireAgain = async (): Promise<number> => {
    for (;;) {
      try {
        await store.reopen();
        return await store.acquire();
      } catch (error) {
        expect(error).toEqual(code('LEDGER_UNAVAILABLE'));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  };

  beforeEach(async () => {
    opened = [];
    place = ledgerPlace(server?.url ?? '');
    await (await createPostgresStore(place)).close();
  });
  afterEach(async () => {
    for (const one of opened.toReversed()) await one.close();
    await place.remove();
  });

  describe.each<Loss>(['of the commit', 'of its answer', 'of everything', 'of time'])('after the loss %s', (loss) => {
    test('the outcome is unknown, and the batch that is sent again is committed once', async () => {
      const network = await behind();
      await commitBatch(store, scribe.next([opening(A)]));
      const batch = scribe.next([audited(A), opening(B)], { inputs: [{ tree_id: A, input_id: 'mine', seq: 1 }] });
      network.loss = loss;
      await expect(store.commit(batch)).rejects.toEqual(code('LEDGER_COMMIT_UNKNOWN'));
      network.loss = 'none';
      await commitBatch(store, batch);
      network.release();
      await commitBatch(store, scribe.next([audited(A)]));
      expect([await seqs(A), await seqs(B)]).toEqual([[0, 1, 2], [0]]);
      expect(await inputOf(store, A, 'mine')).toBe(1);
      expect((await store.pending(10)).map(({ tree_id, seq }) => [tree_id, seq])).toEqual([
        [A, 0],
        [A, 1],
        [B, 0],
        [A, 2],
      ]);
    });
  });

  test('a commit that arrives while its batch is sent again is committed once', async () => {
    const network = await behind();
    await commitBatch(store, scribe.next([opening(A)]));
    for (let round = 0; round < 5; round += 1) {
      const batch = scribe.next([audited(A)]);
      network.loss = 'of time';
      await expect(store.commit(batch)).rejects.toEqual(code('LEDGER_COMMIT_UNKNOWN'));
      network.loss = 'none';
      const again = commitBatch(store, batch);
      await new Promise((resolve) => setTimeout(resolve, round * 10));
      network.release();
      await again;
    }
    expect(await seqs(A)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('while the server cannot be reached, the outcome of an unanswered batch stays unknown', async () => {
    const network = await behind();
    const batch = scribe.next([opening(A)]);
    network.loss = 'of its answer';
    await expect(store.commit(batch)).rejects.toEqual(code('LEDGER_COMMIT_UNKNOWN'));
    network.loss = 'of everything';
    await expect(store.commit(batch)).rejects.toEqual(code('LEDGER_COMMIT_UNKNOWN'));
    network.loss = 'none';
    await store.commit(batch);
    expect(await seqs(A)).toEqual([0]);
  });

  test('S0-68: acknowledged commits survive crashes of the server, and the others are committed once', async () => {
    store = keep(await openPostgresStore(place));
    scribe = await scribeOf(store);
    await store.commit(scribe.next([opening(A)]));
    const crashes = (async () => {
      for (let crash = 0; crash < 3; crash += 1) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        await server?.restart();
      }
    })();
    const progress = { isOver: false };
    void crashes.then(() => (progress.isOver = true));
    let commits = 0;
    const lost: unknown[] = [];
    while (!progress.isOver) {
      const batch = scribe.next([audited(A)]);
      for (;;) {
        try {
          await store.commit({ ...batch, epoch: scribe.epoch });
          break;
        } catch (error) {
          lost.push(error);
          await new Promise((resolve) => setTimeout(resolve, 50));
          if (code('LEDGER_UNAVAILABLE').asymmetricMatch(error)) scribe.epoch = await acquireAgain();
        }
      }
      commits += 1;
    }
    expect(lost.length).toBeGreaterThan(0);
    expect(await seqs(A)).toEqual(Array.from({ length: commits + 1 }, (_, seq) => seq));
  });

  test('if the session is lost between two commits, the store takes the lock again and continues its epoch', async () => {
    await behind();
    await store.commit(scribe.next([opening(A)]));
    await place.exec(END_WRITER);
    await commitBatch(store, scribe.next([audited(A)]));
    expect(await seqs(A)).toEqual([0, 1]);
    const other = keep(await openPostgresStore(place));
    await expect(other.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
  });

  test('if another writer has ended the epoch meanwhile, the batch conflicts, even after that writer has closed', async () => {
    await behind();
    await store.commit(scribe.next([opening(A)]));
    const batch = scribe.next([audited(A)]);
    await place.exec(END_WRITER);
    const other = await openPostgresStore(place);
    await other.acquire();
    await other.close();
    await expect(commitBatch(store, batch)).rejects.toEqual(code('LEDGER_CONFLICT'));
    expect(await seqs(A)).toEqual([0]);
  });

  test('the lock of a writer is released when its connection is lost', async () => {
    await behind();
    const other = keep(await openPostgresStore(place));
    await expect(other.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
    for (const one of opened) if (one instanceof Network) one.close();
    const since = performance.now();
    for (;;) {
      const epoch = await other.acquire().catch(() => null);
      if (epoch !== null) break;
      expect(performance.now() - since).toBeLessThan(5_000);
    }
  });

  test('a full disk is LEDGER_UNAVAILABLE; after reopen and acquire the same store continues', async () => {
    await behind();
    await store.commit(scribe.next([opening(A)]));
    await place.exec(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
      CREATE TRIGGER full_disk BEFORE INSERT ON pending FOR EACH ROW EXECUTE FUNCTION full_disk()`);
    const batch = scribe.next([audited(A)]);
    await expect(store.commit(batch)).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      message: expect.stringContaining('no space left on device'),
    });
    await expect(store.acquire()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await place.exec('DROP TRIGGER full_disk ON pending');
    await store.reopen();
    scribe.epoch = await store.acquire();
    await store.commit({ ...batch, epoch: scribe.epoch });
    expect(await seqs(A)).toEqual([0, 1]);
  });

  test('a commit waits for a locked row at most as long as its limit, and is repeated', async () => {
    store = keep(await openPostgresStore(place));
    scribe = await scribeOf(store);
    await store.commit(scribe.next([opening(A)]));
    const blocker = place.exec('BEGIN; SELECT FROM trees FOR UPDATE; SELECT pg_sleep(6); COMMIT');
    await new Promise((resolve) => setTimeout(resolve, 200));
    await store.commit(scribe.next([audited(A)]));
    await blocker;
    expect(await seqs(A)).toEqual([0, 1]);
  });

  test('concurrent commits of different trees are numbered and integrated in the order of each tree', async () => {
    await behind();
    await store.commit(scribe.next([opening(A), opening(B), opening(C)]));
    const batches = Array.from({ length: 30 }, (_, n) => scribe.next([audited([A, B, C][n % 3]!)]));
    const sent = [A, B, C].map(async (tree_id) => {
      for (const batch of batches) if (batch.trees[0]?.tree_id === tree_id) await store.commit(batch);
    });
    await Promise.all(sent);
    const pending = await store.pending(100);
    for (const id of [A, B, C]) {
      expect(await seqs(id)).toEqual(Array.from({ length: 11 }, (_, seq) => seq));
      const own = pending.filter(({ tree_id }) => tree_id === id).map(({ seq }) => seq);
      expect(own).toEqual(own.toSorted((x, y) => x - y));
    }
  });

  test('D13: another process that writes keeps the lock while it is stopped, and releases it when it is killed', async () => {
    const folder = join(place.folder, 'programs');
    await bundled(folder, { 'postgres-store': 'src/stores/postgres/index.ts' });
    copyFileSync(join(ROOT, 'test/stores/postgres/write-ledger.mjs'), join(folder, 'write-ledger.mjs'));
    const parameters = [join(folder, 'write-ledger.mjs'), place.url, place.schema, place.caseKeysDir];
    const child = spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [printed] = (await once(child.stdout, 'data')) as [Buffer];
    const other = keep(await openPostgresStore(place));
    await expect(other.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
    child.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    await expect(other.acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
    child.kill('SIGKILL');
    await once(child, 'exit');
    let epoch: number | null = null;
    for (const end = performance.now() + 5_000; epoch === null && performance.now() < end;) {
      epoch = await other.acquire().catch(() => null);
    }
    expect(epoch).toBe(Number(printed.toString()) + 1);
  });

  describe('commitTrees', () => {
    /** Commits as a worker: the store joins with the first batch. */
    let worker_id: number | null = null;
    const commitEach = async ({ trees }: Batch): Promise<readonly AppendStatus[]> => {
      worker_id ??= await store.join();
      return store.commitTrees({
        worker_id,
        quota_version: '',
        trees: trees.map((append) => ({ ...append, taken: [], released: [], quotas: [], label: null })),
      });
    };
    beforeEach(() => {
      worker_id = null;
    });

    test('each tree stands alone: what fits is committed, what was sent before is present, the rest conflicts', async () => {
      await behind();
      const first = scribe.next([opening(A), answered(A, content('result', 'once'))]);
      expect(await commitEach(first)).toEqual(['committed']);
      const lost = scribe.prepare([audited(A, 'deny'), opening(B), answered(B, content('result', 'of B'))]);
      await store.commit(scribe.next([audited(A, 'allow')]));
      const mixed = { epoch: scribe.epoch, trees: [...lost.trees, ...scribe.prepare([opening(C)]).trees] };
      expect(await commitEach(mixed)).toEqual(['conflict', 'committed', 'committed']);
      expect(await commitEach(mixed)).toEqual(['conflict', 'present', 'present']);
      expect([await seqs(A), await seqs(B), await seqs(C)]).toEqual([[0, 1, 2], [0, 1], [0]]);
      expect(await store.artifactsOf(at(B, 1))).toMatchObject([{ kind: 'result', bytes: Buffer.from('of B') }]);
      expect((await store.treesOf('case-0001')).map(({ tree_id }) => tree_id)).toEqual([A, B, C]);
    });

    test('a tree that conflicts stores neither content nor marks', async () => {
      await behind();
      await store.commit(scribe.next([opening(A)]));
      const lost = scribe.prepare([answered(A, content('result', 'lost'))], {
        inputs: [{ tree_id: A, input_id: 'lost', seq: 1 }],
      });
      await store.commit(scribe.next([audited(A)]));
      const trees = [...lost.trees, ...scribe.next([opening(B)]).trees];
      expect(await commitEach({ epoch: scribe.epoch, trees })).toEqual(['conflict', 'committed']);
      expect(await inputOf(store, A, 'lost')).toBeNull();
      const [row] = await place.exec(`SELECT count(*) AS n FROM artifacts WHERE kind = 'result'`);
      expect(row).toEqual({ n: '0' });
    });

    test('nothing is stored under a destroyed key: such a tree conflicts', async () => {
      await behind();
      await store.commit(scribe.next([opening(A, 'case-1'), answered(A, content('result', 'r', 'case-1'))]));
      await place.exec(`UPDATE cases SET erased_key = 1 WHERE case_id = 'case-1'`);
      const late = scribe.prepare([answered(A, content('result', 's', 'case-1'))]);
      expect(await commitEach(late)).toEqual(['conflict']);
      await expect(store.commit(late)).rejects.toEqual(code('LEDGER_CONFLICT'));
      expect(await seqs(A)).toEqual([0, 1]);
    });

    test('a batch of a worker that is over conflicts as a whole', async () => {
      await behind();
      const batch = scribe.next([opening(A)]);
      await commitEach(scribe.next([opening(B)]));
      await place.exec('UPDATE workers SET over_at = now()');
      await expect(commitEach(batch)).rejects.toEqual(code('LEDGER_CONFLICT'));
      expect(await seqs(A)).toEqual([]);
    });
  });
});

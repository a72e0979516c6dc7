// The indexes follow the commits. At every stage, each reader finds exactly what was committed.

import { cpSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SLICES, STRETCH_ROWS } from '../../../src/stores/sqlite/sqlite-index.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { LedgerStore, ProposalMark } from '../../../src/engine/ports/ledger/ledger-store.js';
import { sized } from '../../fixtures/campaign.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { all, audited, opening, proposalId, Scribe, scribeOf, treeId } from '../../fixtures/entries.js';
import { dropGuards, ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const [A, B, C] = [treeId(1), treeId(2), treeId(3)];
const TREES = [A, B];
/** Two blocks, two proposals and an input in each round. */
const ROWS_A_ROUND = 5;
/** Fewer rows than the default reach every stage sooner; slices and small commits shrink with them. */
const stretchRows = sized(1_024, STRETCH_ROWS);
const sliceRows = stretchRows / SLICES;
/** Rounds of a commit that is smaller than a slice. */
const FEW = sized(1, 8);

const tampered = expect.objectContaining({ code: 'LEDGER_TAMPERED' });

describe('a SQLite ledger whose indexes are behind', () => {
  let at: LedgerFolder & { readonly stretchRows: number };
  let store: LedgerStore;
  let scribe: Scribe;
  let rounds: number;
  let opened: LedgerStore[];

  const keep = (one: LedgerStore): LedgerStore => {
    opened.push(one);
    return one;
  };
  beforeEach(async () => {
    at = { ...ledgerFolder(), stretchRows };
    opened = [];
    rounds = 0;
    store = keep(createSqliteStore(at));
    scribe = await scribeOf(store);
    await scribe.write(
      store,
      TREES.map((id) => opening(id)),
    );
  });
  afterEach(async () => {
    for (const one of opened) await one.close();
    at.remove();
  });

  const mark = (round: number, root_run_id: string): ProposalMark => ({
    root_run_id,
    proposal_id: proposalId(round),
    run_id: `${root_run_id}.1`,
    step_index: round + 1,
    payload_sha256: sha256(`${round}`),
    seq: round + 1,
  });

  /** Trees take turns: each round is a block and a proposal in each. Many rounds share a commit, to be fast. */
  async function write(count: number, atOnce = 64): Promise<void> {
    for (const end = rounds + count; rounds < end;) {
      const turns = Array.from({ length: Math.min(atOnce, end - rounds) }, (_, turn) => rounds + turn);
      await scribe.write(
        store,
        turns.flatMap(() => TREES.map((id) => audited(id))),
        {
          proposals: turns.flatMap((round) => TREES.map((id) => mark(round, id))),
          inputs: turns.map((round) => ({ tree_id: A, input_id: `input ${round}`, seq: round + 1 })),
        },
      );
      rounds += turns.length;
    }
  }

  const indexed = (file = at.file) =>
    withDatabase(
      file,
      (db) =>
        db
          .prepare(
            `SELECT blocks_indexed, marks_indexed, (SELECT count(*) FROM tree_index) AS blocks,
             (SELECT count(*) FROM mark_index) AS marks FROM meta`,
          )
          .get() as { blocks_indexed: number; marks_indexed: number; blocks: number; marks: number },
    );

  /** The results of `reader` for everything that uses an index. */
  async function check(reader: LedgerStore): Promise<void> {
    const log = await all(reader.log());
    expect(log.map(({ log_index }) => log_index)).toEqual(Array.from({ length: 2 + 2 * rounds }, (_, index) => index));
    for (const id of TREES) {
      const tree = log.filter(({ tree_id }) => tree_id === id);
      expect(await all(reader.tree(id))).toEqual(tree);
      for (const seq of [1, Math.floor(rounds / 2), rounds])
        expect(await all(reader.tree(id, seq))).toEqual(tree.slice(seq));
      for (const round of [0, Math.floor(rounds / 2), rounds - 1]) {
        expect(await proposalOf(reader, id, proposalId(round))).toEqual(mark(round, id));
        expect(await inputOf(reader, A, `input ${round}`)).toBe(round + 1);
      }
      expect(await proposalOf(reader, id, proposalId(rounds))).toBeNull();
    }
    expect(await inputOf(reader, B, 'input 0')).toBeNull();
    expect(await inputOf(reader, A, `input ${rounds}`)).toBeNull();
    expect(await all(reader.tree(C))).toEqual([]);
    expect((await all(reader.trees())).map(({ tree_id }) => tree_id)).toEqual(TREES);
  }

  const stretch = Math.ceil(stretchRows / ROWS_A_ROUND);

  test('no commit writes to an index before there is a stretch of rows; everything is found', async () => {
    await write(stretch >> 1);
    expect(indexed()).toEqual({ blocks_indexed: 0, marks_indexed: 0, blocks: 0, marks: 0 });
    await check(store);
    await check(keep(openSqliteStore({ ...at, readOnly: true })));
  });

  test('a stretch is indexed a few rows per commit while others are written; everything is found at all times', async () => {
    const reader = keep(openSqliteStore({ ...at, readOnly: true }));
    await write(stretch);
    await check(reader);
    const sizes: number[] = [];
    while (indexed().blocks_indexed === 0) {
      const { blocks, marks } = indexed();
      sizes.push(blocks + marks);
      await write(FEW);
      expect(await proposalOf(reader, B, proposalId(rounds - 1))).toEqual(mark(rounds - 1, B));
      if (sizes.length % sized(128, 16) === 0) await check(store);
    }
    // No commit has written much more than its share.
    const steps = sizes.slice(1).map((size, n) => size - sizes[n]!);
    expect(Math.max(...steps)).toBeLessThanOrEqual(2 * sliceRows);
    expect(steps.filter((step) => step > 0).length).toBeGreaterThan(8);
    const { blocks_indexed, marks_indexed, blocks, marks } = indexed();
    expect(blocks_indexed).toBe(blocks);
    expect(marks_indexed).toBeGreaterThan(0);
    expect(marks).toBeGreaterThanOrEqual(stretchRows / 2);
    await check(store);
    await check(reader);
    await write(FEW);
    await check(reader);
  });

  test('S4-86: a writer that dies while indexing leaves a ledger that continues, from a copy of its files', async () => {
    await write(stretch);
    while (indexed().blocks === 0) await write(FEW);
    await write(FEW);
    expect(indexed()).toMatchObject({ blocks_indexed: 0 });
    const copy = { ...ledgerFolder(), stretchRows };
    for (const suffix of ['', '-wal']) cpSync(at.file + suffix, copy.file + suffix);
    const reader = openSqliteStore({ ...copy, readOnly: true });
    await check(reader);
    await reader.close();
    store = keep(openSqliteStore(copy));
    scribe.epoch = await store.acquire();
    await check(store);
    await write(stretch);
    await check(store);
    await store.close();
    copy.remove();
  });

  test('a writer that opens a ledger with a long tail indexes it once', async () => {
    await write(stretch + 16);
    await store.close();
    store = keep(openSqliteStore(at));
    scribe.epoch = await store.acquire();
    expect(indexed()).toMatchObject({ blocks_indexed: 2 + 2 * rounds, blocks: 2 + 2 * rounds });
    await check(store);
    await write(16);
    await check(store);
  });

  test('writers that each write a little do not let the tail grow without limit', async () => {
    for (let session = 0; session < 6; session += 1) {
      await write(Math.ceil(stretch / 3));
      await store.close();
      store = keep(openSqliteStore(at));
      scribe.epoch = await store.acquire();
    }
    expect(2 + 2 * rounds - indexed().blocks_indexed).toBeLessThan(stretchRows);
    await check(store);
  });

  test('C19, D4: a repeated mark is refused whether it is in the index or in the tail, and nothing is written', async () => {
    await write(stretch + 16);
    await store.close();
    store = keep(openSqliteStore(at));
    scribe.epoch = await store.acquire();
    await write(16);
    const indexedRounds = indexed().marks_indexed;
    expect(indexedRounds).toBeGreaterThan(0);
    for (const wrong of [
      { proposals: [mark(0, A)] },
      { proposals: [mark(rounds - 1, B)] },
      { inputs: [{ tree_id: A, input_id: 'input 0', seq: 9 }] },
      { inputs: [{ tree_id: A, input_id: `input ${rounds - 1}`, seq: 9 }] },
    ]) {
      await expect(store.commit(scribe.prepare([audited(A)], wrong))).rejects.toMatchObject({
        code: 'LEDGER_UNAVAILABLE',
      });
      await store.close();
      store = keep(openSqliteStore(at));
      scribe.epoch = await store.acquire();
    }
    await check(store);
  });

  test('a tree that has ended is reported so, from the index and from the tail', async () => {
    await scribe.write(store, [audited(A)], { ended: [A] });
    const states = async (one: LedgerStore) => (await all(one.trees())).map(({ ended }) => ended);
    const reader = keep(openSqliteStore({ ...at, readOnly: true }));
    expect([await states(store), await states(reader)]).toEqual([
      [true, false],
      [true, false],
    ]);
    await write(2 * stretch);
    await scribe.write(
      store,
      TREES.map((tree_id) => audited(tree_id)),
      { ended: TREES },
    );
    expect(indexed().blocks_indexed).toBeGreaterThan(0);
    expect([await states(store), await states(reader)]).toEqual([
      [true, true],
      [true, true],
    ]);
  });

  test('a writer that was replaced reads what its successor has written', async () => {
    await store.close();
    const first = keep(openSqliteStore(at));
    store = keep(openSqliteStore(at));
    expect(await all(first.tree(A))).toHaveLength(1);
    scribe.epoch = await store.acquire();
    await write(3);
    await check(first);
  });

  /** A closed ledger with indexes, created once. */
  let withIndexes: LedgerFolder | null = null;
  afterAll(() => withIndexes?.remove());

  async function makeIndexes(): Promise<LedgerFolder> {
    await write(stretch + 16);
    await store.close();
    const writer = openSqliteStore(at);
    await writer.acquire();
    await writer.close();
    const made = ledgerFolder();
    cpSync(at.folder, made.folder, { recursive: true });
    return made;
  }

  test.each([
    ['names a block of another tree', `UPDATE tree_index SET log_index = 1 WHERE tree_id = '${A}' AND seq = 0`],
    ['names a missing block', `UPDATE tree_index SET log_index = 0.0 - 1 WHERE tree_id = '${A}' AND seq = 0`],
    ['names a missing mark', `UPDATE mark_index SET mark_no = mark_no + 99999 WHERE scope = '${A}'`],
    ['names another mark', `UPDATE mark_index SET mark_no = 5 WHERE scope = '${A}' AND mark_no = 0`],
    ['leads to marks with a wrong shape', `UPDATE marks SET marks = '[[],[[1,2,3]],[]]' WHERE mark_no = 0`],
    ['leads to marks that are not JSON', `UPDATE marks SET marks = '[' WHERE mark_no = 0`],
  ])('an index that %s is LEDGER_TAMPERED at its lookup', async (_what, sql) => {
    withIndexes ??= await makeIndexes();
    const changed = ledgerFolder();
    cpSync(withIndexes.folder, changed.folder, { recursive: true });
    withDatabase(changed.file, (db) => {
      dropGuards(db);
      db.exec(sql);
    });
    const reader = openSqliteStore({ ...changed, readOnly: true });
    const answers = [() => all(reader.tree(A)), () => proposalOf(reader, A, proposalId(0))];
    const found = await Promise.all(answers.map((ask) => ask().catch((error: unknown) => error)));
    expect(found).toContainEqual(tampered);
    await reader.close();
    changed.remove();
  });
});

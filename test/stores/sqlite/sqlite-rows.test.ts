// Which entries become one row, and that readers do not notice it.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BLOCK_CHARS_MAX, BLOCK_ENTRIES_MAX, entriesOf } from '../../../src/stores/sqlite/sqlite-rows.js';
import { createSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import type { SealedEntry } from '../../../src/core/contract/run/entry.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { verifyLedger } from '../../../src/core/ledger/verification/verify-ledger.js';
import type { Batch, LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, audited, opening, Scribe, scribeOf, treeId } from '../../fixtures/entries.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const [A, B] = [treeId(1), treeId(2)];

/** The same batch of one tree, with these entries. */
const withEntries = (batch: Batch, entries: readonly SealedEntry[]): Batch => ({
  ...batch,
  trees: batch.trees.map((append) => ({ ...append, entries })),
});

describe('the blocks of a SQLite ledger', () => {
  let at: LedgerFolder;
  let store: LedgerStore;
  let scribe: Scribe;
  beforeEach(async () => {
    at = ledgerFolder();
    store = createSqliteStore(at);
    scribe = await scribeOf(store);
  });
  afterEach(async () => {
    await store.close();
    at.remove();
  });

  const blocks = () =>
    withDatabase(at.file, (db) =>
      db.prepare('SELECT log_index, tree_id, seq, length(leaf_hashes) / 32 FROM blocks').raw().all(),
    );
  const verdict = async () =>
    verifyLedger(
      {
        log: (from) => store.log(from),
        artifactsOf: (place) => store.artifactsOf(place),
        head: () => store.head(),
        externalHead: scribe.head,
      },
      { complete: false },
    );

  test('consecutive entries of one tree are one block; alternating trees have one block per turn', async () => {
    await scribe.write(store, [opening(A), audited(A), opening(B), audited(B), audited(B), audited(A)]);
    await scribe.write(store, [audited(A), audited(A)]);
    expect(blocks()).toEqual([
      [0, A, 0, 2],
      [2, B, 0, 3],
      [5, A, 2, 1],
      [6, A, 3, 2],
    ]);
    expect(await verdict()).toMatchObject({ ok: true, entries: 8 });
    expect((await all(store.tree(A))).map(({ log_index, seq }) => [log_index, seq])).toEqual([
      [0, 0],
      [1, 1],
      [5, 2],
      [6, 3],
      [7, 4],
    ]);
    for (const from of [0, 1, 4, 5, 7, 8]) {
      expect((await all(store.log(from))).map(({ log_index }) => log_index)).toEqual(
        [0, 1, 2, 3, 4, 5, 6, 7].slice(from),
      );
    }
    for (const from of [0, 1, 2, 4, 5]) expect(await all(store.tree(A, from))).toHaveLength(5 - from);
  });

  test(`a block ends at ${BLOCK_ENTRIES_MAX} entries, and before its text is too long`, async () => {
    await scribe.write(store, [opening(A), ...Array.from({ length: 2 * BLOCK_ENTRIES_MAX }, () => audited(A))]);
    expect(blocks()).toEqual([
      [0, A, 0, BLOCK_ENTRIES_MAX],
      [BLOCK_ENTRIES_MAX, A, BLOCK_ENTRIES_MAX, BLOCK_ENTRIES_MAX],
      [2 * BLOCK_ENTRIES_MAX, A, 2 * BLOCK_ENTRIES_MAX, 1],
    ]);
    const long = { ...opening(B), body: () => ({ ...opening(B).body({ tree_id: B, seq: 0 }), scope: {} }) };
    const texts = Array.from({ length: 4 }, (_, n) => audited(B, n % 2 === 0 ? 'allow' : 'deny'));
    const batch = scribe.prepare([long, ...texts]);
    const entries = batch.entries.map((sealed) => ({ ...sealed, text: sealed.text.padEnd(BLOCK_CHARS_MAX / 2, ' ') }));
    await store.commit(withEntries(batch, entries));
    expect(
      blocks()
        .slice(3)
        .map((row) => (row as unknown[])[3]),
    ).toEqual([1, 1, 1, 1, 1]);
    expect((await all(store.tree(B))).map(({ text }) => text)).toEqual(entries.map(({ text }) => text));
  });

  test('texts come back unchanged, with any characters, at the limit of a block and beyond', async () => {
    const batch = scribe.prepare([opening(A), ...Array.from({ length: 6 }, () => audited(A))]);
    const lengths = [100, BLOCK_CHARS_MAX - 2_000, BLOCK_CHARS_MAX, 2 * BLOCK_CHARS_MAX + 2];
    const paddings = ['é', '€', '😀', '\u0000', '\uffff'].flatMap((pad) => lengths.map((length) => ({ length, pad })));
    let prepared = batch;
    for (const { length, pad } of paddings) {
      const entries = prepared.entries.map((sealed, n) =>
        n % 3 === 1 ? { ...sealed, text: sealed.text + pad.repeat(length / pad.length) } : sealed,
      );
      await store.commit(withEntries(prepared, entries));
      const { from } = prepared.trees[0]!;
      // Compares hashes, so that a failure message is one line.
      expect((await all(store.log(from))).map(({ text }) => sha256(text))).toEqual(
        entries.map(({ text }) => sha256(text)),
      );
      // Appends to the same tree.
      const seq = from + entries.length;
      const moved = (n: number) => ({ ...entries[n]!.entry, seq: seq + n });
      const next = batch.entries.map((sealed, n) => ({ ...sealed, entry: moved(n) }));
      const [append] = batch.trees;
      prepared = { ...batch, trees: [{ ...append!, from: seq, entries: next, opened: null }], entries: next };
    }
    const types = withDatabase(at.file, (db) => db.prepare('SELECT DISTINCT typeof(texts) FROM blocks').pluck().all());
    expect(types).toEqual(['text']);
  });
});

test.each(['types', 'leaf_hashes', 'texts'])(
  'S4-86: reports a block as tampered if a torn page left no %s',
  (column) => {
    const whole = {
      log_index: 7,
      tree_id: A,
      seq: 0,
      artifacts: null,
      types: 'input',
      leaf_hashes: Buffer.alloc(32),
      texts: Buffer.from('{}'),
    };
    expect(entriesOf(whole)).toHaveLength(1);
    const torn = { ...whole, [column]: null };
    expect(() => entriesOf(torn)).toThrow(expect.objectContaining({ code: 'LEDGER_TAMPERED' }));
  },
);

// What every ledger store must do, whatever its storage.

import { describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import { EMPTY_HEAD } from '../../../src/core/ledger/proof/merkle.js';
import { all, audited, content, opening, proposalId, proposed, treeId } from '../../fixtures/entries.js';
import {
  A,
  at,
  B,
  bytesOf,
  C,
  code,
  ledgerBench,
  mark,
  stepOf,
  type Bench,
  type LedgerUnderTest,
} from './ledger-bench.js';

import { commitContract } from './commit.contract.js';
import { archivesContract, reopenedArchivesContract, unarchivedContract } from './archives.contract.js';
import { failedCommitContract } from './failed-commit.contract.js';
import { contentContract } from './ledger-content.contract.js';
import { refusalContract } from './ledger-refusal.contract.js';
import { runRecordsContract } from './run-records.contract.js';
import { severalStoresContract } from './several-stores.contract.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { requireContent } from '../../../src/core/ledger/require-content.js';

export interface StoreFeatures {
  /** False for a store that refuses to remove archived entries. @default true */
  readonly archives?: boolean;
  /** Whether several stores can open one ledger. False for a ledger that ends with its store. @default true */
  readonly opensAgain?: boolean;
}

/** Runs the suite over one kind of store. */
export function ledgerStoreContract(
  name: string,
  makeLedger: () => LedgerUnderTest,
  { archives = true, opensAgain = true }: StoreFeatures = {},
): void {
  describe(`a ledger store: ${name}`, () => {
    const bench = ledgerBench(makeLedger);
    describe('reading and writing', () => readingContract(bench));
    describe('epochs', () => epochContract(bench));
    describe('refused calls', () => refusalContract(bench));
    describe('content and marks', () => contentContract(bench));
    describe('commits', () => commitContract(makeLedger));
    describe('archives', () => (archives ? archivesContract(bench) : unarchivedContract(bench)));
    describe('run records', () => runRecordsContract(bench));
    if (!opensAgain) return;
    describe('several stores', () => severalStoresContract(bench));
    describe('failed commits', () => failedCommitContract(makeLedger));
    if (archives) describe('archives of several stores', () => reopenedArchivesContract(bench));
  });
}

function readingContract(bench: Bench): void {
  test('a new ledger is empty: size 0, the root of the empty log', async () => {
    expect(await bench.store.head()).toEqual(EMPTY_HEAD);
    expect(await all(bench.store.log())).toEqual([]);
    expect(await all(bench.store.tree(A))).toEqual([]);
    expect(await all(bench.store.trees())).toEqual([]);
    expect(requireContent(await bench.store.artifactsOf(at(A, 0)))).toEqual([]);
  });

  test('S4-09: entries come back as committed, in the order of the log and of their tree', async () => {
    const first = await bench.scribe.write(bench.store, [opening(A), opening(B), ...stepOf(A)]);
    const second = await bench.scribe.write(bench.store, [...stepOf(B), ...stepOf(A, 1)]);
    const expected = [...first.entries, ...second.entries].map(({ entry, text, leaf_hash }, log_index) => ({
      log_index,
      tree_id: entry.tree_id,
      seq: entry.seq,
      type: entry.type,
      text,
      leaf_hash,
    }));
    expect(await all(bench.store.log())).toEqual(expected);
    expect(await all(bench.store.log(7))).toEqual(expected.slice(7));
    const ofA = expected.filter(({ tree_id }) => tree_id === A);
    expect(ofA.map(({ seq }) => seq)).toEqual(Array.from({ length: 19 }, (_, seq) => seq));
    expect(await all(bench.store.tree(A))).toEqual(ofA);
    expect(await all(bench.store.tree(A, 5))).toEqual(ofA.slice(5));
    expect(await all(bench.store.tree(C))).toEqual([]);
    expect(await bench.store.head()).toEqual(second.head);
    await bench.checkLedger(expected.length);
  });

  test('trees are listed from a log index on', async () => {
    await bench.scribe.write(bench.store, [opening(A), ...stepOf(A), opening(B), opening(C)]);
    const whole = await all(bench.store.trees());
    expect(whole.map(({ tree_id }) => tree_id)).toEqual([A, B, C]);
    const second = whole[1]?.log_index ?? 0;
    expect(await all(bench.store.trees({ from: second }))).toEqual(whole.slice(1));
    expect(await all(bench.store.trees({ from: second + 1 }))).toEqual(whole.slice(2));
    expect(await all(bench.store.trees({ from: second + 2 }))).toEqual([]);
  });

  test('a cursor with an aborted signal throws its reason, and reads no further page', async () => {
    await bench.scribe.write(bench.store, [opening(A), opening(B), opening(C)]);
    await bench.scribe.write(
      bench.store,
      Array.from({ length: 600 }, () => audited(A)),
    );
    const cursors: readonly ((signal: AbortSignal) => AsyncIterable<unknown>)[] = [
      (signal: AbortSignal) => bench.store.log(0, { signal }),
      (signal: AbortSignal) => bench.store.tree(A, 0, { signal }),
      (signal: AbortSignal) => bench.store.trees({ signal }),
    ];
    for (const cursor of cursors) {
      const control = new AbortController();
      control.abort(new Error('left'));
      await expect(cursor(control.signal)[Symbol.asyncIterator]().next()).rejects.toThrow('left');
      const later = new AbortController();
      const read = cursor(later.signal)[Symbol.asyncIterator]();
      expect((await read.next()).done).toBe(false);
      later.abort(new Error('left'));
      const rest = async (): Promise<void> => {
        while ((await read.next()).done !== true);
      };
      // Entries of the first page are loaded already; here that may be all of them.
      if (cursor === cursors[0]) await expect(rest()).rejects.toThrow('left');
      else await rest().catch(() => undefined);
    }
  });

  test('more entries than one page come back without a gap, from any position', async () => {
    await bench.scribe.write(bench.store, [opening(A), opening(B)]);
    const many = Array.from({ length: 600 }, (_, n) => audited(n % 3 === 0 ? B : A));
    await bench.scribe.write(bench.store, many);
    expect((await all(bench.store.log())).map(({ log_index }) => log_index)).toEqual(
      Array.from({ length: 602 }, (_, log_index) => log_index),
    );
    for (const from of [0, 1, 63, 64, 65, 300, 400, 401]) {
      const seqs = (await all(bench.store.tree(A, from))).map(({ seq }) => seq);
      expect(seqs).toEqual(Array.from({ length: 401 - from }, (_, n) => from + n));
    }
    await bench.checkLedger(602);
  });

  test('an open iteration does not block the writer, and reaches entries written in the meantime', async () => {
    await bench.scribe.write(bench.store, [opening(A), ...Array.from({ length: 300 }, () => audited(A))]);
    let seen = 0;
    for await (const { log_index } of bench.store.log()) {
      if (log_index === 0) await bench.scribe.write(bench.store, [audited(A)]);
      seen += 1;
    }
    expect(seen).toBe(302);
  });

  test('a batch without entries is accepted', async () => {
    await bench.scribe.write(bench.store, [opening(A)]);
    await bench.scribe.write(bench.store, []);
    await bench.checkLedger(1);
  });

  test('another store sees committed entries at once, while the writer is open', async () => {
    const reader = bench.keep(bench.ledger.openReader());
    expect(await reader.head()).toEqual(EMPTY_HEAD);
    const batch = await bench.scribe.write(bench.store, [opening(A), proposed(A, content('raw_payload', 'p'))], {
      proposals: [mark(1)],
      inputs: [{ tree_id: A, input_id: 'mine', seq: 1 }],
    });
    expect(await reader.head()).toEqual(batch.head);
    expect(await all(reader.tree(A))).toHaveLength(2);
    expect(bytesOf(requireContent(await reader.artifactsOf(at(A, 1))))).toEqual(['p']);
    expect(Buffer.from((await reader.artifact('case-0001', sha256('p')))!).toString()).toBe('p');
    expect(await proposalOf(reader, A, proposalId(1))).toEqual(mark(1));
    expect(await inputOf(reader, A, 'mine')).toBe(1);
  });

  test('trees are listed in the order of their first entry, with whether they have ended', async () => {
    await bench.scribe.write(bench.store, [opening(B), opening(A)]);
    await bench.scribe.write(bench.store, [opening(C), audited(B), audited(A)], { ended: [A] });
    const expected = [
      { tree_id: B, ended: false, log_index: 0 },
      { tree_id: A, ended: true, log_index: 1 },
      { tree_id: C, ended: false, log_index: 2 },
    ];
    expect(await all(bench.store.trees())).toEqual(expected);
    await bench.scribe.write(bench.store, [audited(A)], { ended: [A] });
    expect(await all(bench.store.trees())).toEqual(expected);
  });

  test('more trees than one page are listed', async () => {
    const ids = Array.from({ length: 300 }, (_, n) => treeId(n));
    await bench.scribe.write(
      bench.store,
      ids.map((id) => opening(id)),
    );
    expect((await all(bench.store.trees())).map(({ tree_id }) => tree_id)).toEqual(ids);
  });
}

function epochContract(bench: Bench): void {
  test('acquiring again gives a higher epoch and ends the former one', async () => {
    const batch = bench.scribe.prepare([opening(A)]);
    const epoch = await bench.store.acquire();
    expect(epoch).toBeGreaterThan(batch.epoch);
    await expect(bench.store.commit(batch)).rejects.toEqual(code('LEDGER_CONFLICT'));
    await bench.store.commit({ ...batch, epoch });
    await bench.checkLedger(1);
  });
}

// A writer that caches the names of marks behaves exactly like one that queries the database each time. N1 to N3 are
// invariants of sqlite-index.ts, W2 is one of sqlite-writer.ts.

import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { SqliteConnection } from '../../../src/stores/sqlite/sqlite-binding.js';
import { openDatabase } from '../../../src/stores/sqlite/sqlite-database.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { SqliteTail, SqliteMarkIndex } from '../../../src/stores/sqlite/sqlite-index.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { LedgerStore, ProposalMark } from '../../../src/engine/ports/ledger/ledger-store.js';
import { audited, opening, proposalId, scribeOf, treeId, type Scribe } from '../../fixtures/entries.js';
import { inputOf, proposalOf } from '../../fixtures/marks.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const [A, B] = [treeId(1), treeId(2)];
const conflict = expect.objectContaining({ code: 'LEDGER_CONFLICT' });
const refused = expect.objectContaining({ code: 'LEDGER_UNAVAILABLE' });

const mark = (n: number, root_run_id = A): ProposalMark => ({
  root_run_id,
  proposal_id: proposalId(n),
  run_id: `${root_run_id}.1`,
  step_index: n + 1,
  payload_sha256: sha256(`${n}`),
  seq: 1,
});

let at: LedgerFolder;
beforeEach(() => {
  at = ledgerFolder();
});
afterEach(() => at.remove());

describe('the cached marks of a writer', () => {
  let store: LedgerStore;
  let scribe: Scribe;
  let opened: LedgerStore[];
  const keep = (one: LedgerStore): LedgerStore => {
    opened.push(one);
    return one;
  };
  beforeEach(async () => {
    opened = [];
    store = keep(createSqliteStore(at));
    scribe = await scribeOf(store);
    await scribe.write(store, [opening(A), opening(B)]);
  });
  afterEach(async () => {
    for (const one of opened) await one.close();
  });

  const again = async (): Promise<void> => {
    await store.close();
    store = keep(openSqliteStore(at));
    scribe.epoch = await store.acquire();
  };
  /** Replaces the writer, which has lost its lock and does not know. */
  const replace = async (): Promise<void> => {
    rmSync(`${at.file}.lock`);
    const next = keep(openSqliteStore(at));
    scribe.epoch = await next.acquire();
    await scribe.write(next, [audited(A)], { proposals: [mark(1)], inputs: [{ tree_id: A, input_id: 'x', seq: 1 }] });
  };
  const known = async (n: number): Promise<boolean> => (await proposalOf(store, A, proposalId(n))) !== null;

  test('C19: an id that was new at its lookup is refused if it comes twice', async () => {
    expect(await known(1)).toBe(false);
    await scribe.write(store, [audited(A)], { proposals: [mark(1)] });
    expect(await proposalOf(store, A, proposalId(1))).toEqual(mark(1));
    expect(await proposalOf(store, B, proposalId(1))).toBeNull();
    await expect(store.commit(scribe.prepare([audited(A)], { proposals: [mark(1)] }))).rejects.toEqual(refused);
    await again();
    expect(await proposalOf(store, A, proposalId(1))).toEqual(mark(1));
    await expect(store.commit(scribe.prepare([audited(A)], { proposals: [mark(1)] }))).rejects.toEqual(refused);
  });

  /** Shows the writer a foreign change that is not a mark, so that it drops its cache. */
  const disturb = async (): Promise<void> => {
    withDatabase(at.file, (db) => db.exec(`INSERT OR REPLACE INTO snapshots VALUES ('x', 0, hex(randomblob(9)), '')`));
    for await (const entry of store.tree(A)) expect(entry.tree_id).toBe(A);
  };

  test('C19: a mark is refused again before, while and after it is indexed', async () => {
    const indexed = () =>
      withDatabase(at.file, (db) => Number(db.prepare('SELECT marks_indexed FROM meta').pluck().get()));
    await scribe.write(store, [audited(A)], { proposals: [mark(0)] });
    let next = 1;
    for (let rounds = 0; indexed() === 0; rounds += 1) {
      expect(rounds).toBeLessThan(100);
      const numbers = Array.from({ length: 512 }, (_, n) => next + n);
      await scribe.write(store, [audited(B)], { proposals: numbers.map((n) => mark(n, n % 2 === 0 ? A : B)) });
      next += numbers.length;
      await disturb();
      for (const n of [0, 1, next >> 1, (next >> 1) + 1, next - 2, next - 1]) {
        const [own, other] = n % 2 === 0 ? [A, B] : [B, A];
        expect(await proposalOf(store, own, proposalId(n))).toEqual(mark(n, own));
        expect(await proposalOf(store, other, proposalId(n))).toBeNull();
      }
      expect(await known(next)).toBe(false);
    }
    for (const n of [0, next - 2 + (next % 2)]) {
      await expect(store.commit(scribe.prepare([audited(A)], { proposals: [mark(n)] }))).rejects.toEqual(refused);
      await again();
    }
  });

  test('N1: a writer that was replaced may miss a mark, but commits nothing; then it finds it', async () => {
    expect(await known(1)).toBe(false);
    const stale = scribe.prepare([audited(A)], { proposals: [mark(1)] });
    await replace();
    expect(await known(1)).toBe(false);
    await expect(store.commit(stale)).rejects.toEqual(conflict);
    expect(await proposalOf(store, A, proposalId(1))).toEqual(mark(1));
    expect(await inputOf(store, A, 'x')).toBe(1);
  });

  test('N1: a writer that was replaced and becomes the writer again knows what was written in between', async () => {
    expect(await known(1)).toBe(false);
    await replace();
    scribe.epoch = await store.acquire();
    await expect(store.commit(scribe.prepare([audited(A)], { proposals: [mark(1)] }))).rejects.toEqual(refused);
  });

  test('N3: a writer that has read what its successor wrote drops its cache', async () => {
    expect(await known(1)).toBe(false);
    await replace();
    for await (const entry of store.tree(A)) expect(entry.tree_id).toBe(A);
    expect(await known(1)).toBe(true);
  });

  test('W2: after a failed write, its marks are unknown and earlier ones are known', async () => {
    await scribe.write(store, [audited(A)], { proposals: [mark(1)] });
    const doubled = scribe.prepare([audited(A)], { proposals: [mark(2), mark(3), mark(2)] });
    await expect(store.commit(doubled)).rejects.toEqual(refused);
    expect([await known(1), await known(2), await known(3)]).toEqual([true, false, false]);
  });
});

describe('the limits of the cache', () => {
  let db: SqliteConnection;
  let numbers: SqliteMarkIndex;
  const insert = (scope: string, name: string, mark_no: number): void => {
    db.prepare('INSERT INTO mark_index VALUES (?, ?, ?)').run(scope, name, mark_no);
  };
  /** Inserts an index row without notifying the store: if the scope is cached, the row is not seen. */
  const isHeld = (scope: string): boolean => {
    db.exec('SAVEPOINT look');
    insert(scope, 'untold', 77);
    const seen = numbers.find({ scope, name: 'untold' }) !== null;
    db.exec('ROLLBACK TO look; RELEASE look');
    return !seen;
  };
  beforeEach(async () => {
    await createSqliteStore(at).close();
    db = openDatabase(at.file, false);
    const tail = new SqliteTail(db);
    tail.refresh();
    numbers = new SqliteMarkIndex(db, tail, { read: 3, scope: 4, names: 8 });
    numbers.isOnlyWriter = true;
  });
  afterEach(() => void db.close());

  test('a scope is loaded once, as a whole', () => {
    insert('s', 'a', 1);
    insert('t', 'b', 2);
    expect(numbers.find({ scope: 's', name: 'b' })).toBeNull();
    expect(isHeld('s')).toBe(true);
    expect(numbers.find({ scope: 's', name: 'a' })).toBe(1);
    numbers.add({ scope: 's', name: 'c' }, 3);
    expect(numbers.find({ scope: 's', name: 'c' })).toBe(3);
  });

  test('nothing is cached where other processes may write', () => {
    expect(numbers.find({ scope: 's', name: 'a' })).toBeNull();
    numbers.isOnlyWriter = false;
    expect(isHeld('s')).toBe(false);
    insert('s', 'a', 1);
    numbers.isOnlyWriter = true;
    expect(numbers.find({ scope: 's', name: 'a' })).toBe(1);
  });

  test('a scope at its limit is cached; one beyond it is not, whether it is loaded or grows', () => {
    for (const [n, name] of ['a', 'b', 'c'].entries()) insert('s', name, n);
    expect(numbers.find({ scope: 's', name: 'a' })).toBe(0);
    expect(isHeld('s')).toBe(true);
    for (const [n, name] of ['d', 'e'].entries()) {
      expect(isHeld('s')).toBe(true);
      insert('s', name, 3 + n);
      numbers.add({ scope: 's', name }, 3 + n);
    }
    expect(isHeld('s')).toBe(false);
    expect(['a', 'd', 'f'].map((name) => numbers.find({ scope: 's', name }))).toEqual([0, 3, null]);
    for (const [n, name] of ['a', 'b', 'c', 'd'].entries()) insert('t', name, n);
    expect(['d', 'a', 'e'].map((name) => numbers.find({ scope: 't', name }))).toEqual([3, 0, null]);
    expect(isHeld('t')).toBe(false);
  });

  test('at the total limit, the oldest scope is evicted', () => {
    const scopes = ['s', 't', 'u', 'v'];
    for (const [n, scope] of scopes.entries()) {
      insert(scope, 'a', n);
      expect(numbers.find({ scope, name: 'a' })).toBe(n);
    }
    // Eight: four scopes with one name each. This is the ninth.
    numbers.add({ scope: 'v', name: 'b' }, 9);
    expect(['v', 'u', 't'].map(isHeld)).toEqual([true, true, true]);
    expect(numbers.find({ scope: 'v', name: 'b' })).toBe(9);
    // It is not loaded again; otherwise scopes that take turns would be loaded each time.
    expect(numbers.find({ scope: 's', name: 'a' })).toBe(0);
    expect(isHeld('s')).toBe(false);
    // Scopes that are not to be loaded count too, and are forgotten in the end.
    for (const name of ['w', 'x', 'y', 'z', 'A', 'B', 'C', 'D', 'E']) {
      expect(numbers.find({ scope: name, name: 'a' })).toBeNull();
    }
    expect(numbers.find({ scope: 's', name: 'a' })).toBe(0);
    expect(isHeld('s')).toBe(true);
  });
});

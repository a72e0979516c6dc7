// What another program can do to the tables of a ledger with SQL, as long as it leaves the triggers alone: nothing.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSqliteStore, openSqliteStore } from '../../src/adapters/sqlite-ledger-store.js';
import { answered, content, opening, proposalId, scribeOf, step, treeId } from '../fixtures/entries.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const [A, B] = [treeId(1), treeId(2)];
const HASH = `zeroblob(32)`;
const TABLES = ['entries', 'artifacts', 'entry_artifacts', 'trees', 'trees_ended', 'roots', 'proposals', 'inputs'];

describe('the guards of a SQLite ledger', () => {
  let at: LedgerFolder;
  let columns: Readonly<Record<string, readonly string[]>>;

  beforeAll(async () => {
    at = ledgerFolder();
    const store = createSqliteStore(at);
    const scribe = await scribeOf(store);
    const proposal = {
      root_run_id: A,
      proposal_id: proposalId(1),
      run_id: `${A}.1`,
      step_index: 1,
      payload_sha256: 'a'.repeat(64),
      seq: 1,
    };
    await scribe.write(
      store,
      [opening(A), opening(B), ...step(A, content('raw_payload', 'p'), content('result', 'r'))],
      {
        proposals: [proposal],
        inputs: [{ tree_id: A, input_id: 'mine', seq: 1 }],
        trees: [{ tree_id: B, state: 'ended' }],
      },
    );
    await store.close();
    columns = withDatabase(at.file, (db) =>
      Object.fromEntries(
        TABLES.map((table) => [
          table,
          db.prepare(`SELECT name FROM pragma_table_info('${table}')`).pluck().all() as string[],
        ]),
      ),
    );
  });
  afterAll(() => at.remove());

  /** Tries a statement on a connection like any other, with recursive triggers as it likes. */
  const attempt = (sql: string, recursiveTriggers: boolean): string =>
    withDatabase(at.file, (db) => {
      db.pragma(`recursive_triggers = ${recursiveTriggers ? 'ON' : 'OFF'}`);
      try {
        db.exec(sql);
        return 'done';
      } catch (error) {
        return String(error);
      }
    });
  const REFUSED = /appended in order|never changes|never removed|never go back|there is one row/;

  test.each(TABLES)('S4-86, C61: no column of %s can be updated, and no row deleted', (table) => {
    expect(columns[table]!.length).toBeGreaterThan(0);
    for (const recursive of [true, false]) {
      for (const column of columns[table]!) {
        expect([column, attempt(`UPDATE ${table} SET ${column} = ${column}`, recursive)]).toEqual([
          column,
          expect.stringMatching(REFUSED),
        ]);
      }
      expect(attempt(`DELETE FROM ${table}`, recursive)).toMatch(REFUSED);
    }
  });

  test.each([
    ['an entry by its index', `INSERT OR REPLACE INTO entries VALUES (3, 0, 99, 'input', '{}', ${HASH})`],
    ['an entry by its place in its tree', `INSERT OR REPLACE INTO entries VALUES (11, 0, 3, 'input', '{}', ${HASH})`],
    ['an entry, quietly', `INSERT OR IGNORE INTO entries SELECT * FROM entries WHERE log_index = 0; SELECT 1`],
    ['a content', `INSERT OR REPLACE INTO artifacts VALUES (0, NULL, ${HASH}, 'policy', 1, x'00')`],
    ['what an entry brought', 'INSERT OR REPLACE INTO entry_artifacts VALUES (0, 0, 1)'],
    ['a tree by its number', `INSERT OR REPLACE INTO trees VALUES (0, 'run_another')`],
    ['a tree by its id', `INSERT OR REPLACE INTO trees VALUES (2, '${A}')`],
    ['a root by its id', `INSERT OR REPLACE INTO roots VALUES (1, '${A}')`],
    [
      'a proposal',
      `INSERT OR REPLACE INTO proposals SELECT root_no, proposal_id, 'run_x', 9, ${HASH}, 9 FROM proposals`,
    ],
    ['an input', `INSERT OR REPLACE INTO inputs VALUES (0, 'mine', 9)`],
    ['the head', `INSERT OR REPLACE INTO meta VALUES (1, 1, 0, ${HASH}, x'', 0)`],
  ])('S4-86, C61: %s cannot be replaced, with recursive triggers or without', (_what, sql) => {
    for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
  });

  test.each([
    ['an entry after a gap in the log', `INSERT INTO entries VALUES (12, 1, 1, 'input', '{}', ${HASH})`],
    ['an entry after a gap in its tree', `INSERT INTO entries VALUES (11, 1, 2, 'input', '{}', ${HASH})`],
    ['an entry that begins a tree at 1', `INSERT INTO entries VALUES (11, 2, 1, 'input', '{}', ${HASH})`],
    ['an entry before the first', `INSERT INTO entries VALUES (-1, 1, 1, 'input', '{}', ${HASH})`],
    ['a content after a gap', `INSERT INTO artifacts VALUES (99, NULL, ${HASH}, 'policy', 1, x'00')`],
    ['content for an entry that has brought its own long ago', 'INSERT INTO entry_artifacts VALUES (0, 4, 0)'],
    ['content of an entry after a gap', 'INSERT INTO entry_artifacts VALUES (11, 1, 0)'],
    ['a tree after a gap', `INSERT INTO trees VALUES (7, 'run_another')`],
  ])('S4-86, C61: %s is refused', (_what, sql) => {
    for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
  });

  test.each(['UPDATE meta SET size = size - 1', 'UPDATE meta SET epoch = epoch - 1', 'DELETE FROM meta'])(
    'D15: the head cannot go back: %s',
    (sql) => {
      for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
    },
  );

  test.each([
    ['a text for a number', `INSERT INTO entries VALUES (11, 1, 'one', 'input', '{}', ${HASH})`],
    ['bytes for a text', `INSERT INTO entries VALUES (11, 1, 1, 'input', x'7b7d', ${HASH})`],
    ['a hash that is cut short', `INSERT INTO entries VALUES (11, 1, 1, 'input', '{}', zeroblob(31))`],
  ])('%s is refused by the table itself', (_what, sql) => {
    expect(attempt(sql, true)).toMatch(/cannot store|CHECK constraint/);
  });

  test('after all of this the ledger is what it was', async () => {
    const store = openSqliteStore(at);
    const scribe = await scribeOf(store);
    expect(await store.head()).toMatchObject({ size: 11 });
    expect(await store.artifactsOf(0)).toHaveLength(4);
    expect(scribe.epoch).toBe(2);
    // The guards let through what the store itself does.
    await expect(store.commit({ ...scribe.prepare([answered(A, null)]), from: 11 })).rejects.toMatchObject({
      code: 'INVARIANT',
    });
    await store.close();
  });
});

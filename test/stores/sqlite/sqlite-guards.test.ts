// The triggers stop other programs from changing the tables of a ledger with SQL, unless they remove the triggers.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { answered, content, opening, proposalId, scribeOf, step, treeId } from '../../fixtures/entries.js';
import { ledgerFolder, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const [A, B, C] = [treeId(1), treeId(2), treeId(3)];
const HASH = 'zeroblob(32)';
/** All columns of a block of one entry, except its position. */
const BLOCK = `NULL, 'input', ${HASH}, '{}'`;
const NEXT = 'SELECT max(artifact_no) + 1';
const TABLES = ['blocks', 'artifacts', 'marks', 'tree_index', 'mark_index', 'artifact_index'];

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
        ended: [B],
      },
    );
    await store.artifact(null, 'a'.repeat(64));
    await store.close();
    // Both indexes start as they would continue: with rows that agree with the blocks and the marks.
    withDatabase(at.file, (db) => {
      db.exec(`INSERT INTO tree_index SELECT tree_id, seq, log_index FROM blocks;
               INSERT INTO mark_index VALUES ('${A}', 'imine', 0)`);
    });
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

  /** Runs a statement on another connection, with recursive triggers on or off. */
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
  const REFUSED = /appended in order|never changes|never removed|never go back|there is one row|keeps its place/;

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
    ['its place', `UPDATE trees SET log_index = 99 WHERE tree_id = '${A}'`],
    ['its id', `UPDATE trees SET tree_id = 'other' WHERE tree_id = '${A}'`],
    ['its case', `UPDATE trees SET case_id = NULL WHERE tree_id = '${A}'`],
    ['its end', `UPDATE trees SET ended = 0 WHERE tree_id = '${B}'`],
    ['the recovery hint of a tree that has ended', `UPDATE trees SET unfinished = 1 WHERE tree_id = '${B}'`],
    ['all of it', 'DELETE FROM trees'],
    ['all of it for another', `INSERT OR REPLACE INTO trees VALUES (0, '${A}', NULL, 1, 0, NULL)`],
    ['a row before it', `INSERT INTO trees VALUES (-1, '${C}', NULL, 0, 1, NULL)`],
  ])('S4-86, C61: a listed tree cannot lose or change %s', (_what, sql) => {
    for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
  });

  test.each([
    ['a block by its index', `INSERT OR REPLACE INTO blocks VALUES (2, '${A}', 99, ${BLOCK})`],
    ['a block within another', `INSERT OR REPLACE INTO blocks VALUES (3, '${A}', 2, ${BLOCK})`],
    ['a block, quietly', `INSERT OR IGNORE INTO blocks SELECT * FROM blocks WHERE log_index = 0; SELECT 1`],
    ['a content', `INSERT OR REPLACE INTO artifacts VALUES (0, NULL, ${HASH}, 'policy', 1, x'00', 0)`],
    ['a row of marks', `INSERT OR REPLACE INTO marks VALUES (0, '[[],[],[]]')`],
    ['a row of the index of trees', `INSERT OR REPLACE INTO tree_index VALUES ('${A}', 0, 1)`],
    ['a row of the index of trees, by an earlier one', `INSERT OR REPLACE INTO tree_index VALUES ('${A}', 1, 1)`],
    [
      'a row of the index of marks, by an earlier one',
      `INSERT OR REPLACE INTO mark_index VALUES ('${A}', 'imine', -1)`,
    ],
    ['a mark in its index', `INSERT OR REPLACE INTO mark_index VALUES ('${A}', 'imine', 9)`],
    ['the head', `INSERT OR REPLACE INTO meta VALUES (1, 1, 0, ${HASH}, x'', 0, 0, 0)`],
  ])('S4-86, C61: %s cannot be replaced, with recursive triggers or without', (_what, sql) => {
    for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
  });

  test.each([
    ['a block after a gap in the log', `INSERT INTO blocks VALUES (12, '${A}', 10, ${BLOCK})`],
    ['a block before the first', `INSERT INTO blocks VALUES (-1, '${A}', 10, ${BLOCK})`],
    ['a row of marks after a gap', `INSERT INTO marks VALUES (7, '[[],[],[]]')`],
    ['a content after a gap', `INSERT INTO artifacts VALUES (99, NULL, ${HASH}, 'policy', 1, x'00', 0)`],
  ])('S4-86, C61: %s is refused', (_what, sql) => {
    for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
  });

  test.each([
    'UPDATE meta SET size = size - 1',
    'UPDATE meta SET epoch = epoch - 1',
    'UPDATE meta SET blocks_indexed = -1',
    'UPDATE meta SET marks_indexed = -1',
    'UPDATE meta SET artifacts_indexed = artifacts_indexed - 1',
    'DELETE FROM meta',
  ])('D15: the head cannot go back: %s', (sql) => {
    for (const recursive of [true, false]) expect(attempt(sql, recursive)).toMatch(REFUSED);
  });

  test.each([
    ['a text for a number', `INSERT INTO blocks VALUES (11, '${A}', 'one', ${BLOCK})`],
    ['bytes for a text', `INSERT INTO blocks VALUES (11, '${A}', 10, NULL, 'input', ${HASH}, x'7b7d')`],
    ['a truncated hash', `INSERT INTO blocks VALUES (11, '${A}', 10, NULL, 'input', zeroblob(63), '{}')`],
    ['a truncated root', `UPDATE meta SET root = zeroblob(31)`],
    ['a frontier of the wrong length', `UPDATE meta SET frontier = zeroblob(33)`],
    ['a second head', `UPDATE meta SET id = 2`],
    ['a size that is not a number', `UPDATE meta SET size = 'many'`],
    ['bytes for marks', `INSERT INTO marks SELECT max(mark_no) + 1, x'00' FROM marks`],
    [
      'a content with a hash of the wrong length',
      `INSERT INTO artifacts ${NEXT}, NULL, x'00', 'policy', 1, x'00', 0 FROM artifacts`,
    ],
    ['a content of no size', `INSERT INTO artifacts ${NEXT}, NULL, ${HASH}, 'policy', 'one', x'00', 0 FROM artifacts`],
    ['a block without a hash', `INSERT INTO blocks VALUES (11, '${A}', 10, NULL, 'input', x'', '{}')`],
  ])('%s is refused by the table itself', (_what, sql) => {
    expect(attempt(sql, true)).toMatch(/cannot store|CHECK constraint/);
  });

  test('the ledger is unchanged after all these attempts', async () => {
    const store = openSqliteStore(at);
    const scribe = await scribeOf(store);
    expect(await store.head()).toMatchObject({ size: 11 });
    expect(await store.artifactsOf({ tree_id: A, seq: 0 })).toHaveLength(4);
    expect(scribe.epoch).toBe(2);
    // The triggers permit what the store itself does.
    await scribe.write(store, [opening(C), answered(C, null)], { ended: [C] });
    expect(await store.head()).toMatchObject({ size: 13 });
    await store.close();
  });
});

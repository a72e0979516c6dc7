// Run records are stored outside the log, and an attacker with another program can change them once the triggers are
// gone. Verification reports it; a reader who finds a malformed or missing record gets the result of folding the
// entries.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import type { RunRecord } from '../../../../src/core/contract/run/run-record.js';
import { homePaths, openHome } from '../../../../src/home/home.js';
import { RecordCheck, type RecordSource } from '../../../../src/core/ledger/verification/check-records.js';
import { RunRecords } from '../../../../src/runtime/ledger/run-records.js';
import { LedgerReader } from '../../../../src/runtime/ledger/ledger-reader.js';
import { dropGuards, withDatabase } from '../../../stores/sqlite/sqlite-harness.js';
import { Bench } from '../../../fixtures/bench.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { proposal } from '../../../fixtures/tree.js';

const json = (action: string, args: object): string => JSON.stringify(proposal(action, args));

let bench: Bench;
/** The agent of the first tree, and the run of its write. */
let agent: string;
let write: string;
let truth: RunRecord;
let folder: string;

beforeAll(async () => {
  folder = tempFolder('check-records');
  bench = await Bench.open();
  for (let tree = 0; tree < 2; tree += 1) {
    const run = await bench.turnpike.startAgent();
    await run.respond(json('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));
    await run.respond(json('DELETE_FILE', { path: '/sandbox/a.sh' }));
    await run.end();
    if (tree === 0) agent = run.run_id;
  }
  write = `${agent}.1.1`;
  truth = (await bench.turnpike.ledger.run(write))!;
  await bench.turnpike.close();
});
afterAll(() => {
  rmSync(bench.folder, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

/** The result of verification, and the record that is read of a run, after a change of the tables. */
async function after(change: (db: Database.Database) => unknown, run_id = write) {
  const home = mkdtempSync(join(folder, 'home-'));
  const paths = homePaths(home);
  cpSync(bench.home, home, { recursive: true });
  withDatabase(paths.ledger, (db) => {
    dropGuards(db);
    change(db);
  });
  const { store, externalHeadStore } = openHome(paths, { readOnly: true });
  try {
    const reader = new LedgerReader(store, externalHeadStore);
    const verdict = await reader.verify();
    return { problems: verdict.ok ? [] : verdict.problems, read: await reader.run(run_id) };
  } finally {
    await store.close();
    await externalHeadStore.close();
  }
}
const exec = (sql: string) => (db: Database.Database) => db.exec(sql);
const ofWrite = (): string => `WHERE run_id = '${write}'`;
const treeOf = (run_id: string): string => run_id.split('.', 1)[0]!;

test('S4-08 S4-43: records that match their entries are no problem', async () => {
  const { problems, read } = await after(() => undefined);
  expect(problems).toEqual([]);
  expect(read).toEqual(truth);
  expect(withDatabase(homePaths(bench.home).ledger, (db) => countOf(db))).toBe(10);
});
const countOf = (db: Database.Database) => db.prepare('SELECT count(*) FROM run_records').pluck().get();

describe('S4-43 S4-70: a stored record that differs from its entries is a problem of its tree', () => {
  test.each<[string, () => string]>([
    [
      'that has another state',
      () => `UPDATE run_records SET record = replace(record, '"completed"', '"cancelled"') ${ofWrite()}`,
    ],
    ['that has other pins', () => `UPDATE run_records SET record = replace(record, '"lanes":"', '"lanes":"0')`],
    [
      'that lacks its outputs',
      () => `UPDATE run_records SET record = json_set(record, '$.outputs.artifact_refs', json('[]'))`,
    ],
    ['that lacks an event', () => `UPDATE run_records SET record = json_remove(record, '$.audit.audit_event_ids[0]')`],
    ['with white space', () => `UPDATE run_records SET record = record || ' ' ${ofWrite()}`],
    ['that is not JSON', () => `UPDATE run_records SET record = 'x' ${ofWrite()}`],
    ['that is too deep', () => `UPDATE run_records SET record = '${'['.repeat(9_000)}' ${ofWrite()}`],
    ['that is missing', () => `DELETE FROM run_records ${ofWrite()}`],
    ['of a run that there is not', () => `INSERT INTO run_records VALUES ('${treeOf(agent)}', '${agent}.9', '{}')`],
    [
      'of another run',
      () => `UPDATE run_records SET record = (SELECT record FROM run_records WHERE run_id = '${agent}') ${ofWrite()}`,
    ],
    ['of fewer entries', () => `UPDATE recorded_trees SET seq = seq - 4 WHERE tree_id = '${treeOf(agent)}'`],
  ])('%s', async (_what, sql) => {
    const { problems } = await after(exec(sql()));
    expect(problems.length).toBeGreaterThan(0);
    for (const problem of problems) {
      expect(problem).toMatchObject({ rule: 'record.differs', log_index: expect.any(Number) });
    }
    expect(problems.map(({ tree_id }) => tree_id)).toContain(treeOf(agent));
  });

  test.each<[string, () => string, string | null]>([
    ['of more entries than there are', () => `UPDATE recorded_trees SET seq = seq + 1`, null],
    ['of a tree that there is not', () => `INSERT INTO recorded_trees VALUES ('run_nobody', 0, 7)`, 'run_nobody'],
  ])('%s', async (_what, sql, tree_id) => {
    const { problems } = await after(exec(sql()));
    expect(problems.length).toBeGreaterThan(0);
    for (const problem of problems) expect(problem).toMatchObject({ rule: 'record.differs', log_index: null });
    if (tree_id !== null) expect(problems).toMatchObject([{ tree_id }]);
  });

  test('a missing table is reported once, and the log is verified nevertheless', async () => {
    const { problems, read } = await after((db) => {
      db.exec('DROP TABLE run_records');
      db.exec(`UPDATE blocks SET leaf_hashes = randomblob(length(leaf_hashes)) WHERE log_index = 0`);
    });
    const rules = problems.map(({ rule }) => rule);
    expect(rules.filter((rule) => rule === 'record.differs')).toHaveLength(1);
    expect(rules).toContain('entry.leaf_hash');
    expect(read).toEqual(truth);
  });
});

test.each([
  ['no record', `'{"run_id":1}'`],
  ['no JSON', `'x'`],
  ['the record of another run', `(SELECT record FROM run_records ORDER BY run_id LIMIT 1)`],
])('S4-08: if %s is stored, the entries are read', async (_what, value) => {
  expect((await after(exec(`UPDATE run_records SET record = ${value}`))).read).toEqual(truth);
  expect((await after(exec('DELETE FROM run_records'))).read).toEqual(truth);
  expect((await after(exec('DELETE FROM recorded_trees'))).read).toEqual(truth);
});

test('S4-08: a record of a run that is not in the ledger is read only if its tree counts as recorded', async () => {
  const unknownRun = 'run_nobody';
  const { read } = await after((db) => {
    const text = JSON.stringify({ ...truth, run_id: unknownRun });
    db.prepare('INSERT INTO run_records VALUES (?, ?, ?)').run(unknownRun, unknownRun, text);
  }, unknownRun);
  expect(read).toBeNull();
});

test('a tree that is marked as unrecordable, and an unrecorded one, are no problem, whatever is stored about them', async () => {
  const nonsense = `UPDATE run_records SET record = 'x'`;
  expect((await after(exec(`${nonsense}; UPDATE recorded_trees SET seq = 0`))).problems).toEqual([]);
  expect((await after(exec(`${nonsense}; DELETE FROM recorded_trees`))).problems).toEqual([]);
});

test('an altered entry is reported as altered, and not as a record that differs', async () => {
  const { problems } = await after((db) =>
    db.exec(`UPDATE blocks SET texts = replace(texts, 'reason":"completed"', 'reason":"cancelled"')`),
  );
  expect(problems.length).toBeGreaterThan(0);
  expect(problems.filter(({ rule }) => rule === 'record.differs')).toEqual([]);
});

test.each([
  ['has them later, because another worker integrates them', true, []],
  ['never has them', false, ['record.differs']],
] as const)('records of entries that the log %s', async (_what, later, rules) => {
  const questions: unknown[] = [];
  const check = new RecordCheck({
    table: {
      trees: async function* () {
        yield await Promise.resolve({ tree_id: 'run_1', seq: 5 });
      },
    } as unknown as RecordSource['table'],
    newFold: () => new RunRecords(),
    isAfter: (tree_id, size) => {
      questions.push([tree_id, size]);
      return Promise.resolve(later);
    },
  });
  await check.begin();
  const found: string[] = [];
  for await (const { rule } of check.finish(17)) found.push(rule);
  expect(found).toEqual(rules);
  expect(questions).toEqual([['run_1', 17]]);
});

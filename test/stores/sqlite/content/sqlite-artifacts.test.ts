import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createSqliteStore, openSqliteStore } from '../../../../src/stores/sqlite/sqlite-ledger-store.js';
import { type Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { EMPTY_HEAD, extendHead } from '../../../../src/core/ledger/proof/merkle.js';
import type { LedgerStore } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { all, answered, content, opening, Scribe, scribeOf, treeId } from '../../../fixtures/entries.js';
import { dropGuards, ledgerFolder, withDatabase, type LedgerFolder } from '../sqlite-harness.js';
import { requireContent } from '../../../../src/core/ledger/require-content.js';

const textsOf = (found: readonly Artifact[]) => found.map(({ bytes }) => Buffer.from(bytes).toString());
const [A, B] = [treeId(1), treeId(2)];
const LARGE = new Uint8Array(256 * 1_024 + 1).fill(7);
const HASH = sha256(LARGE);

describe('content in a SQLite ledger', () => {
  let at: LedgerFolder;
  let store: LedgerStore;
  let scribe: Scribe;

  beforeEach(async () => {
    at = ledgerFolder();
    store = createSqliteStore(at);
    scribe = await scribeOf(store);
    await scribe.write(store, [opening(A)]);
  });
  afterEach(async () => {
    await store.close();
    at.remove();
  });

  const rows = (sql: string): readonly unknown[] => withDatabase(at.file, (db) => db.prepare(sql).raw().all());
  const reopen = async (): Promise<void> => {
    await store.close();
    store = openSqliteStore(at);
    scribe.epoch = await store.acquire();
  };

  test('S4-83: up to 256 KiB are in the database, more in a file by case and hash', async () => {
    const small = LARGE.subarray(1);
    await scribe.write(store, [answered(A, content('result', small)), answered(A, content('result', LARGE))]);
    expect(rows(`SELECT byte_size, bytes IS NULL FROM artifacts WHERE kind = 'result'`)).toEqual([
      [small.length, 0],
      [LARGE.length, 1],
    ]);
    const path = join(at.artifactsDir, 'case-0001', HASH.slice(0, 2), `${HASH}.1`);
    // Encrypted, with its authentication tag: content of a case is stored nowhere in plain form.
    expect(readFileSync(path)).toHaveLength(LARGE.length + 16);
    expect(readFileSync(path).includes(Buffer.from(LARGE.subarray(0, 64)))).toBe(false);
    expect(
      readdirSync(at.artifactsDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
    ).toHaveLength(1);
    await scribe.write(store, [answered(A, content('machines', LARGE, null))]);
    expect(existsSync(join(at.artifactsDir, '_system', HASH.slice(0, 2), HASH))).toBe(true);
  });

  test('files of archived contents are removed, encrypted or not, truncated or not; others stay', async () => {
    const other = LARGE.map(() => 8);
    const case_id = 'case-0001';
    await scribe.write(store, [answered(A, content('result', LARGE)), answered(A, content('machines', LARGE, null))], {
      ended: [A],
    });
    const size = scribe.head.size;
    await scribe.write(store, [opening(B), answered(B, content('result', other))]);
    const folder = join(at.artifactsDir, case_id, HASH.slice(0, 2));
    for (const name of [HASH, `${HASH}.2.part`, `${HASH}.txt`]) writeFileSync(join(folder, name), 'left over');
    const leaves: string[] = [];
    for await (const { log_index, leaf_hash } of store.log()) if (log_index < size) leaves.push(leaf_hash);
    const part = { ...extendHead(EMPTY_HEAD, leaves), sha256: HASH, note: null };
    const trees = [{ tree_id: A, entries: leaves.length }];
    scribe.epoch = await store.archives.remove({ epoch: scribe.epoch, part, trees, cases: [case_id] });
    await store.archives.tidy();
    const files = readdirSync(at.artifactsDir, { recursive: true, withFileTypes: true });
    const names = files.filter((entry) => entry.isFile()).map(({ name }) => name);
    expect(names.sort()).toEqual([`${HASH}.txt`, `${sha256(other)}.1`].sort());
  });

  test.each([1, 7, 8, 9, 16, 17])('%i contents of one commit come back, each for its entry', async (count) => {
    for (let round = 0; round < 3; round += 1) {
      const contents = Array.from({ length: count }, (_, n) => content('result', `content ${round} ${n}`));
      // Every third one existed before.
      const brought = contents.map((one, n) => (n % 3 === 2 ? content('result', 'again') : one));
      const { trees } = await scribe.write(
        store,
        brought.map((one) => answered(A, one)),
      );
      for (const [n, { bytes }] of brought.entries()) {
        const found = requireContent(await store.artifactsOf({ tree_id: A, seq: trees[0]!.from + n }));
        expect(found.map((one) => Buffer.from(one.bytes).toString())).toEqual([Buffer.from(bytes).toString()]);
      }
    }
    const numbers = rows('SELECT artifact_no FROM artifacts').flat();
    expect(numbers).toEqual(numbers.map((_, n) => n));
  });

  test('a draft that a crash left is overwritten when the content is stored again', async () => {
    const path = join(at.artifactsDir, 'case-0001', HASH.slice(0, 2), `${HASH}.1`);
    await scribe.write(store, [answered(A, content('result', LARGE))]);
    writeFileSync(`${path}.part`, 'torn');
    writeFileSync(path, 'torn');
    await expect(store.artifactsOf({ tree_id: A, seq: 1 })).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    await reopen();
    await scribe.write(store, [answered(A, content('result', LARGE))]);
    expect(sha256(requireContent(await store.artifactsOf({ tree_id: A, seq: 1 }))[0]!.bytes)).toBe(HASH);
    expect(existsSync(`${path}.part`)).toBe(false);
  });

  test('content is not hashed again when it is written; a wrong hash is noticed when it is read', async () => {
    const batch = scribe.prepare([answered(A, content('result', 'r'))]);
    const trees = batch.trees.map((append) => ({
      ...append,
      artifacts: append.artifacts.map((brought) => ({ ...brought, sha256: sha256('s') })),
    }));
    await store.commit({ ...batch, trees });
    await expect(store.artifactsOf({ tree_id: A, seq: 1 })).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    await expect(store.artifact('case-0001', sha256('s'))).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
  });

  test('a missing or changed file is LEDGER_TAMPERED', async () => {
    await scribe.write(store, [answered(A, content('result', LARGE))]);
    const path = join(at.artifactsDir, 'case-0001', HASH.slice(0, 2), `${HASH}.1`);
    const other = Buffer.from(LARGE);
    other[1_000] = 8;
    for (const damage of [
      () => writeFileSync(path, other),
      () => writeFileSync(path, LARGE.subarray(1)),
      () => rmSync(path),
    ]) {
      damage();
      await expect(store.artifactsOf({ tree_id: A, seq: 1 })).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
      await expect(store.artifact('case-0001', HASH)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    }
  });

  test('if a large content cannot be written, nothing of its batch is', async () => {
    writeFileSync(at.artifactsDir, 'a file where the folder should be');
    await expect(scribe.write(store, [answered(A, content('result', LARGE))])).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
    });
    expect(await store.head()).toMatchObject({ size: 1 });
    expect(rows('SELECT count(*) FROM artifacts')).toEqual([[4]]);
  });

  test('D14: equal content is stored once in a case, and once more in another', async () => {
    await scribe.write(store, [
      opening(B),
      answered(A, content('result', 'same')),
      answered(A, content('result', 'same')),
    ]);
    await scribe.write(store, [
      answered(A, content('result', 'same')),
      answered(A, content('result', 'same', 'case-0002')),
    ]);
    expect(rows(`SELECT case_id, kind, count(*) FROM artifacts GROUP BY 1, 2 ORDER BY 1, 2`)).toEqual([
      [null, 'machines', 1],
      [null, 'policy', 3],
      ['case-0001', 'result', 1],
      ['case-0002', 'result', 1],
    ]);
    // Content stored before this process started is not recognised: it may be stored again, and is found all the same.
    await reopen();
    await scribe.write(store, [answered(A, content('result', 'same'))]);
    const entries = (await all(store.log())).slice(2);
    for (const entry of entries) expect(textsOf(requireContent(await store.artifactsOf(entry)))).toEqual(['same']);
    expect(entries).toHaveLength(5);
    expect(Buffer.from((await store.artifact('case-0001', sha256('same')))!).toString()).toBe('same');
  });

  test('D14: commits do not write the index by hash: it is extended by a lookup', async () => {
    const indexed = () => rows('SELECT (SELECT artifacts_indexed FROM meta), (SELECT count(*) FROM artifact_index)')[0];
    await scribe.write(
      store,
      Array.from({ length: 2_500 }, (_, n) => answered(A, content('result', `${n}`))),
    );
    expect(indexed()).toEqual([0, 0]);
    const reader = openSqliteStore({ ...at, readOnly: true });
    for (const n of [0, 999, 2_499]) expect(await reader.artifact('case-0001', sha256(`${n}`))).not.toBeNull();
    expect(indexed()).toEqual([0, 0]);
    expect(await store.artifact('case-0001', sha256('2499'))).not.toBeNull();
    expect(indexed()).toEqual([2_504, 2_504]);
    await scribe.write(store, [answered(A, content('result', 'new'))]);
    expect(indexed()).toEqual([2_504, 2_504]);
    for (const text of ['0', '2499', 'new']) expect(await reader.artifact('case-0001', sha256(text))).not.toBeNull();
    await reader.close();
  });

  test('a case id that is a path leads to no file, not even to one with the same content', async () => {
    await scribe.write(store, [answered(A, content('result', LARGE))]);
    await store.close();
    cpSync(join(at.artifactsDir, 'case-0001'), join(at.folder, 'outside'), { recursive: true });
    withDatabase(at.file, (db) => {
      dropGuards(db);
      db.exec(`UPDATE artifacts SET case_id = '../outside' WHERE bytes IS NULL`);
    });
    store = openSqliteStore({ ...at, readOnly: true });
    await expect(store.artifactsOf({ tree_id: A, seq: 1 })).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
  });

  test.each([
    ['its bytes', `UPDATE artifacts SET bytes = x'00' WHERE kind = 'result'`],
    ['its hash', `UPDATE artifacts SET sha256 = zeroblob(32) WHERE kind = 'result'`],
    ['its size', `UPDATE artifacts SET byte_size = 2 WHERE kind = 'result'`],
    ['its encryption taken away', `UPDATE artifacts SET bytes = CAST('r' AS BLOB), sealed = 0 WHERE kind = 'result'`],
    ['its kind', `UPDATE artifacts SET kind = 'other' WHERE kind = 'result'`],
    ['its bytes taken away', `UPDATE artifacts SET bytes = NULL WHERE kind = 'result'`],
    ['a path for a case', `UPDATE artifacts SET bytes = NULL, case_id = '../../..' WHERE kind = 'result'`],
    ['its row removed', `DELETE FROM artifacts WHERE kind = 'result'`],
    ['its number', `UPDATE blocks SET artifacts = '{"0":[99]}' WHERE log_index = 1`],
    ['a text for its number', `UPDATE blocks SET artifacts = '{"0":["4"]}' WHERE log_index = 1`],
    ['another value for its number', `UPDATE blocks SET artifacts = '{"0":4}' WHERE log_index = 1`],
    ['another value for the list', `UPDATE blocks SET artifacts = 'null' WHERE log_index = 1`],
    ['the list truncated', `UPDATE blocks SET artifacts = '{"0":[4' WHERE log_index = 1`],
  ])('reading content with %s changed is LEDGER_TAMPERED', async (_what, sql) => {
    await scribe.write(store, [answered(A, content('result', 'r'))]);
    await store.close();
    withDatabase(at.file, (db) => {
      dropGuards(db);
      db.exec(sql);
    });
    store = openSqliteStore({ ...at, readOnly: true });
    await expect(store.artifactsOf({ tree_id: A, seq: 1 })).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    expect(requireContent(await store.artifactsOf({ tree_id: A, seq: 0 }))).toHaveLength(4);
  });
});

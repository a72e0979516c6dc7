import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openDatabase } from '../../../src/stores/sqlite/sqlite-database.js';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { FORMAT_VERSION, OLD_APPLICATION_ID } from '../../../src/stores/sqlite/sqlite-schema.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { all, answered, audited, content, opening, Scribe, scribeOf, step, treeId } from '../../fixtures/entries.js';
import { failedCommitContract } from '../ledger/failed-commit.contract.js';
import type { LedgerUnderTest } from '../ledger/ledger-bench.js';
import { ledgerStoreContract } from '../ledger/ledger-store.contract.js';
import { dropGuards, ledgerFolder, thrownBy, withDatabase, type LedgerFolder } from './sqlite-harness.js';

const A = treeId(1);
const code = (name: string) => expect.objectContaining({ code: name });

/** A foreign trigger makes an insert fail; a deferred foreign key makes the COMMIT fail. */
const BREAK_INSERT = `CREATE TRIGGER breakage BEFORE INSERT ON blocks BEGIN SELECT RAISE(ABORT, 'broken'); END`;
const BREAK_COMMIT = `
  CREATE TABLE a (x INTEGER PRIMARY KEY);
  CREATE TABLE b (x INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED);
  CREATE TRIGGER breakage AFTER INSERT ON blocks BEGIN INSERT INTO b VALUES (1); END`;
const REPAIR = 'DROP TRIGGER IF EXISTS breakage; DROP TABLE IF EXISTS b; DROP TABLE IF EXISTS a;';

const makeLedger = (breakage: string) => (): LedgerUnderTest => {
  const at = ledgerFolder();
  const exec = (sql: string) => withDatabase(at.file, (db) => void db.exec(sql));
  createSqliteStore(at)
    .close()
    .catch(() => undefined);
  return {
    open: () => openSqliteStore(at),
    openReader: () => openSqliteStore({ ...at, readOnly: true }),
    loseLock: () => rmSync(`${at.file}.lock`),
    breakCommits: () => exec(breakage),
    repair: () => exec(REPAIR),
    remove: at.remove,
  };
};

ledgerStoreContract('SQLite, where the insert fails when a commit fails', makeLedger(BREAK_INSERT));

describe('a ledger store: SQLite, where the COMMIT fails when a commit fails', () => {
  failedCommitContract(makeLedger(BREAK_COMMIT));
});

describe('the SQLite store', () => {
  let at: LedgerFolder;
  let opened: LedgerStore[];
  const keep = (store: LedgerStore): LedgerStore => {
    opened.push(store);
    return store;
  };

  beforeEach(() => {
    at = ledgerFolder();
    opened = [];
  });
  afterEach(async () => {
    for (const store of opened) await store.close();
    at.remove();
  });

  describe('creating and opening', () => {
    test('a missing ledger cannot be opened, and opening does not create it', () => {
      for (const readOnly of [true, false]) {
        expect(thrownBy(() => openSqliteStore({ ...at, readOnly }))).toEqual(code('LEDGER_UNAVAILABLE'));
      }
      expect(existsSync(at.file)).toBe(false);
    });

    test('an existing ledger cannot be created again', async () => {
      const store = keep(createSqliteStore(at));
      await (await scribeOf(store)).write(store, [opening(A)]);
      expect(thrownBy(() => createSqliteStore(at))).toEqual(code('LEDGER_UNAVAILABLE'));
      expect(await store.head()).toMatchObject({ size: 1 });
    });

    test('does not create a ledger in a missing folder', () => {
      const file = join(at.folder, 'no', 'ledger.db');
      expect(thrownBy(() => createSqliteStore({ ...at, file }))).toEqual(code('LEDGER_UNAVAILABLE'));
    });

    test.each<[string, (file: string) => void]>([
      ['an empty file', (file) => writeFileSync(file, '')],
      ['a text', (file) => writeFileSync(file, 'this is no ledger\n'.repeat(1_000))],
      ['a database of another program', (file) => withDatabase(file, (db) => void db.exec('CREATE TABLE t (x)'))],
    ])('%s is not opened as a ledger, and not changed', (_what, make) => {
      make(at.file);
      const before = readFileSync(at.file);
      for (const readOnly of [true, false]) {
        expect(thrownBy(() => openSqliteStore({ ...at, readOnly }))).toEqual(code('LEDGER_TAMPERED'));
      }
      expect(readFileSync(at.file).equals(before)).toBe(true);
    });

    test.each([
      ['of a later format', `user_version = ${FORMAT_VERSION + 1}`, 'LEDGER_UNSUPPORTED', /format 2.*knows 1.*use the/],
      ['without a format', 'user_version = 0', 'LEDGER_TAMPERED', /is not a Turnpike ledger/],
      [
        'from before formats began again',
        `application_id = ${OLD_APPLICATION_ID}`,
        'LEDGER_UNSUPPORTED',
        /export the ledger with `turnpike ledger export` of that version/,
      ],
    ])('a ledger %s is refused, and the message says what to do', async (_what, pragma, name, message) => {
      await createSqliteStore(at).close();
      withDatabase(at.file, (db) => db.pragma(pragma));
      const refusal = { code: name, message: expect.stringMatching(message) };
      for (const readOnly of [true, false]) {
        expect(thrownBy(() => openSqliteStore({ ...at, readOnly }))).toEqual(expect.objectContaining(refusal));
      }
    });

    test('opening a folder as a ledger is LEDGER_UNAVAILABLE', () => {
      expect(thrownBy(() => openSqliteStore({ ...at, file: at.folder }))).toEqual(code('LEDGER_UNAVAILABLE'));
    });

    test('reading a ledger file that was truncated in the middle is LEDGER_TAMPERED', async () => {
      const store = createSqliteStore(at);
      const scribe = await scribeOf(store);
      await scribe.write(store, [opening(A), ...Array.from({ length: 200 }, () => audited(A))]);
      await store.close();
      truncateSync(at.file, 8_192 * 17);
      const verdict = (async () => all(keep(openSqliteStore({ ...at, readOnly: true })).log()))();
      await expect(verdict).rejects.toEqual(code('LEDGER_TAMPERED'));
    });

    test('S4-86: a ledger without its triggers is not opened for writing, but can be read', async () => {
      const store = createSqliteStore(at);
      await (await scribeOf(store)).write(store, [opening(A)]);
      await store.close();
      withDatabase(at.file, dropGuards);
      expect(thrownBy(() => openSqliteStore(at))).toEqual(code('LEDGER_TAMPERED'));
      expect(await all(keep(openSqliteStore({ ...at, readOnly: true })).log())).toHaveLength(1);
    });

    test.each([
      'DROP TABLE marks',
      'DROP TABLE meta',
      'DROP INDEX first_blocks',
      'ALTER TABLE blocks ADD COLUMN x TEXT',
    ])('a ledger after %s is LEDGER_TAMPERED', async (sql) => {
      await createSqliteStore(at).close();
      withDatabase(at.file, (db) => void db.exec(sql));
      expect(thrownBy(() => openSqliteStore(at))).toEqual(code('LEDGER_TAMPERED'));
    });

    test('only the owner can read the files', async () => {
      const store = keep(createSqliteStore(at));
      const large = content('file_content', new Uint8Array(300_000));
      await (await scribeOf(store)).write(store, [opening(A), answered(A, large)]);
      const hash = sha256(large.bytes);
      const stored = join(at.artifactsDir, 'case-0001', hash.slice(0, 2), `${hash}.1`);
      for (const path of [at.file, `${at.file}-wal`, `${at.file}-shm`, `${at.file}.lock`, stored]) {
        expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
      }
      expect(statSync(at.artifactsDir).mode & 0o077).toBe(0);
    });

    test('a reader cannot become the writer', async () => {
      keep(createSqliteStore(at));
      await expect(keep(openSqliteStore({ ...at, readOnly: true })).acquire()).rejects.toEqual(
        code('LEDGER_UNAVAILABLE'),
      );
    });
  });

  test('a ledger that cannot be reopened yet can still be read, and reopening can be retried', async () => {
    const store = keep(createSqliteStore(at));
    const scribe = await scribeOf(store);
    await scribe.write(store, [opening(A)]);
    mkdirSync(`${at.file}.probe`);
    await expect(store.reopen()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    expect(await all(store.log())).toHaveLength(1);
    rmSync(`${at.file}.probe`, { recursive: true });
    renameSync(at.file, `${at.file}.away`);
    await expect(store.reopen()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    await expect(store.head()).rejects.toEqual(code('LEDGER_UNAVAILABLE'));
    renameSync(`${at.file}.away`, at.file);
    await store.reopen();
    await expect(keep(openSqliteStore(at)).acquire()).rejects.toEqual(code('LEDGER_LOCKED'));
    scribe.epoch = await store.acquire();
    await scribe.write(store, [audited(A)]);
    expect(await all(store.log())).toHaveLength(2);
    expect(readdirSync(dirname(at.file)).filter((name) => name.endsWith('.probe'))).toEqual([]);
  });

  describe('durability', () => {
    test('S4-86: every commit is flushed: WAL with synchronous FULL, and the triggers also reject REPLACE', async () => {
      await createSqliteStore(at).close();
      const db = openDatabase(at.file, false);
      const settings = [
        'journal_mode',
        'synchronous',
        'page_size',
        'wal_autocheckpoint',
        'recursive_triggers',
        'trusted_schema',
      ];
      const found = Object.fromEntries(settings.map((name) => [name, db.pragma(name, { simple: true })]));
      db.close();
      expect(found).toEqual({
        journal_mode: 'wal',
        synchronous: 2,
        page_size: 8_192,
        wal_autocheckpoint: 1_000,
        recursive_triggers: 1,
        trusted_schema: 0,
      });
    });

    test('committed data is in a copy of the files that was made without closing the store', async () => {
      const store = keep(createSqliteStore(at));
      const scribe = await scribeOf(store);
      await scribe.write(store, [opening(A), ...step(A, content('raw_payload', 'p'), content('result', 'r'))]);
      const copy = ledgerFolder();
      for (const suffix of ['', '-wal']) writeFileSync(copy.file + suffix, readFileSync(at.file + suffix));
      const reader = openSqliteStore({ ...copy, readOnly: true });
      expect(await reader.head()).toEqual(scribe.head);
      await reader.close();
      const recovered = openSqliteStore(copy);
      expect(await recovered.head()).toEqual(scribe.head);
      expect(await all(recovered.log())).toEqual(await all(store.log()));
      await recovered.close();
      copy.remove();
    });

    test('a ledger continues after it was closed and opened: log indexes, contents, marks, epoch', async () => {
      const scribe = new Scribe();
      let epoch = 0;
      createSqliteStore(at)
        .close()
        .catch(() => undefined);
      for (let round = 1; round <= 3; round += 1) {
        const store = openSqliteStore(at);
        scribe.epoch = await store.acquire();
        expect(scribe.epoch).toBeGreaterThan(epoch);
        epoch = scribe.epoch;
        await scribe.write(store, [opening(treeId(round)), answered(treeId(round), content('result', 'the same'))]);
        await scribe.write(store, round > 1 ? [audited(treeId(round - 1))] : []);
        await store.close();
      }
      const store = keep(openSqliteStore(at));
      expect(await store.head()).toEqual(scribe.head);
      expect(await all(store.trees())).toHaveLength(3);
      expect(existsSync(`${at.file}-wal`)).toBe(true);
    });
  });
});

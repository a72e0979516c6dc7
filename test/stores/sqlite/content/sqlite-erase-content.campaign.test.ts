// An erasure in a SQLite ledger is atomic, whatever interrupts it, and leaves no plain content.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { createSqliteStore, openSqliteStore } from '../../../../src/stores/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type { LedgerStore } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { audited, answered, CASE, content, opening, treeId, scribeOf, type Scribe } from '../../../fixtures/entries.js';
import { ledgerFolder, withoutGuards, type LedgerFolder } from '../sqlite-harness.js';

const A = treeId(1);
const SECRET = 'in confidence, and for nobody else';
const LARGE = Buffer.alloc(300_000, SECRET);
const ERASURE = { case_id: CASE, tree_ids: [A], at: '2026-01-01T00:00:00.000Z', by: 'a person' };

describe('D14: an erasure in a SQLite ledger', () => {
  let at: LedgerFolder;
  let store: LedgerStore;
  let scribe: Scribe;
  beforeEach(async () => {
    at = ledgerFolder();
    store = createSqliteStore(at);
    scribe = await scribeOf(store);
    await scribe.write(store, [
      opening(A),
      answered(A, content('result', SECRET)),
      answered(A, content('result', LARGE)),
    ]);
  });
  afterEach(async () => {
    await store.close();
    at.remove();
  });
  const keys = (): readonly string[] =>
    readdirSync(join(at.folder, 'keys/cases')).filter((name) => name.endsWith('.key'));
  const filesWith = (text: string): readonly string[] =>
    readdirSync(at.folder, { recursive: true, encoding: 'utf8' }).filter((name) => {
      const path = join(at.folder, name);
      return statSync(path).isFile() && readFileSync(path).includes(text);
    });
  const reopen = async (): Promise<void> => {
    await store.close();
    store = openSqliteStore(at);
    scribe.epoch = await store.acquire();
  };

  test('changes nothing while a reader blocks the truncation of the WAL, and can be repeated', async () => {
    const snapshot = { tree_id: A, seq: 3, text: SECRET, mac: sha256(SECRET) };
    await scribe.write(store, [audited(A)], { snapshots: [snapshot] });
    const reader = new Database(at.file, { readonly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM blocks').get();
    await expect(store.erase(ERASURE)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(keys()).toEqual([`${CASE}.1.key`]);
    expect(await store.artifactsOf({ tree_id: A, seq: 1 })).toMatchObject([{ bytes: Buffer.from(SECRET) }]);
    reader.close();
    expect(await store.erase(ERASURE)).toMatchObject({ contents: 2 });
    expect(filesWith(SECRET)).toEqual([]);
    expect(keys()).toEqual([]);
  }, 20_000);

  test('destroys no key if the ledger cannot be written', async () => {
    const other = new Database(at.file);
    other.exec('BEGIN IMMEDIATE');
    await expect(store.erase(ERASURE)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    other.close();
    expect(keys()).toEqual([`${CASE}.1.key`]);
    expect(await store.erase(ERASURE)).toMatchObject({ contents: 2 });
  }, 20_000);

  test('is refused if content of the case is not encrypted, which no key can erase', async () => {
    await store.close();
    withoutGuards(at.file, (db) => {
      const plain = db.prepare('UPDATE artifacts SET bytes = ?, sealed = 0 WHERE case_id = ? AND byte_size = ?');
      plain.run(Buffer.from(SECRET), CASE, SECRET.length);
    });
    await reopen();
    await expect(store.erase(ERASURE)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
    expect(keys()).toEqual([`${CASE}.1.key`]);
  });

  test('destroys the key even if all content was archived, because copies of the rows may exist', async () => {
    await store.close();
    withoutGuards(at.file, (db) => db.prepare('DELETE FROM artifacts WHERE case_id = ?').run(CASE));
    await reopen();
    expect(await store.erase(ERASURE)).toEqual({ contents: 0, bytes: 0 });
    expect(keys()).toEqual([]);
    expect(await store.erase(ERASURE)).toEqual({ contents: 0, bytes: 0 });
    expect(keys()).toEqual([]);
  });
});

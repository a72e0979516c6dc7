// The contents of a case are encrypted with another key in a SQLite ledger: what any program finds on the disk then.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { caseCipher } from '../../../../src/stores/keys/case-keys.js';
import { createSqliteStore, openSqliteStore } from '../../../../src/stores/sqlite/sqlite-ledger-store.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type { CaseKeyTable } from '../../../../src/engine/ports/ledger/case-key-table.js';
import type { LedgerStore } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { answered, CASE, content, opening, treeId, scribeOf, type Scribe } from '../../../fixtures/entries.js';
import { random } from '../../../fixtures/random.js';
import { ledgerFolder, withDatabase, withoutGuards, type LedgerFolder } from '../sqlite-harness.js';
import { openCaseKeyTable } from '../../../../src/stores/sqlite/content/sqlite-case-key-table.js';

const A = treeId(1);
const BY = { at: '2026-01-01T00:00:00.000Z', by: 'a person', role: 'operator' };
const CANARY = 'canary-of-a-case';
const draw = random(11);
const bytesOf = (size: number): Buffer => Buffer.from(Array.from({ length: size }, () => Math.floor(draw() * 256)));
/** Around the sizes of a row, a page and a file. */
const SIZES = [0, 1, 100, 7_000, 8_192, 9_000, 40_000, 262_144, 262_145, 400_000];
const CONTENTS = SIZES.map((size, at) => Buffer.concat([Buffer.from(`${CANARY}-${at}-`), bytesOf(size)]));

/** Small contents, of which pages of the database keep copies when they are full. */
const SMALL = Array.from({ length: 1_500 }, (_, at) => bytesOf(30 + ((at * 61) % 900)));

describe('a rotation of a case key in a SQLite ledger', () => {
  let at: LedgerFolder;
  let store: LedgerStore;
  let scribe: Scribe;
  const table = (): CaseKeyTable => store.caseKeys!;
  beforeEach(async () => {
    at = ledgerFolder();
    store = createSqliteStore({ ...at, caseKeyTable: openCaseKeyTable });
    scribe = await scribeOf(store);
    await scribe.write(store, [opening(A), ...CONTENTS.map((bytes) => answered(A, content('result', bytes)))]);
  });
  afterEach(async () => {
    await store.close();
    at.remove();
  });

  const files = (): readonly string[] =>
    readdirSync(at.folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(at.folder, name)).isFile(),
    );
  const filesWith = (bytes: string | Buffer): readonly string[] =>
    files().filter((name) => readFileSync(join(at.folder, name)).includes(bytes));
  /** A part of what each content looks like under this key. */
  const sealedBy = (no: number): readonly Buffer[] => {
    const line = readFileSync(join(at.folder, `keys/cases/${CASE}.${no}.key`), 'utf8');
    const cipher = caseCipher(Buffer.from(line.trim().split(' ')[1]!, 'base64'));
    return CONTENTS.map((bytes) => cipher.seal(bytes, Buffer.from(sha256(bytes), 'hex')).subarray(0, 24));
  };
  /** How many of these 8-byte values the database file has, at any place. */
  const countIn = (file: Buffer, values: readonly Buffer[]): number => {
    const wanted = new Set(values.map((bytes) => bytes.readBigUInt64LE(0)));
    let found = 0;
    for (let place = 0; place + 8 <= file.length; place += 1) {
      if (wanted.has(file.readBigUInt64LE(place))) found += 1;
    }
    return found;
  };
  const isFound = (parts: readonly Buffer[]): readonly boolean[] => parts.map((part) => filesWith(part).length > 0);
  const expectReadable = async (from = store): Promise<void> => {
    for (const [index, bytes] of CONTENTS.entries()) {
      const [read] = await from.artifactsOf({ tree_id: A, seq: index + 1 });
      expect(read !== undefined && 'bytes' in read && Buffer.from(read.bytes).equals(bytes)).toBe(true);
    }
  };
  const resealAll = async (): Promise<number> => {
    let contents = 0;
    for (let from: number | null = 0; from !== null;) {
      const part: { readonly contents: number; readonly next: number | null } = await table().reseal([CASE], from);
      contents += part.contents;
      from = part.next;
    }
    return contents;
  };

  test('leaves nothing on the disk that the old key opens, and no plain content; an erasure then leaves nothing', async () => {
    const old = sealedBy(1);
    expect(isFound(old)).toEqual(CONTENTS.map(() => true));
    expect(await table().begin(CASE, BY)).toEqual({ case_id: CASE, key_no: 1, contents: CONTENTS.length, ...BY });
    await expectReadable();
    expect(await resealAll()).toBe(CONTENTS.length);
    await expectReadable();
    await table().finish([CASE]);
    await expectReadable();
    expect(isFound(old)).toEqual(CONTENTS.map(() => false));
    expect(filesWith(CANARY)).toEqual([]);
    const now = sealedBy(2);
    expect(isFound(now)).toEqual(CONTENTS.map(() => true));
    expect(files().filter((name) => name.startsWith('keys'))).toEqual(
      expect.arrayContaining([`keys/cases/${CASE}.1.replaced`, `keys/cases/${CASE}.2.key`]),
    );
    expect(files()).not.toContain(`keys/cases/${CASE}.1.key`);
    const erasure = { case_id: CASE, tree_ids: [A], at: BY.at, by: BY.by };
    expect(await store.erase(erasure)).toMatchObject({ contents: CONTENTS.length });
    expect(files().filter((name) => name.endsWith('.key'))).toEqual([]);
    expect(filesWith(CANARY)).toEqual([]);
    for (const seq of CONTENTS.keys())
      expect(await store.artifactsOf({ tree_id: A, seq: seq + 1 })).toMatchObject([{ withheld: 'erased' }]);
  });

  test('leaves no copy of a row under the old key in unused parts of the database', async () => {
    for (let from = 0; from < SMALL.length; from += 10) {
      await scribe.write(
        store,
        SMALL.slice(from, from + 10).map((bytes) => answered(A, content('result', bytes))),
      );
    }
    const rows = (): Buffer[] =>
      withDatabase(
        at.file,
        (db) =>
          db
            .prepare('SELECT bytes FROM artifacts WHERE case_id = ? AND byte_size BETWEEN 30 AND 930')
            .pluck()
            .all(CASE) as Buffer[],
      );
    const old = rows();
    await table().begin(CASE, BY);
    await resealAll();
    await table().finish([CASE]);
    const file = readFileSync(at.file);
    expect(countIn(file, old)).toBe(0);
    expect(countIn(file, rows())).toBeGreaterThanOrEqual(SMALL.length);
  }, 60_000);

  test('is unfinished, and everything is readable, until it is finished, also for another process and after a crash', async () => {
    const reader = openSqliteStore({ ...at, readOnly: true });
    await expectReadable(reader);
    await table().begin(CASE, BY);
    await expect(table().finish([CASE])).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      message: expect.stringContaining('are still under a replaced key'),
    });
    const part = await table().reseal([CASE], 0);
    expect(part).toEqual({ contents: CONTENTS.length, next: null });
    await store.close();
    store = openSqliteStore({ ...at, caseKeyTable: openCaseKeyTable });
    scribe.epoch = await store.acquire();
    expect(table().unfinished()).toMatchObject([{ case_id: CASE, key_no: 1 }]);
    await expectReadable();
    await expectReadable(reader);
    // New content is under the new key already.
    await scribe.write(store, [answered(A, content('result', 'new'))]);
    expect(await resealAll()).toBe(0);
    await table().finish([CASE]);
    expect(table().unfinished()).toEqual([]);
    await expectReadable();
    await expectReadable(reader);
    await reader.close();
    expect(
      withDatabase(at.file, (db) =>
        db.prepare('SELECT DISTINCT sealed FROM artifacts WHERE case_id = ?').pluck().all(CASE),
      ),
    ).toEqual([2]);
  });

  test('is not finished while a reader keeps the old pages, and does not need its own attempt for that', async () => {
    const reader = new Database(at.file, { readonly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM blocks').get();
    await table().begin(CASE, BY);
    await resealAll();
    await expect(table().finish([CASE])).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      message: expect.stringContaining('a reader keeps a transaction open'),
    });
    expect(files()).toContain(`keys/cases/${CASE}.1.key`);
    reader.close();
    const old = sealedBy(1);
    await table().finish([CASE]);
    expect(isFound(old)).toEqual(CONTENTS.map(() => false));
    await expectReadable();
  }, 20_000);

  test('leaves content that was erased before', async () => {
    await store.erase({ case_id: CASE, tree_ids: [A], at: BY.at, by: BY.by });
    await scribe.write(store, [answered(A, content('result', 'new'))]);
    expect(await table().begin(CASE, BY)).toMatchObject({ key_no: 2, contents: 1 });
    expect(await resealAll()).toBe(1);
    await table().finish([CASE]);
    const seq = CONTENTS.length + 1;
    expect(await store.artifactsOf({ tree_id: A, seq })).toMatchObject([{ bytes: Buffer.from('new') }]);
    expect(await store.artifactsOf({ tree_id: A, seq: 1 })).toMatchObject([{ withheld: 'erased' }]);
  });

  test.each([
    [
      'a row that was changed',
      (): void => {
        const first = '(SELECT min(artifact_no) FROM artifacts WHERE case_id = ?)';
        withoutGuards(at.file, (db) =>
          db.prepare(`UPDATE artifacts SET bytes = zeroblob(length(bytes)) WHERE artifact_no = ${first}`).run(CASE),
        );
      },
      'is not what it was, so it cannot be encrypted with another key',
    ],
    [
      'a file that is missing',
      (): void => {
        const hash = sha256(CONTENTS.at(-1)!);
        rmSync(join(at.artifactsDir, CASE, hash.slice(0, 2), `${hash}.1`));
      },
      'is missing',
    ],
    [
      'a file that is longer',
      (): void => {
        const hash = sha256(CONTENTS.at(-1)!);
        writeFileSync(join(at.artifactsDir, CASE, hash.slice(0, 2), `${hash}.1`), Buffer.alloc(500_000));
      },
      'cannot be read',
    ],
  ])('stops at %s, and keeps the old key', async (_, damage, message) => {
    damage();
    await table().begin(CASE, BY);
    await expect(resealAll()).rejects.toMatchObject({ message: expect.stringContaining(message) });
    await expect(table().finish([CASE])).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(files()).toContain(`keys/cases/${CASE}.1.key`);
  });

  test('works in parts of bounded size', async () => {
    const large = Array.from({ length: 24 }, (_, index) => Buffer.alloc(800_000, `${index} large`));
    await scribe.write(
      store,
      large.map((bytes) => answered(A, content('result', bytes))),
    );
    await table().begin(CASE, BY);
    const part = await table().reseal([CASE], 0);
    expect(part.next).not.toBeNull();
    expect(part.contents).toBeLessThan(CONTENTS.length + large.length);
    expect(part.contents + (await resealAll())).toBe(CONTENTS.length + large.length);
    await table().finish([CASE]);
    await expectReadable();
  }, 20_000);
});

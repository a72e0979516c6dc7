// The contents of a case are encrypted with another key in PostgreSQL, while other workers read and write.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CaseKeys, type CaseCipher } from '../../../src/stores/keys/case-keys.js';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/postgres-ledger-store.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { CaseKeyTable, ResealedPart } from '../../../src/engine/ports/ledger/case-key-table.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { answered, CASE, content, opening, scribeOf, type Scribe } from '../../fixtures/entries.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { A } from '../ledger/ledger-bench.js';
import { ledgerPlace, type LedgerPlace } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });
const BY = { at: '2026-01-01T00:00:00.000Z', by: 'a person', role: 'operator' };
/** Around the sizes of a chunk, and enough for several parts. */
const CONTENTS = [0, 1, 9_000, 1_048_559, 1_048_560, 1_048_577, 3_000_000, ...Array<number>(700).fill(50)].map(
  (size, at) => Buffer.alloc(size + 8, `content ${at} `),
);

afterAll(() => server?.stop());

(server === null ? describe.skip : describe)('a rotation of a case key in PostgreSQL', () => {
  let place: LedgerPlace;
  let store: LedgerStore;
  let scribe: Scribe;
  const table = (): CaseKeyTable => store.caseKeys!;
  beforeEach(async () => {
    place = ledgerPlace(server?.url ?? '');
    store = await createPostgresStore(place);
    scribe = await scribeOf(store);
    const text = 'state of a tree';
    await scribe.write(store, [opening(A), ...CONTENTS.map((bytes) => answered(A, content('result', bytes)))], {
      snapshots: [{ tree_id: A, seq: 1, text, mac: sha256(text) }],
    });
  });
  afterEach(async () => {
    await store.close();
    await place.remove();
  });

  const keyFiles = (): readonly string[] => readdirSync(place.caseKeysDir).filter((name) => /key|replaced/.test(name));
  const expectReadable = async (from: LedgerStore): Promise<void> => {
    for (const [index, bytes] of CONTENTS.entries()) {
      const [read] = await from.artifactsOf({ tree_id: A, seq: index + 1 });
      expect(read !== undefined && 'bytes' in read && Buffer.from(read.bytes).equals(bytes)).toBe(true);
    }
  };
  const resealAll = async (): Promise<number> => {
    let contents = 0;
    for (let from: number | null = 0; from !== null;) {
      const part: ResealedPart = await table().reseal([CASE], from);
      contents += part.contents;
      from = part.next;
    }
    return contents;
  };
  const keyNumbers = async (): Promise<unknown> =>
    place.exec(`SELECT DISTINCT key_no FROM artifacts WHERE case_id = '${CASE}' ORDER BY key_no`);

  test('no stored content is one that the old key opens, all are readable at any time, and an erasure then erases all', async () => {
    const old = new CaseKeys(place.caseKeysDir, () => null).get(CASE, 1) as CaseCipher;
    const reader = await openPostgresStore({ ...place, readOnly: true });
    await expectReadable(reader);
    expect(await table().begin(CASE, BY)).toEqual({ case_id: CASE, key_no: 1, contents: CONTENTS.length, ...BY });
    await expectReadable(reader);
    await expect(table().finish([CASE])).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    const first = await table().reseal([CASE], 0);
    expect(first.next).toBe(0);
    expect(first.contents).toBeLessThan(CONTENTS.length);
    await expectReadable(reader);
    // Another process continues after a crash, and writes under the new key.
    await store.close();
    store = await openPostgresStore(place);
    scribe.epoch = await store.acquire();
    expect(table().unfinished()).toMatchObject([{ case_id: CASE, key_no: 1 }]);
    await scribe.write(store, [answered(A, content('result', 'new'))]);
    expect(first.contents + (await resealAll())).toBe(CONTENTS.length);
    await table().finish([CASE]);
    expect(await keyNumbers()).toEqual([{ key_no: 2 }]);
    expect(keyFiles()).toEqual([`${CASE}.1.replaced`, `${CASE}.2.key`]);
    await expectReadable(reader);
    expect(await reader.snapshots.load(A)).toBeNull();
    const rows = (await place.exec(
      `SELECT encode(a.sha256, 'hex') AS hash, encode(a.bytes, 'hex') AS bytes FROM artifacts a WHERE case_id = '${CASE}' AND byte_size < 1000000`,
    )) as { hash: string; bytes: string }[];
    expect(rows.length).toBeGreaterThan(700);
    for (const { hash, bytes } of rows) {
      expect(old.open(Buffer.from(bytes, 'hex'), Buffer.from(hash, 'hex'))).toBeNull();
      expect(Buffer.from(bytes, 'hex').includes('content ')).toBe(false);
    }
    await reader.close();
    const erasure = { case_id: CASE, tree_ids: [A], at: BY.at, by: BY.by };
    expect(await store.erase(erasure)).toMatchObject({ contents: CONTENTS.length + 1 });
    expect(keyFiles()).toEqual([`${CASE}.1.replaced`]);
    for (const seq of [1, 5, CONTENTS.length + 1])
      expect(await store.artifactsOf({ tree_id: A, seq })).toMatchObject([{ withheld: 'erased' }]);
  }, 120_000);

  test('an erasure while it is unfinished erases what is under either key', async () => {
    await table().begin(CASE, BY);
    await table().reseal([CASE], 0);
    const erasure = { case_id: CASE, tree_ids: [A], at: BY.at, by: BY.by };
    expect(await store.erase(erasure)).toMatchObject({ contents: CONTENTS.length });
    expect(readdirSync(place.caseKeysDir).filter((name) => name.endsWith('.key'))).toEqual([]);
    for (const seq of [1, CONTENTS.length])
      expect(await store.artifactsOf({ tree_id: A, seq })).toMatchObject([{ withheld: 'erased' }]);
    expect(table().unfinished()).toEqual([]);
  }, 60_000);

  test('rows are guarded again afterwards, and a changed content stops it with the old key kept', async () => {
    await table().begin(CASE, BY);
    const guard = 'TRIGGER guard_changes';
    await place.exec(
      `ALTER TABLE artifacts DISABLE ${guard}; UPDATE artifacts SET bytes = '\\x00' WHERE artifact_no = (SELECT max(artifact_no) FROM artifacts);
       ALTER TABLE artifacts ENABLE ${guard}`,
    );
    await expect(resealAll()).rejects.toMatchObject({
      code: 'LEDGER_TAMPERED',
      message: expect.stringContaining('is not what it was, so it cannot be encrypted with another key'),
    });
    await expect(table().finish([CASE])).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    expect(existsSync(join(place.caseKeysDir, `${CASE}.1.key`))).toBe(true);
    await expect(place.exec(`UPDATE artifacts SET key_no = 9`)).rejects.toThrow('never changed');
    await expect(place.exec(`UPDATE artifact_chunks SET bytes = '\\x01'`)).rejects.toThrow('never changed');
  }, 60_000);
});

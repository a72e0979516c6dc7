// Ledgers in files, and what somebody who has the file can do to any row of it once the triggers are gone. Each time
// verification must name the entry. What a better forger does is tested in verify.test.ts and verify-head.test.ts.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import type Database from 'better-sqlite3';
import fc from 'fast-check';
import { headFile } from '../../src/adapters/head-file.js';
import { createSqliteStore, openSqliteStore } from '../../src/adapters/sqlite-ledger-store.js';
import { sha256 } from '../../src/contract/hash.js';
import { EMPTY_HEAD, extend } from '../../src/ledger/merkle.js';
import { verifyLedger, type LedgerVerdict } from '../../src/ledger/verify.js';
import { dropGuards, ledgerFolder, withDatabase } from '../adapters/sqlite-harness.js';
import { content, opening, scribeOf, step, treeId, type Draft } from '../fixtures/entries.js';

interface Step {
  readonly tree: number;
  readonly payload: string;
  readonly result: string;
}
/** What one batch holds. */
type Plan = readonly Step[];

const plans: fc.Arbitrary<readonly Plan[]> = fc.array(
  fc.array(fc.record({ tree: fc.nat(2), payload: fc.string(), result: fc.string({ unit: 'grapheme' }) }), {
    minLength: 1,
    maxLength: 2,
  }),
  { minLength: 1, maxLength: 2 },
);

/** A ledger on disk that is brought back to what it was after each attack. */
class Victim {
  readonly at = ledgerFolder();
  readonly head = headFile(join(this.at.folder, 'ledger.head'));
  #whole: Buffer = Buffer.alloc(0);

  async write(batches: readonly Plan[]): Promise<void> {
    const store = createSqliteStore(this.at);
    const scribe = await scribeOf(store);
    const seen = new Set<number>();
    for (const plan of batches) {
      const drafts = plan.flatMap(({ tree, payload, result }): readonly Draft[] => {
        const first = seen.has(tree) ? [] : [opening(treeId(tree))];
        seen.add(tree);
        const [proposal, answer] = [content('raw_payload', `p${payload}`), content('result', `r${result}`)];
        return [...first, ...step(treeId(tree), proposal, answer)];
      });
      const { head } = await scribe.write(store, drafts);
      await this.head.write(head);
    }
    await store.close();
    await this.head.close();
    withDatabase(this.at.file, dropGuards);
    this.#whole = readFileSync(this.at.file);
  }

  async verify(): Promise<LedgerVerdict> {
    const store = openSqliteStore({ ...this.at, readOnly: true });
    const verdict = await verifyLedger({
      log: (from) => store.log(from),
      artifactsOf: (log_index) => store.artifactsOf(log_index),
      head: () => store.head(),
      anchor: await this.head.read(),
    });
    await store.close();
    return verdict;
  }

  /** Lets somebody at the file. @returns what verification then says; the file is put right again */
  async attacked(attack: (db: Database.Database) => void): Promise<LedgerVerdict> {
    withDatabase(this.at.file, (db) => {
      db.pragma('synchronous = OFF');
      attack(db);
    });
    const verdict = await this.verify();
    writeFileSync(this.at.file, this.#whole);
    return verdict;
  }
}

/** Which places of the log a verdict names; null stands for the log as a whole. */
const named = (verdict: LedgerVerdict): readonly (number | null)[] =>
  verdict.ok ? [] : verdict.problems.map(({ log_index }) => log_index);

const victims: Victim[] = [];
async function victimOf(batches: readonly Plan[]): Promise<Victim> {
  const victim = new Victim();
  victims.push(victim);
  await victim.write(batches);
  return victim;
}
afterAll(() => {
  for (const victim of victims) victim.at.remove();
});

/** Every column of what is evidence, and another value of its type. */
const CHANGES = {
  entries: {
    log_index: 'log_index + 1000000',
    tree_no: 'tree_no + 50',
    seq: 'seq + 1000',
    type: `iif(type = 'input', 'step_trace', 'input')`,
    text: `replace(text, '"prev":"', '"prev":"0')`,
    leaf_hash: 'randomblob(32)',
  },
  artifacts: {
    artifact_no: 'artifact_no + 1000',
    case_id: `iif(case_id IS NULL, 'case-9999', NULL)`,
    sha256: 'randomblob(32)',
    kind: `iif(kind = 'response', 'result', 'response')`,
    byte_size: 'byte_size + 1',
    bytes: `CAST(bytes || x'00' AS BLOB)`,
  },
  entry_artifacts: { log_index: 'log_index + 1000000', ordinal: 'ordinal + 7', artifact_no: '(artifact_no + 1) % 4' },
  trees: { tree_no: 'tree_no + 50', tree_id: `tree_id || 'x'` },
} as const;
type Table = keyof typeof CHANGES;

/** The entries that a row belongs to. */
const BELONGS: Readonly<Record<Table, string>> = {
  entries: 'SELECT log_index FROM entries WHERE rowid = ?',
  artifacts: 'SELECT log_index FROM entry_artifacts WHERE artifact_no = ?',
  entry_artifacts: 'SELECT ? / 1000',
  trees: 'SELECT log_index FROM entries WHERE tree_no = ?',
};
/** A number for each row. */
const KEY: Readonly<Record<Table, string>> = {
  entries: 'log_index',
  artifacts: 'artifact_no',
  entry_artifacts: '(log_index * 1000 + ordinal)',
  trees: 'tree_no',
};
const TABLES = Object.keys(CHANGES) as Table[];

function rowsOf(victim: Victim, table: Table): readonly { key: number; entries: readonly number[] }[] {
  return withDatabase(victim.at.file, (db) =>
    (db.prepare(`SELECT ${KEY[table]} FROM ${table}`).pluck().all() as number[]).map((key) => ({
      key,
      entries: (db.prepare(BELONGS[table]).pluck().all(key) as number[]).map(Math.floor),
    })),
  );
}

describe('a ledger in a file that somebody changed', () => {
  test('S4-86, C61: with any column of any row changed, the entry is named', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (batches) => {
        const victim = await victimOf(batches);
        expect(await victim.verify()).toMatchObject({ ok: true });
        for (const table of TABLES) {
          for (const { key, entries } of rowsOf(victim, table)) {
            expect(entries).not.toEqual([]);
            for (const [column, value] of Object.entries(CHANGES[table])) {
              const sql = `UPDATE ${table} SET ${column} = ${value} WHERE ${KEY[table]} = ${key}`;
              const verdict = await victim.attacked((db) => db.exec(sql));
              expect([sql, named(verdict)]).toEqual([sql, expect.arrayContaining([...entries])]);
            }
          }
        }
        expect(await victim.verify()).toMatchObject({ ok: true });
      }),
      { numRuns: 2 },
    );
  });

  test('S4-86, C61: with any row removed, the entry is named by its place', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (batches) => {
        const victim = await victimOf(batches);
        const last = rowsOf(victim, 'entries').length - 1;
        for (const table of TABLES) {
          for (const { key, entries } of rowsOf(victim, table)) {
            const sql = `DELETE FROM ${table} WHERE ${KEY[table]} = ${key}`;
            const verdict = await victim.attacked((db) => db.exec(sql));
            // Nothing follows the last entry, so that only the heads can tell.
            const expected = table === 'entries' && key === last ? [null] : entries;
            expect([sql, named(verdict)]).toEqual([sql, expect.arrayContaining([...expected])]);
          }
        }
      }),
      { numRuns: 2 },
    );
  });

  test('S4-86: with any two entries exchanged, both are named', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }], [{ tree: 1, payload: 'c', result: 'd' }]]);
    const size = rowsOf(victim, 'entries').length;
    for (let first = 0; first < size; first += 3) {
      for (let second = first + 1; second < size; second += 2) {
        const verdict = await victim.attacked((db) => {
          const read = db.prepare('SELECT text, leaf_hash FROM entries WHERE log_index = ?');
          const [one, other] = [read.get(first), read.get(second)] as { text: string; leaf_hash: Buffer }[];
          const write = db.prepare('UPDATE entries SET text = ?, leaf_hash = ? WHERE log_index = ?');
          write.run(other!.text, other!.leaf_hash, first);
          write.run(one!.text, one!.leaf_hash, second);
        });
        expect(named(verdict)).toEqual(expect.arrayContaining([first, second]));
      }
    }
  });

  test('S4-86: bytes that are not UTF-8 do not pass for the U+FFFD that a reader would make of them', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }]]);
    const place = rowsOf(victim, 'entries').length - 1;
    const verdict = await victim.attacked((db) => {
      const text = db
        .prepare('SELECT CAST(text AS BLOB) FROM entries WHERE log_index = ?')
        .pluck()
        .get(place) as Buffer;
      const at = text.indexOf('\ufffd');
      expect(at).toBeGreaterThan(0);
      const bytes = Buffer.concat([text.subarray(0, at), Buffer.of(0xff), text.subarray(at + 3)]);
      expect(bytes.toString()).toBe(text.toString());
      db.prepare('UPDATE entries SET text = CAST(? AS TEXT) WHERE log_index = ?').run(bytes, place);
    });
    expect(named(verdict)).toContain(place);
  });

  test.each(['size = size + 1', 'size = size - 1', 'root = randomblob(32)', `frontier = x''`])(
    'D15: with the stored head changed (%s), the log as a whole is named',
    async (change) => {
      const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }]]);
      const verdict = await victim.attacked((db) => db.exec(`UPDATE meta SET ${change}`));
      expect(verdict).toMatchObject({
        ok: false,
        problems: expect.arrayContaining([expect.objectContaining({ log_index: null, rule: 'head.stored' })]),
      });
      expect(await victim.attacked((db) => db.exec('DELETE FROM meta'))).toMatchObject({ ok: false });
    },
  );

  test('D15, C61: with any length of its tail cut off and its head put right, it is below the head file', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }], [{ tree: 0, payload: 'c', result: 'd' }]]);
    const leaves = withDatabase(
      victim.at.file,
      (db) => db.prepare('SELECT lower(hex(leaf_hash)) FROM entries').pluck().all() as string[],
    );
    for (let size = 0; size < leaves.length; size += 1) {
      const { root, frontier } = extend(EMPTY_HEAD, leaves.slice(0, size));
      const verdict = await victim.attacked((db) => {
        db.exec(
          `DELETE FROM entries WHERE log_index >= ${size}; DELETE FROM entry_artifacts WHERE log_index >= ${size}`,
        );
        const blob = (hex: string) => Buffer.from(hex, 'hex');
        db.prepare('UPDATE meta SET size = ?, root = ?, frontier = ?').run(size, blob(root), blob(frontier.join('')));
      });
      expect(verdict).toMatchObject({ ok: false, problems: [{ log_index: null, rule: 'head.below' }] });
    }
  });

  test('an entry that was put on at the end is named', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }]]);
    const size = rowsOf(victim, 'entries').length;
    const verdict = await victim.attacked((db) =>
      db.exec(
        `INSERT INTO entries SELECT ${size}, tree_no, ${size}, type, text, leaf_hash FROM entries WHERE log_index = 1`,
      ),
    );
    expect(named(verdict)).toEqual(expect.arrayContaining([size, null]));
  });

  test('S4-83, D14: with a content in a file changed or gone, its entry is named', async () => {
    const large = 'x'.repeat(300_000);
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: large }]]);
    const hash = sha256(`r${large}`);
    const path = join(victim.at.artifactsDir, 'case-0001', hash.slice(0, 2), hash);
    const place = withDatabase(victim.at.file, (db) =>
      db.prepare('SELECT log_index FROM entry_artifacts NATURAL JOIN artifacts WHERE bytes IS NULL').pluck().get(),
    );
    writeFileSync(path, `s${large}`);
    expect(named(await victim.verify())).toEqual([place]);
    rmSync(path);
    expect(named(await victim.verify())).toEqual([place]);
    writeFileSync(path, `r${large}`);
    expect(await victim.verify()).toMatchObject({ ok: true });
  });
});

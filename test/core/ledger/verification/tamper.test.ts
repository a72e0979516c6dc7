// Ledgers in files, and attacks on any row by an attacker with access to the file once the triggers are gone.
// Verification must name the entry each time. verify-ledger.test.ts and verify-head.test.ts test what a better forger
// does.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { EMPTY_HEAD, extendHead } from '../../../../src/core/ledger/proof/merkle.js';
import { withDatabase } from '../../../stores/sqlite/sqlite-harness.js';
import { sized } from '../../../fixtures/campaign.js';
import { blocksOf, hashAt, named, plans, put, victimOf, type BlockText, type Victim } from './victim.js';

/** Every column with evidence, and another value of its type. */
const CHANGES = {
  blocks: {
    log_index: 'log_index + 1000000',
    tree_id: `tree_id || 'x'`,
    seq: 'seq + 1000',
    artifacts: `iif(artifacts IS NULL, '{"0":[0]}', NULL)`,
    types: `'x' || replace(types, ' ', ' x')`,
    leaf_hashes: 'randomblob(length(leaf_hashes))',
    texts: `replace(texts, '"prev":"', '"prev":"0')`,
  },
  artifacts: {
    artifact_no: 'artifact_no + 1000',
    case_id: `iif(case_id IS NULL, 'case-9999', NULL)`,
    sha256: 'randomblob(32)',
    kind: `iif(kind = 'response', 'result', 'response')`,
    byte_size: 'byte_size + 1',
    bytes: `CAST(bytes || x'00' AS BLOB)`,
  },
} as const;
type Table = keyof typeof CHANGES;
const TABLES = Object.keys(CHANGES) as Table[];
const KEY = { blocks: 'log_index', artifacts: 'artifact_no' } as const;

/** The entries that came with content, with the numbers of the artifacts. */
const bringers = ({ log_index, artifacts }: BlockText): readonly (readonly [number, readonly number[]])[] =>
  Object.entries(JSON.parse(artifacts ?? '{}') as Record<string, number[]>).map(([place, numbers]) => [
    log_index + Number(place),
    numbers,
  ]);

/** The entries that must be named when a row, or a column of it, is changed. */
function entriesOf(victim: Victim, table: Table, key: number, column?: string): readonly number[] {
  if (table === 'artifacts') {
    const all_ = blocksOf(victim).flatMap(bringers);
    return all_.filter(([, numbers]) => numbers.includes(key)).map(([entry]) => entry);
  }
  const block = blocksOf(victim).find(({ log_index }) => log_index === key)!;
  const entries = block.types.split(' ').map((_type, place) => key + place);
  // A moved block is missing from its first entry on.
  if (column === undefined || column === 'log_index') return [key];
  if (column === 'artifacts') return block.artifacts === null ? [key] : bringers(block).map(([entry]) => entry);
  return entries;
}

const keysOf = (victim: Victim, table: Table): readonly number[] =>
  withDatabase(
    victim.at.file,
    (db) => db.prepare(`SELECT ${KEY[table]} FROM ${table} ORDER BY 1`).pluck().all() as number[],
  );

describe('a changed ledger in a file', () => {
  test('S4-86, C61: with any column of any row changed, the entries are named', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (batches) => {
        const victim = await victimOf(batches);
        expect(await victim.verify()).toMatchObject({ ok: true });
        for (const table of TABLES) {
          for (const key of keysOf(victim, table)) {
            for (const [column, value] of Object.entries(CHANGES[table])) {
              const entries = entriesOf(victim, table, key, column);
              expect(entries).not.toEqual([]);
              const sql = `UPDATE ${table} SET ${column} = ${value} WHERE ${KEY[table]} = ${key}`;
              const verdict = await victim.attacked((db) => db.exec(sql));
              expect([sql, named(verdict)]).toEqual([sql, expect.arrayContaining([...entries])]);
            }
          }
        }
        expect(await victim.verify()).toMatchObject({ ok: true });
      }),
      { numRuns: sized(1, 2), seed: 1 },
    );
  });

  test('S4-86, C61: with any row removed, its first entry is named by its place', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (batches) => {
        const victim = await victimOf(batches);
        const last = keysOf(victim, 'blocks').at(-1);
        for (const table of TABLES) {
          for (const key of keysOf(victim, table)) {
            const sql = `DELETE FROM ${table} WHERE ${KEY[table]} = ${key}`;
            const entries = entriesOf(victim, table, key);
            const verdict = await victim.attacked((db) => db.exec(sql));
            // No block follows the last one, so only the heads can reveal it.
            const expected = table === 'blocks' && key === last ? [null] : entries;
            expect([sql, named(verdict)]).toEqual([sql, expect.arrayContaining([...expected])]);
          }
        }
      }),
      { numRuns: sized(1, 2), seed: 1 },
    );
  });

  /** Attacks on the parts of one column of a block, and the places in it that must be named. */
  const EDITS: readonly [string, <T>(parts: readonly T[], at: number) => readonly T[], (at: number) => number][] = [
    ['removed', (parts, at) => parts.toSpliced(at, 1), (at) => at],
    ['doubled', (parts, at) => parts.toSpliced(at, 0, parts[at]!), (at) => at + 1],
    [
      'exchanged with the next',
      (parts, at) => parts.toSpliced(at, 2, ...parts.slice(at, at + 2).reverse()),
      (at) => at,
    ],
  ];
  const COLUMNS = {
    texts: (block: BlockText, edit: <T>(parts: readonly T[]) => readonly T[]) =>
      edit(block.texts.split('\n')).join('\n'),
    types: (block: BlockText, edit: <T>(parts: readonly T[]) => readonly T[]) => edit(block.types.split(' ')).join(' '),
    leaf_hashes: (block: BlockText, edit: <T>(parts: readonly T[]) => readonly T[]) =>
      Buffer.concat(edit(Array.from({ length: block.leaf_hashes.length / 32 }, (_, at) => hashAt(block, at)))),
  };

  test.each(EDITS)(
    'S4-86, C61: with any text, type or hash of a block %s, the entry is named',
    async (_what, edit, place) => {
      const victim = await victimOf([
        [{ tree: 0, payload: 'a', result: 'b' }],
        [{ tree: 1, payload: 'c', result: 'd' }],
      ]);
      for (const block of blocksOf(victim).filter(({ types }) => types.includes(' '))) {
        const types = block.types.split(' ');
        for (let at = 0; at < types.length - 1; at += 1) {
          for (const [column, change] of Object.entries(COLUMNS)) {
            const changed = change(block, (parts) => edit(parts, at));
            const same = typeof changed === 'string' && changed === block[column as 'types'];
            const update = `UPDATE blocks SET ${column} = ? WHERE log_index = ?`;
            const verdict = await victim.attacked((db) => db.prepare(update).run(changed, block.log_index));
            // Equal types are interchangeable, up to the end of the block.
            const expected = column !== 'types' ? block.log_index + place(at) : same ? undefined : expect.any(Number);
            expect([column, at, named(verdict)]).toEqual([
              column,
              at,
              expected === undefined ? [] : expect.arrayContaining([expected]),
            ]);
          }
        }
      }
    },
  );

  test('S4-86: with any two entries exchanged, including their hashes, both are named', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }], [{ tree: 1, payload: 'c', result: 'd' }]]);
    const places = blocksOf(victim).flatMap((block) => block.types.split(' ').map((_type, at) => ({ block, at })));
    for (let first = 0; first < places.length; first += 3) {
      for (let second = first + 1; second < places.length; second += 2) {
        const verdict = await victim.attacked((db) => {
          put(db, places[first]!, places[second]!);
          put(db, places[second]!, places[first]!);
        });
        expect(named(verdict)).toEqual(expect.arrayContaining([first, second]));
      }
    }
  });

  test('S4-86: bytes that are not UTF-8 do not pass for the U+FFFD that a reader would decode', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }]]);
    const { log_index, types } = blocksOf(victim).at(-1)!;
    const place = log_index + types.split(' ').length - 1;
    const verdict = await victim.attacked((db) => {
      const text = db
        .prepare('SELECT CAST(texts AS BLOB) FROM blocks WHERE log_index = ?')
        .pluck()
        .get(log_index) as Buffer;
      const at = text.indexOf('\ufffd');
      expect(at).toBeGreaterThan(0);
      const bytes = Buffer.concat([text.subarray(0, at), Buffer.of(0xff), text.subarray(at + 3)]);
      expect(bytes.toString()).toBe(text.toString());
      db.prepare('UPDATE blocks SET texts = CAST(? AS TEXT) WHERE log_index = ?').run(bytes, log_index);
    });
    expect(new Set(named(verdict))).toEqual(new Set([place, null]));
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

  test('D15, C61: with its tail truncated at any length and its head corrected, it is below the head file', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }], [{ tree: 0, payload: 'c', result: 'd' }]]);
    const blocks = blocksOf(victim);
    for (const { log_index: size } of blocks) {
      const leaves = blocks.flatMap((block) =>
        block.types.split(' ').map((_type, at) => hashAt(block, at).toString('hex')),
      );
      const { root, frontier } = extendHead(EMPTY_HEAD, leaves.slice(0, size));
      const verdict = await victim.attacked((db) => {
        db.exec(`DELETE FROM blocks WHERE log_index >= ${size}`);
        const blob = (hex: string) => Buffer.from(hex, 'hex');
        db.prepare('UPDATE meta SET size = ?, root = ?, frontier = ?').run(size, blob(root), blob(frontier.join('')));
      });
      expect(verdict).toMatchObject({ ok: false, problems: [{ log_index: size, rule: 'head.below', kind: 'cut' }] });
    }
  });

  test('an entry that was appended at the end is named', async () => {
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: 'b' }]]);
    const { log_index, types } = blocksOf(victim).at(-1)!;
    const size = log_index + types.split(' ').length;
    const verdict = await victim.attacked((db) =>
      db.exec(
        `INSERT INTO blocks SELECT ${size}, tree_id, ${size}, NULL, types, leaf_hashes, texts FROM blocks WHERE log_index = 0`,
      ),
    );
    expect(named(verdict)).toEqual(expect.arrayContaining([size, null]));
  });

  test('S4-83, D14: with a content file changed or missing, its entry is named', async () => {
    const large = 'x'.repeat(300_000);
    const victim = await victimOf([[{ tree: 0, payload: 'a', result: large }]]);
    const hash = sha256(`r${large}`);
    const path = join(victim.at.artifactsDir, 'case-0001', hash.slice(0, 2), `${hash}.1`);
    const sealed = readFileSync(path);
    const number = withDatabase(victim.at.file, (db) =>
      db.prepare('SELECT artifact_no FROM artifacts WHERE bytes IS NULL').pluck().get(),
    ) as number;
    const [place] = entriesOf(victim, 'artifacts', number);
    writeFileSync(path, Buffer.from(sealed).fill(sealed[0]! ^ 0xff, 0, 1));
    expect(named(await victim.verify())).toEqual([place]);
    rmSync(path);
    expect(named(await victim.verify())).toEqual([place]);
    writeFileSync(path, sealed);
    expect(await victim.verify()).toMatchObject({ ok: true });
  });
});

// Every column of every table of both databases, as the database itself lists them, is changed in each of its first
// rows by a program that the database does not stop. `verify` then finds it, or the ledger does not open. What it
// cannot find is listed here with its reason, and docs/trust.md says what such a row can do.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { createPostgresStore, openPostgresStore } from '../../src/stores/postgres/postgres-ledger-store.js';
import { createSqliteStore, openSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import type { LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { CodedError } from '../../src/core/errors.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import '../fixtures/declared-features.js';
import { ledgerPlace } from '../stores/postgres/postgres-harness.js';
import { dropGuards, ledgerFolder, withDatabase } from '../stores/sqlite/sqlite-harness.js';
import { Bench } from '../fixtures/bench.js';
import { startPostgres } from '../fixtures/postgres.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const ROWS_MAX = 6;

/** What `verify` does not find, by the reason. */
const NOT_FOUND: Readonly<Record<'sqlite' | 'postgres', Readonly<Record<string, string>>>> = {
  sqlite: {
    'a content that is not found is stored again': 'artifact_index.artifact_no artifact_index.sha256',
    'content without a case has no key': 'artifacts.sealed',
    'a tree opens once, because its first entry has one place': 'marks.marks',
    'where a cache goes on': 'meta.artifacts_indexed meta.blocks_indexed meta.marks_indexed recorded_trees.mark_no',
    'the one row, and how often the ledger was opened': 'meta.id meta.epoch',
    'what a start settles, and when': 'trees.unfinished trees.wake_at',
  },
  postgres: {
    'content without a case has no key': 'artifacts.key_no',
    'the order of appends that wait, and a size for reading': 'blocks.commit_no blocks.text_bytes trees.opened',
    'a tree opens once, because its first entry has one place': 'marks.name marks.run_id marks.scope marks.seq',
    'compared with the entry when the mark is used': 'marks.payload_sha256 marks.step_index',
    'the one row, the format, and how often the ledger was opened': 'head.one meta.one meta.epoch meta.format',
    'where the next append of a tree goes: another place is refused': 'trees.head_hash trees.head_seq',
    'what a start settles, and when': 'trees.unfinished trees.wake_at',
    'what workers agree on: versions and reserved quota':
      'cases.case_id cases.erased_key cases.label_version cases.quota_version cases.reserved_bytes cases.reserved_files',
    'who performs an effect': 'leases.kind leases.worker_id leases.run_id leases.tree_id',
    'the workers':
      'workers.address workers.backend_pid workers.host workers.is_dead workers.joined_at ' +
      'workers.later_trees workers.overlay_epoch workers.worker_id workers.pid workers.refuses ' +
      'workers.started workers.version workers.volume_id',
    'which keys workers may use: the key history says which key signs': 'meta.is_rotating meta.rotations',
  },
};
const unexpected = (kind: keyof typeof NOT_FOUND, { missed }: Found): readonly string[] => {
  const known = Object.values(NOT_FOUND[kind]).flatMap((names) => names.split(' '));
  return [...missed].filter((name) => !known.includes(name)).toSorted();
};
/** Evidence, which each ledger must have and each change of which is found. */
const EVIDENCE = [
  'blocks.texts',
  'blocks.leaf_hashes',
  'blocks.types',
  'artifacts.bytes',
  'artifacts.sha256',
  'trees.ended',
];
const report = (kind: string, { tried, missed }: Found): void =>
  void process.stderr.write(`${kind}: ${tried.size} columns changed, ${tried.size - missed.size} found\n`);
const MS_MAX = 600_000;

type Value = string | number | bigint | boolean | Buffer | null;
type Row = Readonly<Record<string, Value>>;

/** A ledger in a database, and what another program can do to it. */
interface Victim {
  tables(): Promise<readonly string[]>;
  /** The first rows, each with `row`, by which it is found. */
  rows(table: string): Promise<readonly Row[]>;
  /** @returns how to put the value back; null if the database cannot hold the other one */
  change(table: string, row: Row, column: string, value: Value): Promise<(() => Promise<void>) | null>;
  open(): Promise<LedgerStore>;
}

/** Two cases, a run that has ended and one that goes on, a repeat, a denial, and a request that waits. */
async function fill(store: LedgerStore): Promise<void> {
  const sandbox = tempFolder('columns');
  for (const name of ['case-0001', 'case-0002']) mkdirSync(join(sandbox, name));
  const { turnpike, folder } = await Bench.open({ store, sandbox, approvals: true });
  const text = (...given: Parameters<typeof proposal>): string => JSON.stringify(proposal(...given));
  const first = await turnpike.startAgent({ case: 'case-0001', key: 'first' });
  const write = text('WRITE_FILE', { path: '/sandbox/a.md', content: 'x'.repeat(300) });
  await first.respond(write, { inputId: 'mine' });
  await first.respond(write);
  await first.respond(text('WRITE_FILE', { path: '/etc/passwd', content: 'x' }));
  await first.respond(text('LIST_FILES', { path: '/sandbox/' }));
  await first.respond(text('FINISH', { summary: 'done' }));
  const second = await turnpike.startAgent({ case: 'case-0002' });
  await second.respond(text('THINK', {}));
  const by = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-0001' } as const;
  await turnpike.export({ ...by, reason: 'audit', destination: join(folder, 'bag') });
  await turnpike.close();
}

/** Another value of its type. */
function otherThan(value: Value): Value {
  if (value === null) return 7;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'bigint') return value + 1n;
  if (Buffer.isBuffer(value))
    return Buffer.from(value.length === 0 ? [1] : value.map((byte, at) => (at ? byte : byte ^ 1)));
  if (value === 'true' || value === 'false') return value === 'true' ? 'false' : 'true';
  if (/^-?\d{1,15}$/.test(value)) return String(Number(value) + 1);
  // The last letter or digit, so that it stays a text of its kind.
  return value.replace(/[0-9A-Za-z](?=[^0-9A-Za-z]*$)/, (one) => (one === '0' ? '1' : '0'));
}

interface Found {
  readonly tried: ReadonlySet<string>;
  readonly missed: ReadonlySet<string>;
}

async function changeEach(victim: Victim): Promise<Found> {
  const honest = await victim.open();
  const head = await honest.head();
  await honest.close();
  const isFound = async (): Promise<boolean> => {
    let store: LedgerStore | null = null;
    try {
      store = await victim.open();
      return !(await new LedgerReader(store, memoryHeadStore(head)).verify()).ok;
    } catch (error) {
      if (error instanceof CodedError) return true;
      throw error;
    } finally {
      await store?.close();
    }
  };
  expect(await isFound()).toBe(false);
  const [tried, missed] = [new Set<string>(), new Set<string>()];
  for (const table of await victim.tables()) {
    for (const row of await victim.rows(table)) {
      for (const column of Object.keys(row).filter((name) => name !== 'row')) {
        const undo = await victim.change(table, row, column, otherThan(row[column] ?? null));
        if (undo === null) continue;
        tried.add(`${table}.${column}`);
        if (!(await isFound())) missed.add(`${table}.${column}`);
        await undo();
      }
    }
  }
  expect(await isFound()).toBe(false);
  return { tried, missed };
}

test(
  'S4-86: in a file of SQLite',
  async () => {
    const at = ledgerFolder();
    const store = createSqliteStore(at);
    await fill(store);
    const whole = withDatabase(at.file, (db) => {
      dropGuards(db);
      return db.serialize();
    });
    writeFileSync(at.file, whole);
    const keyOf = (table: string): readonly string[] =>
      withDatabase(at.file, (db) => {
        const columns = db.pragma(`table_info(${table})`) as { readonly name: string; readonly pk: number }[];
        return columns.filter(({ pk }) => pk > 0).map(({ name }) => name);
      });
    const putBack = (): Promise<void> => {
      writeFileSync(at.file, whole);
      return Promise.resolve();
    };
    const found = await changeEach({
      tables: () =>
        Promise.resolve(
          withDatabase(at.file, (db) =>
            db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1`).pluck().all(),
          ) as string[],
        ),
      rows: (table) =>
        Promise.resolve(
          withDatabase(at.file, (db) => db.prepare(`SELECT * FROM ${table} LIMIT ${ROWS_MAX}`).all()) as Row[],
        ),
      change: (table, row, column, value) => {
        const key = keyOf(table);
        const where = key.map((name) => `${name} = ?`).join(' AND ');
        const isChanged = withDatabase(at.file, (db) => {
          db.pragma('ignore_check_constraints = ON');
          try {
            const sql = `UPDATE ${table} SET ${column} = ? WHERE ${where}`;
            return db.prepare(sql).run(value, ...key.map((name) => row[name])).changes === 1;
          } catch {
            return false;
          }
        });
        return Promise.resolve(isChanged ? putBack : null);
      },
      open: () => Promise.resolve(openSqliteStore({ ...at, readOnly: true })),
    });
    report('SQLite', found);
    expect(unexpected('sqlite', found)).toEqual([]);
    expect([...found.tried]).toEqual(expect.arrayContaining(EVIDENCE));
    at.remove();
  },
  MS_MAX,
);

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());
const onPostgres = server === null ? describe.skip : describe;

const literal = (value: Value | undefined): string => {
  if (value === null || value === undefined) return 'NULL';
  return `'${String(value).replaceAll("'", "''")}'`;
};

onPostgres('S4-86', () => {
  test(
    'in PostgreSQL',
    async () => {
      const place = ledgerPlace(server?.url ?? '');
      await fill(await createPostgresStore(place));
      const constraints = (await place.exec(
        `SELECT conrelid::regclass::text AS owner, conname AS name FROM pg_constraint
         WHERE connamespace = '${place.schema}'::regnamespace AND contype = 'c'`,
      )) as { readonly owner: string; readonly name: string }[];
      for (const { owner, name } of constraints) await place.exec(`ALTER TABLE ${owner} DROP CONSTRAINT ${name}`);
      const put = async (table: string, row: Value | undefined, column: string, value: Value | undefined) =>
        (await place.exec(
          `SET session_replication_role = replica;
           UPDATE ${table} SET ${column} = ${literal(value)} WHERE ctid = ${literal(row)} RETURNING ctid::text AS row`,
        )) as Row[];
      const found = await changeEach({
        tables: async () =>
          (
            (await place.exec(
              `SELECT tablename AS name FROM pg_tables WHERE schemaname = '${place.schema}' ORDER BY 1`,
            )) as Row[]
          ).map(({ name }) => String(name)),
        // As texts, which the database reads as it wrote them.
        rows: async (table) => {
          const columns = (await place.exec(
            `SELECT string_agg(quote_ident(attname) || '::text', ', ') AS list FROM pg_attribute
             WHERE attrelid = '${table}'::regclass AND attnum > 0 AND NOT attisdropped`,
          )) as Row[];
          const shown = String(columns[0]?.['list']);
          return (await place.exec(`SELECT ctid::text AS row, ${shown} FROM ${table} LIMIT ${ROWS_MAX}`)) as Row[];
        },
        change: async (table, row, column, value) => {
          const [changed] = await put(table, row['row'], column, value).catch(() => []);
          if (changed === undefined) return null;
          return async () => {
            const [back] = await put(table, changed['row'], column, row[column]);
            (row as Record<string, Value>)['row'] = back?.['row'] ?? null;
          };
        },
        open: () => openPostgresStore({ ...place, readOnly: true }),
      });
      report('PostgreSQL', found);
      expect(unexpected('postgres', found)).toEqual([]);
      expect([...found.tried]).toEqual(expect.arrayContaining([...EVIDENCE, 'log.log_index', 'head.size']));
      await place.remove();
    },
    MS_MAX,
  );
});

// Reads an SQLite ledger for a copy. Each page is one query, because an open cursor would block the event loop.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  CopiedBlock,
  CopiedContent,
  CopiedMarks,
  CopiedRecords,
  CopiedTree,
  CopyPages,
  LedgerCopySource,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import { type CaseKeys, SEAL_BYTES } from '../../keys/case-keys.js';
import { tamperedError } from '../../ledger/store-errors.js';
import { OWN_PREFIX } from '../../records/sql-table.js';
import { hashesIn } from '../content/sqlite-archives.js';
import { readArtifactFile } from '../content/sqlite-artifact-files.js';
import { artifactNumbers, readMarks } from '../sqlite-rows.js';
import { type SqliteConnection, asLedgerError } from '../sqlite-binding.js';
import { openDatabase } from '../sqlite-database.js';
import { SqliteRunRecords } from '../sqlite-run-records.js';

const PAGE_BLOCKS = 256;
const PAGE_ROWS = 1_024;
/** Rows of contents in one page; each has at most 256 KiB in the database. */
const PAGE_CONTENTS = 64;
const PAGE_RECORDED = 64;
const HASH_BYTES = 32;

export interface SqliteCopySourceOptions {
  readonly file: string;
  readonly artifactsDir: string;
  readonly keys: CaseKeys;
}

/** Opens a ledger of the current format whose writer lock the caller has. @throws like `openSqliteStore` */
export const openSqliteCopySource = (options: SqliteCopySourceOptions): LedgerCopySource =>
  new SqliteCopySource(openDatabase(options.file, true), options);

class SqliteCopySource implements LedgerCopySource {
  readonly #db: SqliteConnection;
  readonly #options: SqliteCopySourceOptions;

  constructor(db: SqliteConnection, options: SqliteCopySourceOptions) {
    this.#db = db;
    this.#options = options;
  }

  async head(): Promise<LogHead> {
    const sql = 'SELECT size, lower(hex(root)) AS root, lower(hex(frontier)) AS frontier FROM meta';
    const [row] = await this.#read<{ size: number; root: string; frontier: string }>(sql, []);
    if (row === undefined) throw tamperedError('the ledger has lost its head');
    return { size: row.size, root: row.root, frontier: hashesIn(row.frontier) };
  }

  async findObstacle(): Promise<string | null> {
    const [archived] = await this.#read<{ size: number | null }>('SELECT max(size) AS size FROM archives', []);
    if (archived?.size != null) {
      return (
        `its first ${archived.size} entries are in archive files, which a copy would not continue: ` +
        'copy the folder of the closed home to move it'
      );
    }
    const tables = await this.#read<{ name: string }>(OWN_TABLES, []);
    if (tables.length === 0) return null;
    return (
      `it holds tables of records (${tables.map(({ name }) => name).join(', ')}), which a copy would leave behind: ` +
      'move these records to a database of their own first'
    );
  }

  async *contents(): CopyPages<CopiedContent> {
    for (let from = 0; ;) {
      const rows = await this.#read<ContentRow>(CONTENTS, [from, PAGE_CONTENTS]);
      if (rows.length === 0) return;
      const page: CopiedContent[] = [];
      for (const row of rows) {
        const content = { ...row, stored: await this.#storedBytes(row) };
        // A large content is a page of its own.
        if (row.stored === null && content.stored !== null) yield [...page.splice(0), content];
        else page.push(content);
      }
      if (page.length > 0) yield page;
      from = (rows.at(-1)?.no ?? 0) + 1;
    }
  }

  /** @returns null if the content was erased */
  async #storedBytes({ case_id, key_no, sha256, byte_size, stored }: ContentRow): Promise<Uint8Array | null> {
    const { keys, artifactsDir: directory } = this.#options;
    if (case_id !== null && key_no > 0 && 'erased_below' in keys.get(case_id, key_no)) return null;
    if (stored !== null) return stored;
    return readArtifactFile({ directory, case_id, sha256, sealed: key_no }, byte_size + (key_no > 0 ? SEAL_BYTES : 0));
  }

  async *blocks(): CopyPages<CopiedBlock> {
    for (let from = 0; ;) {
      const rows = await this.#read<BlockColumns>(BLOCKS, [from, PAGE_BLOCKS]);
      if (rows.length === 0) return;
      yield rows.map(toCopiedBlock);
      from = (rows.at(-1)?.log_index ?? 0) + 1;
    }
  }

  async *trees(): CopyPages<CopiedTree> {
    for (let from = 0; ;) {
      const rows = await this.#read<TreeColumns>(TREES, [from, PAGE_ROWS]);
      if (rows.length === 0) return;
      yield rows.map((row) => ({ ...row, ended: row.ended === 1, unfinished: row.unfinished === 1 }));
      from = (rows.at(-1)?.log_index ?? 0) + 1;
    }
  }

  async *marks(): CopyPages<CopiedMarks> {
    for (let from = 0; ;) {
      const rows = await this.#read<{ mark_no: number; marks: string }>(MARKS, [from, PAGE_ROWS]);
      if (rows.length === 0) return;
      yield rows.map(({ mark_no, marks }) => readMarks(mark_no, marks));
      from = (rows.at(-1)?.mark_no ?? 0) + 1;
    }
  }

  async *records(): CopyPages<CopiedRecords> {
    for (let from = 0; ;) {
      const trees = await this.#read<{ row: number; tree_id: string; seq: number }>(RECORDED, [from, PAGE_RECORDED]);
      if (trees.length === 0) return;
      const page: CopiedRecords[] = [];
      for (const { tree_id, seq } of trees) {
        const records = await this.#read<{ run_id: string; text: string }>(RECORDS, [tree_id]);
        page.push({ tree: { tree_id, seq }, records: records.map((record) => ({ tree_id, ...record })) });
      }
      yield page;
      from = (trees.at(-1)?.row ?? 0) + 1;
    }
  }

  async *unrecorded(): CopyPages<string> {
    const records = new SqliteRunRecords(this.#db);
    for (let from: number | null = records.firstUnrecorded(); from !== null;) {
      const { rows, next }: ReturnType<SqliteRunRecords['unrecorded']> = records.unrecorded(from);
      if (rows.length > 0) yield rows.map(({ tree_id }) => tree_id);
      from = next;
      await nextTurn();
    }
  }

  close(): Promise<void> {
    this.#db.close();
    return Promise.resolve();
  }

  async #read<Row>(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    await nextTurn();
    try {
      return this.#db.prepare(sql).all(...values) as Row[];
    } catch (cause) {
      throw asLedgerError(cause, `the ledger ${this.#options.file} cannot be read`);
    }
  }
}

type ContentRow = Omit<CopiedContent, 'stored'> & { readonly stored: Buffer | null };

interface BlockColumns extends Pick<CopiedBlock, 'tree_id' | 'seq' | 'log_index' | 'types' | 'texts'> {
  readonly leaf_hashes: Buffer;
  readonly artifacts: string | null;
}

type TreeColumns = Omit<CopiedTree, 'ended' | 'unfinished'> & Readonly<Record<'ended' | 'unfinished', number>>;

function toCopiedBlock({ artifacts, ...block }: BlockColumns): CopiedBlock {
  const count = block.leaf_hashes.byteLength / HASH_BYTES;
  const entries = artifacts === null ? [] : Array.from({ length: count }, (_, entry) => entry);
  return {
    ...block,
    contents: entries.flatMap((entry) => artifactNumbers(artifacts, entry).map((no) => ({ entry, no }))),
  };
}

const OWN_TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '${OWN_PREFIX}*' ORDER BY name`;
const CONTENTS = `SELECT artifact_no AS no, case_id, lower(hex(sha256)) AS sha256, kind, byte_size, sealed AS key_no,
  bytes AS stored FROM artifacts WHERE artifact_no >= ? ORDER BY artifact_no LIMIT ?`;
const BLOCKS = `SELECT log_index, tree_id, seq, artifacts, types, leaf_hashes, texts FROM blocks
  WHERE log_index >= ? ORDER BY log_index LIMIT ?`;
const TREES = `SELECT log_index, tree_id, case_id, ended, unfinished, wake_at FROM trees
  WHERE log_index >= ? ORDER BY log_index LIMIT ?`;
const MARKS = 'SELECT mark_no, marks FROM marks WHERE mark_no >= ? ORDER BY mark_no LIMIT ?';
const RECORDED = `SELECT rowid AS row, tree_id, seq FROM recorded_trees WHERE rowid >= ? ORDER BY rowid LIMIT ?`;
const RECORDS = 'SELECT run_id, record AS text FROM run_records WHERE tree_id = ? ORDER BY run_id';

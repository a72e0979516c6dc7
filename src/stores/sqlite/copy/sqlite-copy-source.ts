// Reads an SQLite ledger for a copy. Each page is one query, because an open cursor would block the event loop.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  CopiedBlock,
  CopiedContent,
  CopiedEnd,
  CopiedMark,
  CopiedTree,
  CopyPages,
  LedgerCopySource,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import { type CaseKeys, SEAL_BYTES } from '../../keys/case-keys.js';
import { OWN_PREFIX } from '../../../engine/ports/effects/records.js';
import { hashesIn } from '../content/sqlite-archives.js';
import { INLINE_BYTES_MAX, readArtifactFile } from '../content/sqlite-artifact-files.js';
import type { ContentStorage } from '../content/sqlite-artifacts.js';
import { asLedgerError } from '../sqlite-binding.js';
import { componentsOf, ledgerFile, type SqliteComponents } from '../sqlite-medium.js';
import { artifactNumbers, readMarks } from '../sqlite-rows.js';

const PAGE_BLOCKS = 256;
const PAGE_ROWS = 1_024;
/** Rows of contents in one page; each has at most 256 KiB in the database. */
const PAGE_CONTENTS = 64;
const PAGE_RECORDED = 64;

export interface SqliteCopySourceOptions {
  readonly file: string;
  readonly artifactsDir: string;
  readonly keys: CaseKeys;
}

/** Opens a ledger of the current format whose writer lock the caller has. @throws like `openSqliteStore` */
export const openSqliteCopySource = (options: SqliteCopySourceOptions): LedgerCopySource =>
  new SqliteCopySource(options);

class SqliteCopySource implements LedgerCopySource {
  readonly #file: string;
  readonly #storage: ContentStorage;
  readonly #parts: SqliteComponents;

  constructor({ file, artifactsDir: directory, keys }: SqliteCopySourceOptions) {
    this.#file = file;
    this.#storage = { directory, keys };
    const medium = ledgerFile(file, this.#storage, { readOnly: true });
    this.#parts = componentsOf(medium, medium.connect());
  }

  head(): Promise<LogHead> {
    return this.#query(() => this.#parts.reader.head());
  }

  async findObstacle(): Promise<string | null> {
    const archived = await this.#query(() => this.#parts.archives.size());
    if (archived > 0) {
      return (
        `its first ${archived} entries are in archive files, which a copy would not continue: ` +
        'copy the folder of the closed home to move it'
      );
    }
    const tables = await this.#read<{ name: string }>(OWN_TABLES);
    if (tables.length === 0) return null;
    return (
      `it holds tables of records (${tables.map(({ name }) => name).join(', ')}), which a copy would leave behind: ` +
      'move these records to a database of their own first'
    );
  }

  async *contents(): CopyPages<CopiedContent> {
    for await (const rows of this.#pages<ContentRow>(CONTENTS, 'no', PAGE_CONTENTS)) {
      let page: CopiedContent[] = [];
      for (const row of rows) {
        page.push({ ...row, stored: await this.#storedBytes(row) });
        if (row.byte_size <= INLINE_BYTES_MAX) continue;
        yield page;
        page = [];
      }
      yield page;
    }
  }

  /** @returns null if the content was erased */
  async #storedBytes({ case_id, key_no, sha256, byte_size, stored }: ContentRow): Promise<Uint8Array | null> {
    const { keys, directory } = this.#storage;
    if (case_id !== null && key_no > 0 && 'erased_below' in keys.get(case_id, key_no)) return null;
    if (stored !== null) return stored;
    return readArtifactFile({ directory, case_id, sha256, sealed: key_no }, byte_size + (key_no > 0 ? SEAL_BYTES : 0));
  }

  async *blocks(): CopyPages<CopiedBlock> {
    for await (const rows of this.#pages<BlockColumns>(BLOCKS, 'log_index', PAGE_BLOCKS)) yield rows.map(toCopiedBlock);
  }

  async *trees(): CopyPages<CopiedTree> {
    for await (const rows of this.#pages<TreeColumns>(TREES, 'log_index', PAGE_ROWS))
      yield rows.map((row) => ({ ...row, ended: row.ended === 1, unfinished: row.unfinished === 1 }));
  }

  async *marks(): CopyPages<CopiedMark> {
    for await (const rows of this.#pages<{ mark_no: number; marks: string }>(MARKS, 'mark_no', PAGE_ROWS)) {
      yield rows.flatMap(({ mark_no, marks }) => {
        const { proposals, inputs } = readMarks(mark_no, marks);
        return [...proposals, ...inputs];
      });
    }
  }

  async *ends(): CopyPages<CopiedEnd> {
    for await (const trees of this.#pages<RecordedColumns>(RECORDED, 'row', PAGE_RECORDED)) {
      const page: CopiedEnd[] = [];
      for (const { tree_id, seq } of trees)
        page.push({ tree_id, seq, records: await this.#read<CopiedEnd['records'][number]>(RECORDS, [tree_id]) });
      yield page;
    }
    const { runRecords } = this.#parts;
    for (let from: number | null = await this.#query(() => runRecords.firstUnrecorded()); from !== null;) {
      const start: number = from;
      const { rows, next } = await this.#query(() => runRecords.unrecorded(start));
      yield rows.map(({ tree_id }) => ({ tree_id, seq: null, records: [] }));
      from = next;
    }
  }

  close(): Promise<void> {
    this.#parts.db.close();
    return Promise.resolve();
  }

  /** @param sql has the key of the first row as its first parameter, and the size of the page as its second */
  async *#pages<Row extends object>(sql: string, key: keyof Row, size: number): CopyPages<Row> {
    for (let from = 0; ;) {
      const rows = await this.#read<Row>(sql, [from, size]);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      from = Number(last[key]) + 1;
    }
  }

  #read<Row>(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#query(() => this.#parts.db.prepare(sql).all(...values) as Row[]);
  }

  async #query<T>(work: () => T): Promise<T> {
    await nextTurn();
    try {
      return work();
    } catch (cause) {
      throw asLedgerError(cause, `the ledger ${this.#file} cannot be read`);
    }
  }
}

type ContentRow = Omit<CopiedContent, 'stored'> & { readonly stored: Buffer | null };

interface BlockColumns extends Pick<CopiedBlock, 'tree_id' | 'seq' | 'log_index' | 'types' | 'texts'> {
  readonly leaf_hashes: Buffer;
  readonly artifacts: string | null;
}

type TreeColumns = Omit<CopiedTree, 'ended' | 'unfinished'> & Readonly<Record<'ended' | 'unfinished', number>>;

interface RecordedColumns {
  readonly row: number;
  readonly tree_id: string;
  readonly seq: number;
}

function toCopiedBlock({ artifacts, ...block }: BlockColumns): CopiedBlock {
  const leaf_hashes = hashesIn(block.leaf_hashes.toString('hex'));
  const entries = artifacts === null ? [] : leaf_hashes.keys();
  const contents = [...entries].flatMap((entry) => artifactNumbers(artifacts, entry).map((no) => ({ entry, no })));
  return { ...block, leaf_hashes, contents };
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

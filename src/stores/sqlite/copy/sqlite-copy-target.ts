// Fills a new SQLite ledger with the rows of another one. The file is a draft under another name, without a journal:
// an interrupted copy starts again. `finish` makes it durable and gives it its name.

import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  CopiedBlock,
  CopiedContent,
  CopiedMarks,
  CopiedRecords,
  CopiedTree,
  LedgerCopyTarget,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import { fsyncDirectorySync } from '../../../system/files/fsync-directory.js';
import { INLINE_BYTES_MAX, writeArtifactFile } from '../content/sqlite-artifact-files.js';
import {
  BLOCK_CHARS_MAX,
  BLOCK_ENTRIES_MAX,
  ENDED_MARK,
  inputKey,
  marksText,
  proposalKey,
  type BatchMarks,
} from '../sqlite-rows.js';
import { connectSqlite, type SqliteConnection, type SqliteStatement, asLedgerError } from '../sqlite-binding.js';
import { createDatabase, withoutTriggers } from '../sqlite-database.js';

/** Marks in one row: a lookup parses the whole row. */
const ROW_MARKS = 32;
/** Memory of the page cache, in KiB: rows of the index by mark are not inserted in its order. */
const CACHE_KIB = 65_536;
const HASH_BYTES = 32;

export interface SqliteCopyTargetOptions {
  /** The database file, which does not exist yet. */
  readonly file: string;
  readonly artifactsDir: string;
}

/** The file of an unfinished copy. */
export const copyDraftOf = (file: string): string => `${file}.copy`;

/** Creates an empty draft; removes one that an interrupted copy has left. @throws LedgerError LEDGER_UNAVAILABLE */
export function createSqliteCopyTarget(options: SqliteCopyTargetOptions): LedgerCopyTarget {
  const draft = copyDraftOf(options.file);
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${suffix}`, { force: true });
  createDatabase(draft);
  const db = connectSqlite(draft);
  db.pragma('locking_mode = EXCLUSIVE');
  db.pragma('journal_mode = OFF');
  db.pragma('synchronous = OFF');
  db.pragma('temp_store = FILE');
  db.pragma(`cache_size = -${CACHE_KIB}`);
  return new SqliteCopyTarget(db, options);
}

class SqliteCopyTarget implements LedgerCopyTarget {
  readonly #db: SqliteConnection;
  readonly #options: SqliteCopyTargetOptions;
  readonly #inserts: Readonly<Record<keyof typeof INSERTS, SqliteStatement>>;
  #nextMark = 0;

  constructor(db: SqliteConnection, options: SqliteCopyTargetOptions) {
    this.#db = db;
    this.#options = options;
    const statements = Object.entries(INSERTS).map(([name, sql]) => [name, db.prepare(sql)]);
    this.#inserts = Object.fromEntries(statements) as Record<keyof typeof INSERTS, SqliteStatement>;
  }

  addContents(page: readonly CopiedContent[]): Promise<void> {
    const { artifactsDir: directory } = this.#options;
    return this.#write(() => {
      // Numbers of contents stay the same, also with gaps between them.
      withoutTriggers(this.#db, ['artifacts_insert'], () => {
        for (const { no, case_id, sha256, kind, byte_size, key_no, stored } of page) {
          const inFile = stored !== null && byte_size > INLINE_BYTES_MAX;
          if (inFile) writeArtifactFile({ directory, case_id, sha256, sealed: key_no }, stored);
          const bytes = inFile ? null : stored;
          this.#inserts.content.run(no, case_id, Buffer.from(sha256, 'hex'), kind, byte_size, bytes, key_no);
        }
      });
    });
  }

  addBlocks(page: readonly CopiedBlock[]): Promise<void> {
    return this.#write(() => {
      for (const block of page.flatMap(splitBlock)) {
        const { log_index, tree_id, seq, types, leaf_hashes, texts, contents } = block;
        this.#inserts.block.run(log_index, tree_id, seq, artifactsText(contents), types, leaf_hashes, texts);
      }
    });
  }

  addTrees(page: readonly CopiedTree[]): Promise<void> {
    return this.#write(() => {
      for (const { log_index, tree_id, case_id, ended, unfinished, wake_at } of page)
        this.#inserts.tree.run(log_index, tree_id, case_id, Number(ended), Number(unfinished), wake_at);
    });
  }

  addMarks(page: readonly CopiedMarks[]): Promise<void> {
    const proposals = page.flatMap((marks) => marks.proposals);
    const inputs = page.flatMap((marks) => marks.inputs);
    return this.#write(() => {
      for (const some of slices(proposals)) this.#addMarks({ proposals: some, inputs: [], ended: [] });
      for (const some of slices(inputs)) this.#addMarks({ proposals: [], inputs: some, ended: [] });
    });
  }

  addRecords(page: readonly CopiedRecords[]): Promise<void> {
    return this.#write(() => {
      const mark_no = this.#addMarks({ proposals: [], inputs: [], ended: page.map(({ tree }) => tree.tree_id) });
      for (const { tree, records } of page) {
        for (const { tree_id, run_id, text } of records) this.#inserts.record.run(tree_id, run_id, text);
        this.#inserts.recorded.run(tree.tree_id, mark_no, tree.seq);
      }
    });
  }

  addUnrecorded(page: readonly string[]): Promise<void> {
    return this.#write(() => {
      for (const ended of slices(page)) this.#addMarks({ proposals: [], inputs: [], ended });
    });
  }

  /** @returns the number of the new row */
  #addMarks(marks: BatchMarks): number {
    const mark_no = this.#nextMark++;
    this.#inserts.marks.run(mark_no, marksText(marks));
    for (const mark of marks.proposals) this.#addMark(proposalKey(mark), mark_no);
    for (const mark of marks.inputs) this.#addMark(inputKey(mark), mark_no);
    for (const scope of marks.ended) this.#addMark({ scope, name: ENDED_MARK }, mark_no);
    return mark_no;
  }

  #addMark({ scope, name }: { readonly scope: string; readonly name: string }, mark_no: number): void {
    this.#inserts.mark.run(scope, name, mark_no);
  }

  async finish({ size, root, frontier }: LogHead): Promise<void> {
    await this.#write(() => this.#db.exec(INDEX_TREES));
    await this.#write(() => this.#db.exec(INDEX_CONTENTS));
    await this.#write(() => {
      const hashes = [root, frontier.join('')].map((hex) => Buffer.from(hex, 'hex'));
      this.#db.prepare(FINISH).run(size, ...hashes, size, this.#nextMark);
    });
    const draft = copyDraftOf(this.#options.file);
    await this.#attempt(() => {
      this.#db.pragma('locking_mode = NORMAL');
      this.#db.pragma('journal_mode = WAL');
      this.#db.close();
      const file = openSync(draft, 'r');
      try {
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(draft, this.#options.file);
      fsyncDirectorySync(dirname(draft));
    });
  }

  /** The mark of an unfinished copy is in the home directory, not in the database. */
  publish(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#db.close();
    return Promise.resolve();
  }

  #write(work: () => void): Promise<void> {
    return this.#attempt(() => {
      this.#db.exec('BEGIN');
      work();
      this.#db.exec('COMMIT');
    });
  }

  async #attempt(work: () => void): Promise<void> {
    await nextTurn();
    try {
      work();
    } catch (cause) {
      throw asLedgerError(cause, `the copy ${this.#options.file} cannot be written`);
    }
  }
}

const INSERTS = {
  content: 'INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?)',
  block: 'INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)',
  tree: 'INSERT INTO trees VALUES (?, ?, ?, ?, ?, ?)',
  marks: 'INSERT INTO marks VALUES (?, ?)',
  mark: 'INSERT INTO mark_index VALUES (?, ?, ?)',
  record: 'INSERT INTO run_records VALUES (?, ?, ?)',
  recorded: 'INSERT INTO recorded_trees VALUES (?, ?, ?)',
} as const;

const INDEX_TREES = 'INSERT INTO tree_index SELECT tree_id, seq, log_index FROM blocks ORDER BY tree_id, seq';
const INDEX_CONTENTS = `INSERT INTO artifact_index SELECT sha256, artifact_no FROM artifacts
  ORDER BY sha256, artifact_no`;
const FINISH = `UPDATE meta SET size = ?, root = ?, frontier = ?, blocks_indexed = ?, marks_indexed = ?,
  artifacts_indexed = (SELECT ifnull(max(artifact_no) + 1, 0) FROM artifacts)`;

const slices = <T>(all: readonly T[]): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / ROW_MARKS) }, (_, n) => all.slice(n * ROW_MARKS, (n + 1) * ROW_MARKS));

/** Readers load a block as a whole, so its size is limited, unless a single entry is larger. */
function splitBlock(block: CopiedBlock): readonly CopiedBlock[] {
  const count = block.leaf_hashes.byteLength / HASH_BYTES;
  if (count === 1 || (count <= BLOCK_ENTRIES_MAX && block.texts.length <= BLOCK_CHARS_MAX)) return [block];
  const [types, texts] = [block.types.split(' '), block.texts.split('\n')];
  const blocks: CopiedBlock[] = [];
  for (let begin = 0, end = 0; begin < count; begin = end) {
    let chars = texts[begin]?.length ?? 0;
    for (end = begin + 1; end < count && end - begin < BLOCK_ENTRIES_MAX; end += 1) {
      const next = texts[end]?.length ?? 0;
      if (chars + next >= BLOCK_CHARS_MAX) break;
      chars += 1 + next;
    }
    blocks.push({
      tree_id: block.tree_id,
      seq: block.seq + begin,
      log_index: block.log_index + begin,
      types: types.slice(begin, end).join(' '),
      texts: texts.slice(begin, end).join('\n'),
      leaf_hashes: block.leaf_hashes.subarray(begin * HASH_BYTES, end * HASH_BYTES),
      contents: block.contents
        .filter(({ entry }) => entry >= begin && entry < end)
        .map(({ entry, no }) => ({ entry: entry - begin, no })),
    });
  }
  return blocks;
}

/** @returns the column `artifacts` of a block; null for none */
function artifactsText(contents: CopiedBlock['contents']): string | null {
  if (contents.length === 0) return null;
  const numbers: Record<number, number[]> = {};
  for (const { entry, no } of contents) (numbers[entry] ??= []).push(no);
  return JSON.stringify(numbers);
}

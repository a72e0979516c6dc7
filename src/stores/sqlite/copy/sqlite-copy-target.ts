// Fills a new SQLite ledger with the rows of another one. The file is a draft under another name, without a journal:
// an interrupted copy starts again. `finish` makes it durable and gives it its name.

import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  CopiedBlock,
  CopiedContent,
  CopiedEnd,
  CopiedMark,
  CopiedTree,
  LedgerCopyTarget,
} from '../../../engine/ports/ledger/ledger-copy.js';
import { nameInLedger } from '../../../core/contract/entry-name.js';
import type { LogHead } from '../../../core/ledger/readable-ledger.js';
import { fsyncDirectorySync } from '../../../system/files/fsync-directory.js';
import { INLINE_BYTES_MAX, writeArtifactFile } from '../content/sqlite-artifact-files.js';
import { tamperedError } from '../../ledger/store-errors.js';
import { blocksOf, keysOf, marksText, type BatchMarks, type Block } from '../sqlite-rows.js';
import { connectSqlite, type SqliteConnection, type SqliteStatement, asLedgerError } from '../sqlite-binding.js';
import { createDatabase, withoutTriggers } from '../sqlite-database.js';
import { syncFile } from './sqlite-backup.js';

/** Marks in one row: a lookup parses the whole row. */
const ROW_MARKS = 32;
/** Memory of the page cache, in KiB: rows of the index by mark are not inserted in its order. */
const CACHE_KIB = 65_536;

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
  readonly needsLeases = false;
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
      for (const { log_index, tree_id, seq, artifacts, types, leaf_hashes, texts } of page.flatMap(toBlocks))
        this.#inserts.block.run(log_index, tree_id, seq, artifacts, types, leaf_hashes, texts.join('\n'));
    });
  }

  addTrees(page: readonly CopiedTree[]): Promise<void> {
    return this.#write(() => {
      for (const { log_index, tree_id, case_id, ended, unfinished, wake_at } of page)
        this.#inserts.tree.run(log_index, tree_id, case_id, Number(ended), Number(unfinished), wake_at);
    });
  }

  addMarks(page: readonly CopiedMark[]): Promise<void> {
    return this.#write(() => {
      for (const marks of slices(page)) {
        const proposals = marks.filter((mark) => 'proposal_id' in mark);
        const inputs = marks.filter((mark) => 'input_id' in mark);
        this.#addMarks({ proposals, inputs, ended: [] });
      }
    });
  }

  addEnds(page: readonly CopiedEnd[]): Promise<void> {
    return this.#write(() => {
      for (const ends of slices(page)) {
        const mark_no = this.#addMarks({ proposals: [], inputs: [], ended: ends.map(({ tree_id }) => tree_id) });
        for (const { tree_id, seq, records } of ends) {
          for (const { run_id, text } of records) this.#inserts.record.run(tree_id, run_id, text);
          if (seq !== null) this.#inserts.recorded.run(tree_id, mark_no, seq);
        }
      }
    });
  }

  /** @returns the number of the new row */
  #addMarks(marks: BatchMarks): number {
    const mark_no = this.#nextMark++;
    this.#inserts.marks.run(mark_no, marksText(marks));
    for (const { scope, name } of keysOf(marks)) this.#inserts.mark.run(scope, name, mark_no);
    return mark_no;
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
      syncFile(draft);
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

/** Readers load a block as a whole, so blocks that are too large for this store are split. */
function toBlocks({ tree_id, seq, log_index, types, texts, leaf_hashes, contents }: CopiedBlock): readonly Block[] {
  const [textList, typeList] = [texts.split('\n'), types.split(' ')];
  if (textList.length !== leaf_hashes.length || typeList.length !== leaf_hashes.length)
    throw tamperedError(`the block at entry ${nameInLedger(log_index)} has lost an entry`);
  const entries = leaf_hashes.map((leaf_hash, at) => {
    return { leaf_hash, text: textList[at] ?? '', entry: { type: typeList[at] ?? '' } };
  });
  const attached = new Map<number, number[]>();
  for (const { entry, no } of contents) attached.set(entry, [...(attached.get(entry) ?? []), no]);
  return blocksOf({ tree_id, from: seq, entries }, log_index, attached);
}

import { nameInLedger, nameInTree } from '../../core/contract/entry-name.js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  CursorOptions,
  EntryPlace,
  LogHead,
  StoredEntry,
  StoredSnapshot,
  TreeSummary,
  OpenTree,
  TreeAppend,
} from '../../engine/ports/ledger/ledger-store.js';
import { hashesIn, type SqliteArchives } from './content/sqlite-archives.js';
import { ENDED_MARK, entriesOf, type BlockContent, type BlockRow } from './sqlite-rows.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-binding.js';
import type { SqliteTail } from './sqlite-index.js';
import { tamperedError } from '../ledger/store-errors.js';

const PAGE_TREES = 256;
/** How many blocks one page has at most. */
const PAGE_BLOCKS = 32;

// Texts are read as bytes, so that a damaged text can still be read and reported.
const BLOCK =
  'b.log_index, b.tree_id, b.seq, b.artifacts, b.types, b.leaf_hashes, CAST(b.texts AS BLOB) AS texts FROM blocks b';

/** One page of a query, and where the next page begins; null at the end. */
export interface QueryPage<Row> {
  readonly rows: readonly Row[];
  readonly next: number | null;
}

/** An entry, and the block that contains it. */
export interface BlockEntry {
  readonly entry: StoredEntry;
  readonly block: BlockContent;
}

/** The queries of a ledger. Each one reads a single state of the database. */
export class SqliteReader {
  readonly #tail: SqliteTail;
  readonly #archives: SqliteArchives;
  readonly #head: SqliteStatement;
  readonly #logStart: SqliteStatement;
  readonly #log: SqliteStatement;
  readonly #block: SqliteStatement;
  readonly #contentAt: SqliteStatement;
  readonly #treeStart: SqliteStatement;
  readonly #tree: SqliteStatement;
  readonly #blockEnd: SqliteStatement;
  readonly #listTrees: SqliteStatement;
  readonly #snapshot: SqliteStatement;

  constructor(db: SqliteConnection, tail: SqliteTail, archives: SqliteArchives) {
    this.#tail = tail;
    this.#archives = archives;
    this.#head = db.prepare('SELECT size, lower(hex(root)) AS root, lower(hex(frontier)) AS frontier FROM meta');
    this.#logStart = db.prepare('SELECT max(log_index) FROM blocks WHERE log_index <= ?').pluck();
    this.#log = db.prepare(`SELECT ${BLOCK} WHERE b.log_index >= ? ORDER BY b.log_index LIMIT ?`);
    this.#block = db.prepare(`SELECT ${BLOCK} WHERE b.log_index = ?`);
    this.#contentAt = db.prepare(
      'SELECT log_index, tree_id, seq, artifacts FROM blocks WHERE log_index <= ? ORDER BY log_index DESC LIMIT 1',
    );
    // Below the start of the tail: index rows beyond it belong to a stretch that is not complete yet.
    const indexed = 'FROM tree_index WHERE tree_id = ? AND log_index < ?';
    this.#treeStart = db.prepare(`SELECT seq, log_index ${indexed} AND seq <= ? ORDER BY seq DESC LIMIT 1`);
    this.#tree = db.prepare(`SELECT seq, log_index ${indexed} AND seq >= ? ORDER BY seq LIMIT ?`);
    this.#blockEnd = db.prepare('SELECT seq + length(leaf_hashes) / 32 FROM blocks WHERE log_index = ?').pluck();
    this.#listTrees = db.prepare(
      `SELECT b.log_index, b.tree_id, m.mark_no FROM blocks b
       LEFT JOIN mark_index m ON m.scope = b.tree_id AND m.name = '${ENDED_MARK}'
       WHERE b.seq = 0 AND b.log_index >= ? ORDER BY b.log_index LIMIT ${PAGE_TREES}`,
    );
    this.#snapshot = db.prepare('SELECT tree_id, seq, mac, text FROM snapshots WHERE tree_id = ?');
  }

  /** @throws LedgerError LEDGER_TAMPERED if the row was removed */
  head(): LogHead {
    const row = this.#head.get() as (Omit<LogHead, 'frontier'> & { readonly frontier: string }) | undefined;
    if (row === undefined) throw tamperedError('the ledger has lost its head');
    return { ...row, frontier: hashesIn(row.frontier) };
  }

  /** The log index at which the block begins that contains this entry. */
  logStart(log_index: number): number {
    return Number(this.#logStart.get(log_index) ?? log_index);
  }

  /** The entries of the next blocks of the log. @throws LedgerError LEDGER_ARCHIVED if they were archived */
  log(from: number, count: number): QueryPage<StoredEntry> {
    const blocks = this.#log.all(from, count) as BlockRow[];
    if (blocks[0]?.log_index !== from) this.#archives.refuseEntry(from);
    return { rows: blocks.flatMap(entriesOf), next: nextAfter(blocks.at(-1)?.log_index) };
  }

  /** The seq at which the block begins that contains this entry of a tree. */
  treeStart(tree_id: string, fromSeq: number): number {
    this.#tail.refresh();
    const inTail = this.#tail.blocks(tree_id).findLast(({ seq }) => seq <= fromSeq);
    return (inTail ?? this.#lastIndexed(tree_id, fromSeq))?.seq ?? fromSeq;
  }

  /** The entries of the next blocks of a tree. @throws LedgerError LEDGER_TAMPERED, LEDGER_ARCHIVED */
  tree(tree_id: string, fromSeq: number, count: number): QueryPage<StoredEntry> {
    const { rows, next } = this.#blocks(tree_id, fromSeq, count);
    return { rows: rows.flatMap(entriesOf), next };
  }

  /** Like `tree`, each entry with its block, for its attached artifacts. */
  history(tree_id: string, fromSeq: number, count: number): QueryPage<BlockEntry> {
    const { rows, next } = this.#blocks(tree_id, fromSeq, count);
    return { rows: rows.flatMap((block) => entriesOf(block).map((entry) => ({ entry, block }))), next };
  }

  #blocks(tree_id: string, fromSeq: number, count: number): QueryPage<BlockRow> {
    this.#tail.refresh();
    const indexed = this.#tree.all(tree_id, this.#tail.start.log_index, fromSeq, count) as IndexedBlock[];
    const inTail = this.#tail.blocks(tree_id).filter(({ seq }) => seq >= fromSeq);
    const places = [...indexed, ...inTail].slice(0, count);
    const rows = places.map((place) => this.#blockAt(tree_id, place, this.#block));
    if (rows.length === 0) this.#archives.refuseTree(tree_id);
    return { rows: rows as BlockRow[], next: nextAfter(places.at(-1)?.seq) };
  }

  /** @throws LedgerError LEDGER_ARCHIVED; LEDGER_TAMPERED if the block is missing */
  #blockAt(tree_id: string, { log_index, seq }: IndexedBlock, statement: SqliteStatement): BlockContent {
    const block = statement.get(log_index) as BlockContent | undefined;
    if (block?.tree_id === tree_id && block.seq === seq) return block;
    this.#archives.refuseEntry(log_index);
    throw tamperedError(`entry ${nameInTree(tree_id, seq)} is not at ${nameInLedger(log_index)}, where it was`);
  }

  /** The block that contains an entry of a tree, or null. @throws LedgerError LEDGER_TAMPERED, LEDGER_ARCHIVED */
  blockOf({ tree_id, seq, log_index = null }: EntryPlace): BlockContent | null {
    if (log_index !== null) {
      // The caller's log index is tried first, and used only if it belongs to this entry.
      const block = this.#contentAt.get(log_index) as BlockContent | undefined;
      if (block?.tree_id === tree_id && block.seq - block.log_index === seq - log_index) return block;
    }
    this.#tail.refresh();
    const inTail = this.#tail.blocks(tree_id).findLast((block) => block.seq <= seq);
    const place = inTail ?? this.#lastIndexed(tree_id, seq);
    return place === undefined ? null : this.#blockAt(tree_id, place, this.#contentAt);
  }

  /** One entry of a tree; null if the tree has no such entry. */
  entryOf(tree_id: string, seq: number): StoredEntry | null {
    const { rows } = this.tree(tree_id, this.treeStart(tree_id, seq), 1);
    return rows.find((entry) => entry.seq === seq) ?? null;
  }

  /** The number of entries of a tree. @throws LedgerError LEDGER_ARCHIVED */
  treeEnd(tree_id: string): number {
    const last = this.#tail.blocks(tree_id).at(-1) ?? this.#lastIndexed(tree_id, Number.MAX_SAFE_INTEGER);
    if (last !== undefined) return Number(this.#blockEnd.get(last.log_index) ?? 0);
    this.#archives.refuseTree(tree_id);
    return 0;
  }

  #lastIndexed(tree_id: string, seq_max: number): IndexedBlock | undefined {
    return this.#treeStart.get(tree_id, this.#tail.start.log_index, seq_max) as IndexedBlock | undefined;
  }

  /** The log index of the first entry of a tree; null for a tree without entries. */
  firstIndex(tree_id: string): number | null {
    const inTail = this.#tail.blocks(tree_id)[0];
    return (this.#lastIndexed(tree_id, 0) ?? (inTail?.seq === 0 ? inTail : undefined))?.log_index ?? null;
  }

  /** The next trees that have entries. */
  listTrees(from: number): QueryPage<TreeSummary & { readonly log_index: number }> {
    this.#tail.refresh();
    const trees = this.#listTrees.all(from) as TreeListRow[];
    const rows = trees.map(({ log_index, tree_id, mark_no }) => ({
      tree_id,
      ended: mark_no !== null || this.#tail.mark({ scope: tree_id, name: ENDED_MARK }) !== undefined,
      log_index,
    }));
    return { rows, next: nextAfter(trees.at(-1)?.log_index) };
  }

  snapshot(tree_id: string): StoredSnapshot | null {
    return (this.#snapshot.get(tree_id) as StoredSnapshot | undefined) ?? null;
  }
}

interface IndexedBlock {
  readonly seq: number;
  readonly log_index: number;
}

interface TreeListRow {
  readonly log_index: number;
  readonly tree_id: string;
  readonly mark_no: number | null;
}

const nextAfter = (last: number | undefined): number | null => (last === undefined ? null : last + 1);

/** Reads at most `count` rows, starting at row `from`. */
export type PageReader<Row> = (from: number, count: number) => QueryPage<Row>;

/**
 * Reads page by page, because an open cursor would block writes on this connection and the truncation of the WAL.
 * The first page is a single block: many callers want one entry.
 */
export async function* readPages<Row>(
  start: number,
  read: (from: number, count: number) => Promise<QueryPage<Row>>,
  { signal }: CursorOptions = {},
): AsyncGenerator<Row> {
  for (let [from, count] = [start, 1]; ; count = PAGE_BLOCKS) {
    signal?.throwIfAborted();
    const { rows, next } = await read(from, count);
    yield* rows;
    if (next === null) return;
    from = next;
    if (count > 1) await nextTurn();
  }
}

// The table of trees: the case of each, and whether it has ended. A row is written when a tree opens, when it ends, and
// when a batch has a recovery hint for it.

const OPEN_TREES_PAGE = 256;

interface TreeStateRow {
  readonly log_index: number;
  readonly tree_id: string;
  readonly case_id: string | null;
  readonly ended: number;
  readonly unfinished: number;
  readonly wake_at: string | null;
}

export class SqliteTrees {
  readonly #reader: SqliteReader;
  readonly #ofCase: SqliteStatement;
  readonly #open: SqliteStatement;
  readonly #insert: SqliteStatement;
  readonly #end: SqliteStatement;
  readonly #setRecovery: SqliteStatement;

  constructor(db: SqliteConnection, reader: SqliteReader) {
    this.#reader = reader;
    const columns = 'log_index, tree_id, case_id, ended, unfinished, wake_at';
    this.#ofCase = db.prepare(`SELECT ${columns} FROM trees WHERE case_id = ? ORDER BY log_index`);
    this.#open = db.prepare(
      `SELECT ${columns} FROM trees WHERE ended = 0 AND log_index >= ? ORDER BY log_index LIMIT ${OPEN_TREES_PAGE}`,
    );
    this.#insert = db.prepare(
      'INSERT INTO trees VALUES (@log_index, @tree_id, @case_id, @ended, @unfinished, @wake_at)',
    );
    this.#end = db.prepare(
      'UPDATE trees SET ended = 1, unfinished = 0, wake_at = NULL WHERE log_index = ? AND ended = 0',
    );
    this.#setRecovery = db.prepare('UPDATE trees SET unfinished = ?, wake_at = ? WHERE log_index = ? AND ended = 0');
  }

  ofCase(case_id: string): readonly TreeSummary[] {
    const rows = this.#ofCase.all(case_id) as TreeStateRow[];
    return rows.map(({ tree_id, ended, log_index }) => ({ tree_id, ended: ended === 1, log_index }));
  }

  openTrees(from: number): QueryPage<OpenTree> {
    const rows = this.#open.all(from) as TreeStateRow[];
    const last = rows.at(-1)?.log_index;
    return { rows: rows.map(toOpenTree), next: last === undefined ? null : last + 1 };
  }

  /**
   * Writes what an append changes for its tree, within the open transaction: the append opens or ends it, or has a
   * recovery hint.
   * @param log_index the log index of the first entry of the append
   */
  write({ tree_id, opened, ended, recoveryHint: recovery }: TreeAppend, log_index: number): void {
    if (opened !== null) {
      const { unfinished, wake_at } = recovery ?? { unfinished: true, wake_at: null };
      const { case_id } = opened;
      const row = { log_index, tree_id, case_id, ended: Number(ended), unfinished: Number(unfinished), wake_at };
      this.#insert.run(row);
      return;
    }
    const first = this.#reader.firstIndex(tree_id);
    if (ended) this.#end.run(first);
    else if (recovery !== null) this.#setRecovery.run(Number(recovery.unfinished), recovery.wake_at, first);
  }
}

const toOpenTree = ({ tree_id, unfinished, wake_at }: TreeStateRow): OpenTree => ({
  tree_id,
  unfinished: unfinished === 1,
  wake_at,
});

// The queries of a ledger. Each one reads a single state of the database, in pages: an open cursor would hold a
// connection, and keep the server from removing old row versions.

import type {
  CursorOptions,
  EntryPlace,
  LogHead,
  OpenTree,
  PendingAppend,
  StoredEntry,
  TreeCursorOptions,
  TreeEntry,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { CopiedBlock } from '../../engine/ports/ledger/ledger-copy.js';
import { tamperedError } from '../ledger/store-errors.js';
import { createLruMap } from '../../system/lru-map.js';
import type { ReaderPool } from './postgres-connection.js';
import {
  hashesOf,
  hexOf,
  idParameter,
  integerOf,
  integerOrNull,
  integersOf,
  textOf,
  type Row,
} from './postgres-values.js';

const PAGE_TREES = 256;
/** How many blocks one page has at most, and the bytes of text after which it ends. */
const PAGE_BLOCKS = 64;
const PAGE_BYTES = 4 * 1_024 * 1_024;
/** The content numbers of this many entries are cached. */
const ENTRIES_MAX = 8_192;

export class PostgresReader {
  readonly #pool: ReaderPool;
  /** Rows never change. A check reads the log, and then the contents of each entry. */
  readonly #contents = createLruMap<readonly number[]>(ENTRIES_MAX);

  constructor(pool: ReaderPool) {
    this.#pool = pool;
  }

  /** @throws LedgerError LEDGER_TAMPERED if the row was removed */
  async head(): Promise<LogHead> {
    const [row] = await this.#pool.read(HEAD);
    if (row === undefined) throw tamperedError('the ledger has lost its head');
    const what = 'the head';
    return {
      size: integerOf(row, 'size', what),
      root: hexOf(row, 'root', what),
      frontier: hashesOf(row, 'frontier', what),
    };
  }

  async *log(fromIndex: number, { signal }: CursorOptions = {}): AsyncGenerator<StoredEntry> {
    // The first page is a single block: many callers want one entry.
    for (let [from, count, isNext] = [fromIndex, 1, false]; ; [count, isNext] = [PAGE_BLOCKS, true]) {
      signal?.throwIfAborted();
      const rows = await this.#pool.read(LOG_PAGE, [from, count, PAGE_BYTES, isNext]);
      for (const row of rows) {
        for (const { entry } of this.#read(row)) {
          const log_index = entry.log_index ?? -1;
          if (log_index < fromIndex) continue;
          yield { ...entry, log_index };
        }
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      from = integerOf(last, 'log_index', 'the log') + 1;
    }
  }

  /** The entries of trees from the given positions, tree by tree, in pages. */
  async *entries(places: readonly EntryPlace[], options: CursorOptions = {}): AsyncGenerator<readonly BlockRowEntry[]> {
    let rest = places.map(({ tree_id, seq }) => ({ tree_id: idParameter(tree_id), seq, isNext: false }));
    for (let count = 1; rest.length > 0; count = PAGE_BLOCKS) {
      options.signal?.throwIfAborted();
      const rows = await this.#pool.read(TREES_PAGE, treesPageParameters(rest, count));
      const froms = rest.map(({ seq }) => seq);
      yield rows.flatMap((row) => {
        const from = froms[Number(row['place']) - 1] ?? 0;
        return this.#read(row).filter(({ entry }) => entry.seq >= from);
      });
      const last = rows.at(-1);
      if (last === undefined) return;
      const seq = integerOf(last, 'seq', 'a block') + 1;
      const [first, ...others] = rest.slice(Number(last['place']) - 1);
      rest = first === undefined ? [] : [{ ...first, seq, isNext: true }, ...others];
    }
  }

  /** The numbers of the contents of an entry, in their order; none for an unknown entry. */
  async contentNumbers({ tree_id, seq }: EntryPlace): Promise<readonly number[]> {
    const known = this.#contents.get(`${tree_id} ${seq}`);
    if (known !== undefined) return known;
    const [row] = await this.#pool.read(CONTENTS_AT, [idParameter(tree_id), seq]);
    return row === undefined ? [] : contentNumbersAt(row, seq);
  }

  #read(row: Row): readonly BlockRowEntry[] {
    const entries = entriesOf(row);
    for (const { entry, contents } of entries) this.#contents.set(`${entry.tree_id} ${entry.seq}`, contents);
    return entries;
  }

  /** Integrated trees in log order, then those that are not integrated. */
  async *trees({ from: start = 0, signal }: TreeCursorOptions = {}): AsyncGenerator<TreeSummary> {
    const listed = new Set<string>();
    for (let [from, after] = [start, '-1']; ;) {
      signal?.throwIfAborted();
      const rows = await this.#pool.read(TREES, [from, after]);
      const integrated = rows.filter((row) => (row['log_index'] ?? null) !== null);
      for (const row of integrated) {
        const tree = summaryOf(row);
        // It may have been integrated after it was listed.
        if (!listed.has(tree.tree_id)) yield tree;
        from = (tree.log_index ?? 0) + 1;
      }
      if (integrated.length === PAGE_TREES) continue;
      const pending = rows.slice(integrated.length);
      for (const row of pending) {
        const tree = summaryOf(row);
        listed.add(tree.tree_id);
        yield tree;
        after = row['commit_no'] ?? after;
      }
      if (rows.length === 0) return;
    }
  }

  async treesOf(case_id: string): Promise<readonly TreeSummary[]> {
    return (await this.#pool.read(TREES_OF_CASE, [idParameter(case_id)])).map(summaryOf);
  }

  async *openTrees(): AsyncGenerator<OpenTree> {
    for (let after = '-1'; ;) {
      const rows = await this.#pool.read(OPEN_TREES, [after]);
      for (const row of rows) {
        const wake_at = row['wake_at'] ?? null;
        yield { tree_id: textOf(row, 'tree_id', 'a tree'), unfinished: row['unfinished'] !== 'f', wake_at };
        after = row['opened'] ?? after;
      }
      if (rows.length < PAGE_TREES) return;
    }
  }

  /** The case of a tree; null if it has none or is unknown. */
  async caseOf(tree_id: string): Promise<string | null> {
    const [row] = await this.#pool.read('SELECT case_id FROM trees WHERE tree_id = $1', [idParameter(tree_id)]);
    return row?.['case_id'] ?? null;
  }

  async pending(limit: number): Promise<readonly PendingAppend[]> {
    const rows = await this.#pool.read(PENDING, [limit]);
    return rows.map((row) => {
      const what = 'a pending append';
      const leaf_hashes = hashesOf(row, 'leaf_hashes', what);
      const [commit_no, seq] = [integerOf(row, 'commit_no', what), integerOf(row, 'seq', what)];
      return { commit_no, tree_id: textOf(row, 'tree_id', what), seq, leaf_hashes };
    });
  }

  /** See `LogStore.leafHashes`. */
  async leafHashes(fromIndex: number, limit: number): Promise<readonly string[]> {
    const rows = await this.#pool.read(LEAF_HASHES, [fromIndex, limit]);
    const leaves = rows.flatMap((row) => {
      const before = Math.max(0, fromIndex - integerOf(row, 'log_index', 'the log'));
      return hashesOf(row, 'leaf_hashes', 'a block').slice(before);
    });
    return leaves.slice(0, limit);
  }

  /** The log indexes of these entries, each the first of its append; null until all are integrated. */
  async logIndexes(places: readonly EntryPlace[]): Promise<readonly number[] | null> {
    const parameters = [places.map(({ tree_id }) => tree_id), places.map(({ seq }) => seq)];
    const rows = await this.#pool.read(LOG_INDEXES, parameters);
    const isWhole = rows.length === places.length && rows.every((row) => (row['log_index'] ?? null) !== null);
    return isWhole ? rows.map((row) => integerOf(row, 'log_index', 'the log')) : null;
  }
}

interface TreePosition extends EntryPlace {
  /** Whether a block must begin there. */
  readonly isNext: boolean;
}

const treesPageParameters = (places: readonly TreePosition[], count: number): readonly unknown[] => [
  places.map(({ tree_id }) => idParameter(tree_id)),
  places.map(({ seq }) => seq),
  count,
  PAGE_BYTES,
  places.map(({ isNext }) => isNext),
];

const summaryOf = (row: Row): TreeSummary => ({
  tree_id: textOf(row, 'tree_id', 'a tree'),
  ended: row['ended'] === 't',
  log_index: integerOrNull(row, 'log_index', 'a tree'),
});

// A block is one row: the entries of one append.

/** The columns from which `entriesOf` reads. */
const BLOCK_COLUMNS =
  'b.tree_id, b.seq, b.types, b.leaf_hashes, b.texts, b.artifact_entries, b.artifact_nos, l.log_index';

/** An entry with the numbers of its contents. */
interface BlockRowEntry {
  readonly entry: TreeEntry;
  readonly contents: readonly number[];
}

/**
 * The entries of a block. For a tampered block, the longest column sets the count and missing values are empty, so that
 * a check can report each entry.
 * @throws LedgerError LEDGER_TAMPERED if a column is missing
 */
function entriesOf(row: Row): readonly BlockRowEntry[] {
  const what = `the block at ${row['log_index'] ?? 'no log index'} of ${row['tree_id'] ?? 'no tree'}`;
  const [tree_id, seq] = [textOf(row, 'tree_id', what), integerOf(row, 'seq', what)];
  const log_index = integerOrNull(row, 'log_index', what);
  const types = textOf(row, 'types', what).split(' ');
  const texts = textOf(row, 'texts', what).split('\n');
  const hashes = hashesOf(row, 'leaf_hashes', what);
  const contents = contentsIn(row, what);
  const count = Math.max(types.length, texts.length, hashes.length);
  return Array.from({ length: count }, (_, place) => ({
    entry: {
      log_index: log_index === null ? null : log_index + place,
      tree_id,
      seq: seq + place,
      type: types[place] ?? '',
      text: texts[place] ?? '',
      leaf_hash: hashes[place] ?? '',
    },
    contents: contents.get(place) ?? [],
  }));
}

/** The numbers of the contents of the entry `seq`, which is in this block or after it. @throws LedgerError */
const contentNumbersAt = (row: Row, seq: number): readonly number[] =>
  contentsIn(row, 'a block').get(seq - integerOf(row, 'seq', 'a block')) ?? [];

/** The numbers of the contents, by the position of their entry in the block. */
function contentsIn(row: Row, what: string): ReadonlyMap<number, readonly number[]> {
  const contents = new Map<number, number[]>();
  for (const { entry, no } of attachedContents(row, what)) {
    const known = contents.get(entry);
    if (known === undefined) contents.set(entry, [no]);
    else known.push(no);
  }
  return contents;
}

/** The number of each content of a block, with the position of its entry. @throws LedgerError LEDGER_TAMPERED */
export function attachedContents(row: Row, what: string): CopiedBlock['contents'] {
  const places = integersOf(row, 'artifact_entries', what);
  const numbers = integersOf(row, 'artifact_nos', what);
  if (places.length !== numbers.length) throw tamperedError(`${what} does not name the entries of its contents`);
  return places.map((entry, at) => ({ entry, no: numbers[at] ?? 0 }));
}

/**
 * The block that contains $1, and the next ones: at most $2, and no more after $3 bytes of text. With $4, only blocks
 * that begin there or later.
 */
export const LOG_PAGE = `SELECT ${BLOCK_COLUMNS} FROM (
    SELECT l.log_index, l.tree_id, l.seq, sum(b.text_bytes) OVER (ORDER BY l.log_index) - b.text_bytes AS before
    FROM (
      SELECT * FROM log
      WHERE log_index >= CASE WHEN $4 THEN $1 ELSE coalesce(
        (SELECT max(f.log_index) FROM log f WHERE f.log_index <= $1), $1) END
      ORDER BY log_index LIMIT $2
    ) AS l LEFT JOIN blocks b ON b.tree_id = l.tree_id AND b.seq = l.seq
  ) AS l LEFT JOIN blocks b ON b.tree_id = l.tree_id AND b.seq = l.seq
  WHERE coalesce(l.before, 0) < $3 ORDER BY l.log_index`;

/** Like LOG_PAGE, for the trees $1 from the seqs $2; one after another. */
const TREES_PAGE = `SELECT p.place, ${BLOCK_COLUMNS} FROM (
    SELECT p.place, b.tree_id, b.seq,
      sum(b.text_bytes) OVER (ORDER BY p.place, b.seq) - b.text_bytes AS before
    FROM unnest($1::text[], $2::bigint[], $5::boolean[]) WITH ORDINALITY AS p (tree_id, seq, is_next, place)
    CROSS JOIN LATERAL (
      SELECT b.tree_id, b.seq, b.text_bytes FROM blocks b
      WHERE b.tree_id = p.tree_id
        AND b.seq >= CASE WHEN p.is_next THEN p.seq ELSE coalesce(
          (SELECT max(f.seq) FROM blocks f WHERE f.tree_id = p.tree_id AND f.seq <= p.seq), p.seq) END
      ORDER BY b.seq LIMIT $3
    ) AS b
    ORDER BY p.place, b.seq LIMIT $3
  ) AS p JOIN blocks b ON b.tree_id = p.tree_id AND b.seq = p.seq
  LEFT JOIN log l ON l.tree_id = b.tree_id AND l.seq = b.seq
  WHERE p.before < $4 ORDER BY p.place, b.seq`;

const CONTENTS_AT = `SELECT seq, artifact_entries, artifact_nos FROM blocks
  WHERE tree_id = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1`;

const TREES = `
  (SELECT l.log_index, NULL AS commit_no, l.tree_id, t.ended FROM log l LEFT JOIN trees t ON t.tree_id = l.tree_id
   WHERE l.seq = 0 AND l.log_index >= $1 ORDER BY l.log_index LIMIT ${PAGE_TREES})
  UNION ALL
  (SELECT NULL, p.commit_no, p.tree_id, t.ended FROM pending p LEFT JOIN trees t ON t.tree_id = p.tree_id
   WHERE p.seq = 0 AND p.commit_no > $2 ORDER BY p.commit_no LIMIT ${PAGE_TREES})`;

const TREES_OF_CASE = `SELECT l.log_index, t.tree_id, t.ended FROM trees t
  LEFT JOIN log l ON l.tree_id = t.tree_id AND l.seq = 0
  WHERE t.case_id = $1 ORDER BY l.log_index NULLS LAST, t.opened`;

const OPEN_TREES = `SELECT opened, tree_id, unfinished, wake_at FROM trees
  WHERE NOT ended AND opened > $1 ORDER BY opened LIMIT ${PAGE_TREES}`;

const HEAD = { name: 'turnpike_head', text: 'SELECT size, root, frontier FROM head' };

const PENDING = {
  name: 'turnpike_pending',
  text: `SELECT p.commit_no, p.tree_id, p.seq, b.leaf_hashes FROM pending p
  LEFT JOIN blocks b ON b.tree_id = p.tree_id AND b.seq = p.seq ORDER BY p.commit_no LIMIT $1`,
};

/** From the block that contains $1. A block has at least one entry. */
const LEAF_HASHES = `SELECT l.log_index, b.leaf_hashes FROM (
    SELECT * FROM log WHERE log_index >= coalesce((SELECT max(f.log_index) FROM log f WHERE f.log_index <= $1), $1)
    ORDER BY log_index LIMIT $2
  ) AS l LEFT JOIN blocks b ON b.tree_id = l.tree_id AND b.seq = l.seq ORDER BY l.log_index`;

const LOG_INDEXES = `SELECT l.log_index FROM unnest($1::text[], $2::integer[]) WITH ORDINALITY AS p (tree_id, seq, place)
  LEFT JOIN log l ON l.tree_id = p.tree_id AND l.seq = p.seq ORDER BY p.place`;

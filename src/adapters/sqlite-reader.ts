import { isUtf8 } from 'node:buffer';
import type { LogHead, ProposalMark, StoredEntry, TreeSummary } from '../ports/ledger-store.js';
import { LedgerError } from '../errors.js';
import { uuidBytes } from './check-batch.js';
import type { Connection, Statement } from './sqlite-database.js';
import type { SqliteNumbers } from './sqlite-numbers.js';

/** How many rows one read takes from the database. */
export const PAGE_ROWS = 256;
const HASH_CHARS = 64;

// Outer joins, and bytes for the text: a row that was changed must still come out, so that it can be named.
const ENTRY = `SELECT e.log_index, t.tree_id, e.seq, e.type, CAST(e.text AS BLOB) AS text,
  lower(hex(e.leaf_hash)) AS leaf_hash FROM entries e LEFT JOIN trees t USING (tree_no)`;

interface EntryRow extends Omit<StoredEntry, 'tree_id' | 'text'> {
  readonly tree_id: string | null;
  readonly text: Buffer | null;
}

interface TreeRow extends Omit<TreeSummary, 'ended'> {
  readonly tree_no: number;
  readonly ended: 0 | 1;
}

/** The reads of a ledger, each of one state of it. */
export class SqliteReader {
  readonly #trees: SqliteNumbers;
  readonly #roots: SqliteNumbers;
  readonly #head: Statement;
  readonly #log: Statement;
  readonly #tree: Statement;
  readonly #listTrees: Statement;
  readonly #proposal: Statement;
  readonly #input: Statement;

  constructor(db: Connection, trees: SqliteNumbers, roots: SqliteNumbers) {
    this.#trees = trees;
    this.#roots = roots;
    this.#head = db.prepare('SELECT size, lower(hex(root)) AS root, lower(hex(frontier)) AS frontier FROM meta');
    this.#log = db.prepare(`${ENTRY} WHERE e.log_index >= ? ORDER BY e.log_index LIMIT ${PAGE_ROWS}`);
    this.#tree = db.prepare(`${ENTRY} WHERE e.tree_no = ? AND e.seq >= ? ORDER BY e.seq LIMIT ${PAGE_ROWS}`);
    this.#listTrees = db.prepare(
      `SELECT t.tree_no, t.tree_id, e.log_index, n.tree_no IS NOT NULL AS ended
       FROM trees t JOIN entries e ON e.tree_no = t.tree_no AND e.seq = 0
       LEFT JOIN trees_ended n ON n.tree_no = t.tree_no
       WHERE t.tree_no >= ? ORDER BY t.tree_no LIMIT ${PAGE_ROWS}`,
    );
    this.#proposal = db.prepare(
      `SELECT run_id, step_index, lower(hex(payload_sha256)) AS payload_sha256, seq
       FROM proposals WHERE root_no = ? AND proposal_id = ?`,
    );
    this.#input = db.prepare('SELECT seq FROM inputs WHERE tree_no = ? AND input_id = ?').pluck();
  }

  /** @throws LedgerError LEDGER_TAMPERED if it was removed */
  head(): LogHead {
    const row = this.#head.get() as (Omit<LogHead, 'frontier'> & { readonly frontier: string }) | undefined;
    if (row === undefined) throw new LedgerError({ code: 'LEDGER_TAMPERED', message: 'the ledger has lost its head' });
    const { size, root, frontier } = row;
    const hashes = Array.from({ length: frontier.length / HASH_CHARS }, (_, i) =>
      frontier.slice(i * HASH_CHARS, (i + 1) * HASH_CHARS),
    );
    return { size, root, frontier: hashes };
  }

  /** The next entries of the log, at most `PAGE_ROWS`. */
  log(fromIndex: number): readonly StoredEntry[] {
    return (this.#log.all(fromIndex) as EntryRow[]).map(storedEntry);
  }

  /** The next entries of a tree, at most `PAGE_ROWS`. */
  tree(tree_id: string, fromSeq: number): readonly StoredEntry[] {
    const tree_no = this.#trees.of(tree_id);
    return tree_no === null ? [] : (this.#tree.all(tree_no, fromSeq) as EntryRow[]).map(storedEntry);
  }

  /** The next trees that have entries, at most `PAGE_ROWS`; each with its number, where the list goes on. */
  listTrees(fromTree: number): readonly (TreeSummary & { readonly tree_no: number })[] {
    return (this.#listTrees.all(fromTree) as TreeRow[]).map((row) => ({ ...row, ended: row.ended === 1 }));
  }

  proposal(root_run_id: string, proposal_id: string): ProposalMark | null {
    const key = uuidBytes(proposal_id);
    const root_no = this.#roots.of(root_run_id);
    const row = root_no === null ? undefined : this.#proposal.get(root_no, key);
    if (row === undefined) return null;
    return { root_run_id, proposal_id, ...(row as Omit<ProposalMark, 'root_run_id' | 'proposal_id'>) };
  }

  input(tree_id: string, input_id: string): number | null {
    const tree_no = this.#trees.of(tree_id);
    const seq = tree_no === null ? undefined : this.#input.get(tree_no, input_id);
    return typeof seq === 'number' ? seq : null;
  }
}

const storedEntry = ({ log_index, tree_id, seq, type, text, leaf_hash }: EntryRow): StoredEntry => ({
  log_index,
  tree_id: tree_id ?? '',
  seq,
  type,
  text: text === null ? '' : textOf(text),
  leaf_hash,
});

/**
 * Bytes that are not UTF-8 would decode to the same text as the ones that were there before, with U+FFFD in it; so they
 * get a text that no entry has.
 */
const textOf = (bytes: Buffer): string => (isUtf8(bytes) ? bytes.toString() : `\ufffd${bytes.toString('latin1')}`);

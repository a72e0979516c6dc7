import { nameInLedger } from '../../../core/contract/entry-name.js';
import {
  ARTIFACT_KINDS,
  type Artifact,
  type ArtifactKind,
  type StoredArtifact,
} from '../../../core/contract/artifact-ref.js';
import { sha256 } from '../../../core/contract/hash.js';
import { LedgerError } from '../../../core/errors.js';
import type { Batch, ErasureResult, Erasure } from '../../../engine/ports/ledger/ledger-store.js';
import { type CaseKeys, SEAL_BYTES, CaseKeyGuard, type KeyedLedger, type SealedContent } from '../../keys/case-keys.js';
import {
  INLINE_BYTES_MAX,
  readArtifactFile,
  removeArtifactFolder,
  writeArtifactFile,
} from './sqlite-artifact-files.js';
import {
  artifactNumbers,
  artifactNumbersIn,
  RowInserts,
  type AttachedArtifactNumbers,
  type BlockContent,
} from '../sqlite-rows.js';
import { truncateWal, type SqliteConnection, type SqliteStatement } from '../sqlite-binding.js';
import { withoutTriggers } from '../sqlite-database.js';
import { createLruMap } from '../../../system/lru-map.js';
import { NEXT_ARTIFACT } from '../sqlite-schema.js';
import { tamperedError } from '../../ledger/store-errors.js';
import type { SqliteReader, SqliteTrees } from '../sqlite-reader.js';

/** Rows that one step adds to the index by hash: about 50 ms, with commits in between. */
const INDEX_ROWS_MAX = 1_000;
/** How many stored contents are recognised when they are stored again; policies are attached to every tree. */
const RECENT_MAX = 1_024;
/** Rows in one INSERT statement. */
const STATEMENT_ROWS = 8;
const COLUMNS_COUNT = 7;

interface ArtifactRow {
  readonly artifact_no: number;
  readonly case_id: string | null;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly kind: string;
  readonly byte_size: number;
  readonly bytes: Uint8Array | null;
  /** The number of the key that encrypts the content; 0 for none. */
  readonly sealed: number;
}

/** The directory of contents that are too large for the database, and the keys that encrypt the contents of cases. */
export interface ContentStorage {
  readonly directory: string;
  readonly keys: CaseKeys;
}

/**
 * The contents of a ledger, as rows and files; contents of a case are encrypted with its case key. Each read compares
 * the content with its hash, so that no caller uses changed content. The verification of the ledger checks that it is
 * the content that the entry names.
 *
 * A ledger in memory has no storage: every content is in its row and not encrypted, and erased rows lose their bytes.
 */
export class SqliteArtifacts {
  readonly #db: SqliteConnection;
  readonly storage: ContentStorage | null;
  /** Null without storage: nothing is encrypted. */
  readonly guard: CaseKeyGuard | null;
  #recent = createLruMap<number>(RECENT_MAX);
  readonly #indexed: SqliteStatement;
  readonly #indexRows: SqliteStatement;
  readonly #setIndexed: SqliteStatement;
  readonly #reads: ReturnType<typeof prepareReads>;
  #inserts: RowInserts | null = null;
  #next = 0;

  constructor(db: SqliteConnection, storage: ContentStorage | null) {
    this.#db = db;
    this.storage = storage;
    this.guard = storage === null ? null : new CaseKeyGuard(storage.keys);
    this.#indexed = db.prepare('SELECT artifacts_indexed FROM meta').pluck();
    this.#indexRows = db.prepare(
      `INSERT OR IGNORE INTO artifact_index SELECT sha256, artifact_no FROM artifacts
       WHERE artifact_no >= ? AND artifact_no < ?`,
    );
    this.#setIndexed = db.prepare('UPDATE meta SET artifacts_indexed = ?');
    this.#reads = prepareReads(db);
  }

  /** Prepares for `storeAll`: from now on no other writer adds content. */
  startWriting(): void {
    this.#inserts = new RowInserts(this.#db, 'INSERT INTO artifacts', COLUMNS_COUNT, STATEMENT_ROWS);
    this.storage?.keys.finishErasures();
    // Archived contents are no longer stored, so they must not be recognised.
    this.forgetRecent();
    this.#next = Number(this.#db.prepare(`SELECT ${NEXT_ARTIFACT}`).pluck().get());
  }

  /**
   * Stores the contents of a batch within the open transaction.
   * @returns for each append the artifact numbers by entry position; undefined if nothing is attached
   */
  storeAll({ trees }: Batch): readonly (AttachedArtifactNumbers | undefined)[] {
    const numbers = trees.map(({ artifacts }) => {
      if (artifacts.length === 0) return undefined;
      const attached = new Map<number, number[]>();
      for (const { entry, artifact, sha256: hash } of artifacts) {
        const artifact_no = this.#store(artifact, hash);
        const known = attached.get(entry);
        if (known === undefined) attached.set(entry, [artifact_no]);
        else known.push(artifact_no);
      }
      return attached;
    });
    this.#inserts?.flush();
    return numbers;
  }

  /** @returns the number of its row, which may be an existing one */
  #store({ case_id, kind, bytes }: Artifact, hash: string): number {
    const key = `${case_id ?? ''} ${kind} ${hash}`;
    const known = this.#recent.get(key);
    if (known !== undefined) return known;
    const sha256 = Buffer.from(hash, 'hex');
    const { storage } = this;
    const caseKey = storage === null || case_id === null ? null : storage.keys.currentKey(case_id);
    const stored = caseKey === null ? bytes : caseKey.cipher.seal(bytes, sha256);
    const inFile = storage !== null && bytes.byteLength > INLINE_BYTES_MAX;
    const sealed = caseKey?.no ?? 0;
    if (inFile) writeArtifactFile({ directory: storage.directory, case_id, sha256: hash, sealed }, stored);
    const artifact_no = this.#next++;
    this.#inserts?.add(artifact_no, case_id, sha256, kind, bytes.byteLength, inFile ? null : stored, sealed);
    this.#recent.set(key, artifact_no);
    return artifact_no;
  }

  /** The contents attached to an entry of a block, in their order. @throws LedgerError LEDGER_TAMPERED */
  async readOf(
    block: Pick<BlockContent, 'log_index' | 'artifacts'>,
    place: number,
  ): Promise<readonly StoredArtifact[]> {
    const { byNumber } = this.#reads;
    const rows = artifactNumbers(block.artifacts, place).map((number) => {
      const row = byNumber.get(number) as ArtifactRow | undefined;
      if (row === undefined)
        throw tamperedError(`content of entry ${nameInLedger(block.log_index + place)} is missing`);
      return row;
    });
    return Promise.all(
      rows.map(async (row) => {
        const { case_id, sha256: hash, byte_size } = row;
        const kind = kindOf(row);
        const bytes = await this.#readContent(row);
        return bytes === null
          ? { kind, case_id, withheld: 'erased', sha256: hash, byte_size }
          : { kind, case_id, bytes };
      }),
    );
  }

  /**
   * Finds content by hash, through the index and then through the rows that are not indexed yet.
   * @returns null if it does not exist or was erased @throws LedgerError LEDGER_TAMPERED
   */
  async find(case_id: string | null, hash: string): Promise<Uint8Array | null> {
    const { byIndex, byScan } = this.#reads;
    const key = Buffer.from(hash, 'hex');
    // The last row: earlier rows may have been erased before the case was used again.
    for (const statement of [byIndex, byScan]) {
      const row = statement.get(key, case_id) as ArtifactRow | undefined;
      const content = row === undefined ? null : await this.#readContent(row);
      if (content !== null) return content;
    }
    return null;
  }

  /** Extends the index by hash, within the open transaction. @returns whether rows remain */
  indexNext(): boolean {
    const from = Number(this.#indexed.get());
    const end = Math.min(from + INDEX_ROWS_MAX, this.#next);
    this.#indexRows.run(from, end);
    this.#setIndexed.run(end);
    return end < this.#next;
  }

  /** Stores content again from now on that was stored before: rows were archived or erased. */
  forgetRecent(): void {
    this.#recent = createLruMap<number>(RECENT_MAX);
  }

  /** Destroys the key of a case that has or had content: a copy of archived rows may still exist. */
  destroyKey({ directory, keys }: ContentStorage, { case_id, ...erasure }: Erasure, { contents }: ErasureResult): void {
    if (contents === 0 && !keys.has(case_id)) return;
    this.forgetRecent();
    keys.destroy(case_id, this.#next, erasure);
    removeArtifactFolder(directory, case_id);
  }

  /** @returns null if the content was erased, perhaps during the read */
  async #readContent(row: ArtifactRow): Promise<Uint8Array | null> {
    try {
      return await this.#openContent(row);
    } catch (error) {
      const now = this.#reads.byNumber.get(row.artifact_no) as ArtifactRow | undefined;
      if (this.storage !== null && now?.case_id != null && now.sealed !== 0) {
        if (now.sealed !== row.sealed || 'erased_below' in this.storage.keys.get(now.case_id, now.sealed))
          return this.#openContent(now);
      }
      throw error;
    }
  }

  /** @returns null if the content was erased */
  async #openContent(row: ArtifactRow): Promise<Uint8Array | null> {
    const { case_id, sha256: hash, byte_size, bytes: inline, sealed } = row;
    if (this.storage === null) return inline === null ? null : requireUnchanged(row, inline);
    const { directory, keys } = this.storage;
    // It would survive the erasure of its case.
    if (case_id !== null && sealed === 0)
      throw tamperedError(`the content stored as ${hash} is of a case, and is not encrypted`);
    const cipher = case_id === null ? null : keys.get(case_id, sealed);
    const place = { directory, case_id, sha256: hash, sealed };
    if (cipher !== null && 'erased_below' in cipher) {
      if (row.artifact_no < cipher.erased_below) return null;
      throw tamperedError(`the content stored as ${hash} passes for erased, and came later`);
    }
    const stored = inline ?? (await readArtifactFile(place, byte_size + (cipher === null ? 0 : SEAL_BYTES)));
    return requireUnchanged(row, cipher === null ? stored : cipher.open(stored, Buffer.from(hash, 'hex')));
  }
}

/** @param bytes null if its key does not open it */
function requireUnchanged({ sha256: hash, byte_size }: ArtifactRow, bytes: Uint8Array | null): Uint8Array {
  if (bytes?.byteLength === byte_size && sha256(bytes) === hash) return bytes;
  throw tamperedError(`the content stored as ${hash} is not what it was`);
}

const READ_COLUMNS = 'a.artifact_no, a.case_id, lower(hex(a.sha256)) AS sha256, a.kind, a.byte_size, a.bytes, a.sealed';

const prepareReads = (db: SqliteConnection) => ({
  byNumber: db.prepare(`SELECT ${READ_COLUMNS} FROM artifacts a WHERE a.artifact_no = ?`),
  byIndex: db.prepare(
    `SELECT ${READ_COLUMNS} FROM artifact_index i JOIN artifacts a USING (artifact_no)
     WHERE i.sha256 = ? AND a.sha256 = i.sha256 AND a.case_id IS ? ORDER BY i.artifact_no DESC LIMIT 1`,
  ),
  byScan: db.prepare(
    `SELECT ${READ_COLUMNS} FROM artifacts a
     WHERE a.artifact_no >= (SELECT artifacts_indexed FROM meta) AND a.sha256 = ? AND a.case_id IS ?
     ORDER BY a.artifact_no DESC LIMIT 1`,
  ),
});

function kindOf({ kind }: ArtifactRow): ArtifactKind {
  const known = ARTIFACT_KINDS.find((name) => name === kind);
  if (known !== undefined) return known;
  throw tamperedError(`stored content has no known kind: ${JSON.stringify(kind)}`);
}

// What a ledger in SQLite says about the keys of its cases (stores/keys/case-keys.ts).

/** How many contents are read from the end to find one of a case. */
const NEWEST_MAX = 10_000;
/** Blocks that one query reads. */
const BLOCKS_PAGE = 16;

interface KeyProofParts {
  readonly db: SqliteConnection;
  readonly artifacts: SqliteArtifacts;
  readonly reader: SqliteReader;
  readonly trees: SqliteTrees;
}

const COLUMNS = 'case_id, sealed AS key_no, lower(hex(sha256)) AS sha256, bytes AS stored';

/** Compares the key folder with the ledger. @throws LedgerError LEDGER_CONFLICT */
export function bindKeyFolder({ db, artifacts, reader }: KeyProofParts): void {
  if (artifacts.guard === null) return;
  const newest = db.prepare(
    `SELECT ${COLUMNS} FROM artifacts WHERE case_id IS NOT NULL AND sealed > 0
     AND artifact_no > (SELECT ifnull(max(artifact_no), 0) FROM artifacts) - ${NEWEST_MAX}
     ORDER BY artifact_no DESC LIMIT 1`,
  );
  artifacts.guard.bind({ ...originOf({ db, reader }), newest: (newest.get() as SealedContent | undefined) ?? null });
}

/** The first entry of the log. */
export function originOf({ db, reader }: Pick<KeyProofParts, 'db' | 'reader'>): Omit<KeyedLedger, 'newest'> {
  const first = db.prepare('SELECT lower(hex(substr(leaf_hashes, 1, 32))) FROM blocks WHERE log_index = 0').pluck();
  const origin = (first.get() as string | undefined) ?? null;
  // A head that does not match is found later, and named.
  return { origin, isEmpty: origin === null && reader.head().size === 0 };
}

/** Before a batch: proves the keys of its cases that were not used yet. @throws LedgerError LEDGER_TAMPERED */
export function proveCaseKeys(parts: KeyProofParts, { trees }: Batch): void {
  const { guard, storage } = parts.artifacts;
  if (guard === null || storage === null) return;
  for (const case_id of guard.unproven(trees))
    guard.prove(case_id, newestOf(parts, case_id, storage.keys.lastErased(case_id)));
}

/** The newest content under a key of the case after the `erased` ones, in the trees of the case. */
function newestOf({ db, reader, trees }: KeyProofParts, case_id: string, erased: number): SealedContent | null {
  const find = db.prepare(`SELECT ${COLUMNS} FROM artifacts WHERE artifact_no = ? AND case_id = ? AND sealed > ?`);
  for (const { tree_id } of [...trees.ofCase(case_id)].reverse()) {
    for (let from: number | null = 0; from !== null;) {
      const { rows, next }: ReturnType<SqliteReader['history']> = reader.history(tree_id, from, BLOCKS_PAGE);
      const blocks = new Set(rows.map(({ block }) => block.artifacts));
      const numbers = [...blocks].flatMap((text) => (text === null ? [] : artifactNumbersIn(text)));
      for (const number of numbers.reverse()) {
        const found = find.get(number, case_id, erased) as SealedContent | undefined;
        if (found !== undefined) return found;
      }
      from = next;
    }
  }
  return null;
}

// Erasures.

interface ErasureParts {
  readonly db: SqliteConnection;
  readonly artifacts: SqliteArtifacts;
}

/**
 * Erases the content of a case by destroying its key. Until the key is destroyed nothing is lost, so a crash or failure
 * leaves the case either erased or not, and the operator can repeat the erasure. A ledger in memory has no keys: its
 * rows lose their bytes.
 * @param inTransaction runs the work in its own transaction; returns false, with nothing done, if it cannot now
 */
export function eraseCaseContent(
  parts: ErasureParts,
  erasure: Erasure,
  inTransaction: (work: () => void) => boolean,
): ErasureResult {
  const { db, artifacts } = parts;
  const { case_id, tree_ids } = erasure;
  const { storage } = artifacts;
  if (
    storage !== null &&
    db.prepare('SELECT 1 FROM artifacts WHERE case_id = ? AND sealed = 0').get(case_id) !== undefined
  )
    throw tamperedError(`content of case ${case_id} is not encrypted, so an erasure would leave it`);
  const erased = countContents(parts, case_id);
  const isDone = inTransaction(() => {
    if (storage === null) removeBytes(db, case_id);
    const forget = db.prepare('DELETE FROM snapshots WHERE tree_id = ?');
    for (const tree_id of tree_ids) forget.run(tree_id);
  });
  if (!isDone) throw eraseLaterError('rows of records are pending');
  if (storage === null) {
    artifacts.forgetRecent();
    return erased;
  }
  // The WAL still contains the snapshots that were deleted.
  if (!truncateWal(db)) throw eraseLaterError('a reader keeps a transaction open');
  artifacts.destroyKey(storage, erasure, erased);
  return erased;
}

/** The contents of a case that an erasure would remove. */
function countContents({ db, artifacts: { storage } }: ErasureParts, case_id: string): ErasureResult {
  const isLeft = storage === null ? 'bytes IS NOT NULL' : 'sealed > @erased';
  const sql = `SELECT count(*) AS contents, ifnull(sum(byte_size), 0) AS bytes FROM artifacts
    WHERE case_id = @case_id AND ${isLeft}`;
  const erased = storage?.keys.lastErased(case_id) ?? 0;
  return db.prepare(sql).get({ case_id, erased }) as ErasureResult;
}

/** Within the open transaction. */
function removeBytes(db: SqliteConnection, case_id: string): void {
  withoutTriggers(db, ['artifacts_update'], () => {
    db.prepare('UPDATE artifacts SET bytes = NULL WHERE case_id = ?').run(case_id);
  });
}

const eraseLaterError = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the case cannot be erased now, because ${why}: try again` });

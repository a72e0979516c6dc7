import { ARTIFACT_KINDS, type Artifact, type ArtifactKind } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import { LedgerError } from '../errors.js';
import { INLINE_BYTES_MAX, readArtifactFile, writeArtifactFile } from './sqlite-artifact-files.js';
import { artifactNumbers } from './sqlite-blocks.js';
import type { Connection, Statement } from './sqlite-database.js';
import { recent } from './sqlite-recent.js';

/** How much the index by hash catches up at once: some 50 ms, between which commits have their turn. */
const INDEX_ROWS_MAX = 1_000;
/** So much stored content is recognised when it comes again; policies come again with every tree. */
const RECENT_MAX = 1_024;
/** So many rows share a statement where there are so many: each one copies the pages it changes, to be undone. */
const STATEMENT_ROWS = 8;
const COLUMNS_COUNT = 6;

interface ArtifactRow {
  readonly case_id: string | null;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly kind: string;
  readonly byte_size: number;
  readonly bytes: Uint8Array | null;
}

const COLUMNS = 'a.case_id, lower(hex(a.sha256)) AS sha256, a.kind, a.byte_size, a.bytes';

/**
 * The contents of a ledger, as rows and files. What it reads it compares with its hash, so that nobody goes on with
 * content that was changed; that it is the content an entry means, the ledger verifies.
 */
export class SqliteArtifacts {
  readonly #db: Connection;
  readonly #directory: string;
  readonly #recent = recent<number>(RECENT_MAX);
  readonly #ofEntry: Statement;
  readonly #byNumber: Statement;
  readonly #byIndex: Statement;
  readonly #byScan: Statement;
  readonly #insertOne: Statement;
  readonly #insertMany: Statement;
  readonly #indexed: Statement;
  readonly #indexRows: Statement;
  readonly #setIndexed: Statement;
  #next = 0;
  /** Columns of rows that are on their way. */
  #waiting: unknown[] = [];

  constructor(db: Connection, directory: string) {
    this.#db = db;
    this.#directory = directory;
    this.#ofEntry = db.prepare(
      'SELECT log_index, artifacts FROM blocks WHERE log_index <= ? ORDER BY log_index DESC LIMIT 1',
    );
    this.#byNumber = db.prepare(`SELECT ${COLUMNS} FROM artifacts a WHERE a.artifact_no = ?`);
    this.#byIndex = db.prepare(
      `SELECT ${COLUMNS} FROM artifact_index i JOIN artifacts a USING (artifact_no)
       WHERE i.sha256 = ? AND a.sha256 = i.sha256 AND a.case_id IS ? LIMIT 1`,
    );
    this.#byScan = db.prepare(
      `SELECT ${COLUMNS} FROM artifacts a
       WHERE a.artifact_no >= (SELECT artifacts_indexed FROM meta) AND a.sha256 = ? AND a.case_id IS ? LIMIT 1`,
    );
    const insert = 'INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?)';
    this.#insertOne = db.prepare(insert);
    this.#insertMany = db.prepare(insert + ', (?, ?, ?, ?, ?, ?)'.repeat(STATEMENT_ROWS - 1));
    this.#indexed = db.prepare('SELECT artifacts_indexed FROM meta').pluck();
    this.#indexRows = db.prepare(
      `INSERT OR IGNORE INTO artifact_index SELECT sha256, artifact_no FROM artifacts
       WHERE artifact_no >= ? AND artifact_no < ?`,
    );
    this.#setIndexed = db.prepare('UPDATE meta SET artifacts_indexed = ?');
  }

  /** Makes ready for `store`: from now on nobody else adds content. */
  startWriting(): void {
    this.#waiting = [];
    this.#next = Number(this.#db.prepare('SELECT ifnull(max(artifact_no) + 1, 0) FROM artifacts').pluck().get());
  }

  /** Stores content within the transaction that is open, which needs `flush`. @returns its row, maybe a former one */
  store({ case_id, kind, bytes }: Artifact, hash: string): number {
    const key = `${case_id ?? ''} ${kind} ${hash}`;
    const known = this.#recent.get(key);
    if (known !== undefined) return known;
    const inFile = bytes.byteLength > INLINE_BYTES_MAX;
    if (inFile) writeArtifactFile({ directory: this.#directory, case_id, sha256: hash }, bytes);
    const artifact_no = this.#next++;
    const sha256 = Buffer.from(hash, 'hex');
    this.#waiting.push(artifact_no, case_id, sha256, kind, bytes.byteLength, inFile ? null : bytes);
    if (this.#waiting.length === STATEMENT_ROWS * COLUMNS_COUNT) {
      this.#insertMany.run(this.#waiting);
      this.#waiting = [];
    }
    this.#recent.set(key, artifact_no);
    return artifact_no;
  }

  /** Writes what of it waits still. */
  flush(): void {
    for (let at = 0; at < this.#waiting.length; at += COLUMNS_COUNT) {
      this.#insertOne.run(this.#waiting.slice(at, at + COLUMNS_COUNT));
    }
    this.#waiting = [];
  }

  /** The contents that an entry brought, in their order. @throws LedgerError LEDGER_TAMPERED */
  async of(log_index: number): Promise<readonly Artifact[]> {
    const block = this.#ofEntry.get(log_index) as { log_index: number; artifacts: string | null } | undefined;
    if (block === undefined) return [];
    const rows = artifactNumbers(block.artifacts, log_index - block.log_index).map((number) => {
      const row = this.#byNumber.get(number) as ArtifactRow | undefined;
      if (row === undefined) throw tampered(`content of entry ${log_index} is missing`);
      return row;
    });
    return Promise.all(
      rows.map(async (row) => ({ kind: kindOf(row), case_id: row.case_id, bytes: await this.#contentOf(row) })),
    );
  }

  /** Content by hash: by the index as far as that goes, the rest one by one. @throws LedgerError LEDGER_TAMPERED */
  async find(case_id: string | null, hash: string): Promise<Uint8Array | null> {
    const key = Buffer.from(hash, 'hex');
    const row = this.#byIndex.get(key, case_id) ?? this.#byScan.get(key, case_id);
    return row === undefined ? null : this.#contentOf(row as ArtifactRow);
  }

  /** Goes on with the index by hash, within the transaction that is open. @returns whether there is more to do */
  index(): boolean {
    const from = Number(this.#indexed.get());
    const end = Math.min(from + INDEX_ROWS_MAX, this.#next);
    this.#indexRows.run(from, end);
    this.#setIndexed.run(end);
    return end < this.#next;
  }

  async #contentOf({ case_id, sha256: hash, byte_size, bytes: inline }: ArtifactRow): Promise<Uint8Array> {
    const place = { directory: this.#directory, case_id, sha256: hash };
    const bytes = inline ?? (await readArtifactFile(place, byte_size));
    if (bytes.byteLength === byte_size && sha256(bytes) === hash) return bytes;
    throw tampered(`the content stored as ${hash} is not what it was`);
  }
}

function kindOf({ kind }: ArtifactRow): ArtifactKind {
  const known = ARTIFACT_KINDS.find((name) => name === kind);
  if (known !== undefined) return known;
  throw tampered(`stored content has no known kind: ${JSON.stringify(kind)}`);
}

const tampered = (message: string): LedgerError => new LedgerError({ code: 'LEDGER_TAMPERED', message });

// Contents and snapshots, encrypted with the keys of their cases. Each read compares a content with its hash, so that
// no caller uses changed content.

import { ARTIFACT_KINDS, type ArtifactKind, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { AttachedArtifact, StoredSnapshot, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import { type CaseKeys, CaseKeyGuard, type SealedContent } from '../keys/case-keys.js';
import { tamperedError } from '../ledger/store-errors.js';
import { createLruMap } from '../../system/lru-map.js';
import type { CommitRecord } from './commit-records.js';
import type { ReaderPool } from './postgres-connection.js';
import { ByteColumn, bytesOf, hashesOf, hexOf, idParameter, integerOf, textOf, type Row } from './postgres-values.js';

/** How many stored contents are recognized when they are stored again; policies are attached to every tree. */
const RECENT_MAX = 1_024;
/** Larger contents are read one at a time. */
const SMALL_BYTES_MAX = 64 * 1_024;

/** A snapshot as it is stored. */
export interface SealedSnapshot {
  readonly snapshot: StoredSnapshot;
  /** The position of its append in the batch. */
  readonly append: number;
  readonly case_id: string | null;
  readonly key_no: number;
  /** Of the text before encryption. */
  readonly content_sha256: string;
  readonly stored: Uint8Array;
}

export class PostgresContents {
  readonly #pool: ReaderPool;
  readonly keys: CaseKeys;
  readonly guard: CaseKeyGuard;
  #recent = createLruMap<number>(RECENT_MAX);

  constructor(pool: ReaderPool, keys: CaseKeys) {
    this.#pool = pool;
    this.keys = keys;
    this.guard = new CaseKeyGuard(keys);
  }

  /** Starts to collect the contents of one batch. */
  collect(trees: readonly TreeAppend[]): CaseContents {
    const contents = new CaseContents(this.keys, (key) => this.#recent.get(key) ?? 0);
    for (const { opened } of trees) if (opened?.case_id != null) contents.lockCase(opened.case_id);
    return contents;
  }

  /** Recognizes these contents from now on. @param nos their numbers, after the batch was committed */
  remember({ names }: CaseContents, nos: readonly number[]): void {
    for (const [at, name] of names.entries()) {
      const no = nos[at] ?? 0;
      if (no > 0) this.#recent.set(name, no);
    }
  }

  /** Recognizes no content any more: it may have been erased. */
  forget(): void {
    this.#recent = createLruMap(RECENT_MAX);
  }

  /** Encrypts a snapshot for the case of its tree. */
  sealSnapshot(append: number, snapshot: StoredSnapshot, case_id: string | null, cases: CaseContents): SealedSnapshot {
    const text = Buffer.from(snapshot.text);
    const content_sha256 = sha256(text);
    const key = case_id === null ? null : this.keys.currentKey(case_id);
    if (case_id !== null) cases.lockCase(case_id, key?.no);
    const stored = key === null ? text : key.cipher.seal(text, Buffer.from(content_sha256, 'hex'));
    return { snapshot, append, case_id, key_no: key?.no ?? 0, content_sha256, stored };
  }

  /** @returns null if the tree has no snapshot, or its case was erased: a snapshot is a cache */
  async snapshot(tree_id: string): Promise<StoredSnapshot | null> {
    const text = 'SELECT seq, mac, case_id, key_no, content_sha256, bytes FROM snapshots WHERE tree_id = $1';
    const [row] = await this.#pool.read(text, [idParameter(tree_id)]);
    if (row === undefined) return null;
    const what = `the snapshot of ${tree_id}`;
    const opened = this.#open(row, hexOf(row, 'content_sha256', what), bytesOf(row, 'bytes'));
    if (opened === null) return null;
    return {
      tree_id,
      seq: integerOf(row, 'seq', what),
      mac: textOf(row, 'mac', what),
      text: opened.toString(),
    };
  }

  /**
   * Reads contents by their numbers. Large ones are read when they are requested.
   * @returns the contents by number @throws LedgerError LEDGER_TAMPERED
   */
  async read(nos: readonly number[]): Promise<(no: number) => Promise<StoredArtifact>> {
    const rows = nos.length === 0 ? [] : await this.#pool.read(SMALL_CONTENTS, [[...new Set(nos)]]);
    const found = new Map(rows.map((row) => [Number(row['artifact_no']), row]));
    return async (no) => {
      const row = found.get(no);
      if (row === undefined) throw tamperedError(`content ${no} is missing`);
      const [whole] = row['omitted'] === 't' ? await this.#pool.read(LARGE_CONTENT, [no]) : [row];
      return this.#artifactOf(whole ?? row);
    };
  }

  /** Finds content by hash. @returns null if it does not exist or was erased @throws LedgerError LEDGER_TAMPERED */
  async find(case_id: string | null, hash: string): Promise<Uint8Array | null> {
    const [row] = await this.#pool.read(CONTENT_BY_HASH, [
      Buffer.from(hash, 'hex'),
      case_id === null ? null : idParameter(case_id),
    ]);
    return row === undefined ? null : this.#contentOf(row);
  }

  #artifactOf(row: Row): StoredArtifact {
    const kind = kindOf(row);
    const case_id = row['case_id'] ?? null;
    const bytes = this.#contentOf(row);
    if (bytes !== null) return { kind, case_id, bytes };
    const what = `content ${String(row['artifact_no'])}`;
    const [hash, byte_size] = [hexOf(row, 'sha256', what), integerOf(row, 'byte_size', what)];
    return { kind, case_id, withheld: 'erased', sha256: hash, byte_size };
  }

  /** @returns null if the content was erased */
  #contentOf(row: Row): Uint8Array | null {
    const what = `content ${String(row['artifact_no'])}`;
    const hash = hexOf(row, 'sha256', what);
    const bytes = this.#open(row, hash, storedBytesOf(row));
    if (bytes === null) return null;
    if (bytes.byteLength === integerOf(row, 'byte_size', what) && sha256(bytes) === hash) return bytes;
    throw tamperedError(`the content stored as ${hash} is not what it was`);
  }

  /** @returns null if it was erased; no bytes if they cannot be decrypted */
  #open(row: Row, hash: string, stored: Buffer | null): Buffer | null {
    const key_no = integerOf(row, 'key_no', `the content stored as ${hash}`);
    const case_id = row['case_id'] ?? null;
    if (case_id !== null) {
      // It would survive the erasure of its case.
      if (key_no === 0) throw tamperedError(`the content stored as ${hash} is of a case, and is not encrypted`);
      const cipher = this.keys.get(case_id, key_no);
      if (!('erased_below' in cipher)) {
        return stored === null ? NO_CONTENT : (cipher.open(stored, Buffer.from(hash, 'hex')) ?? NO_CONTENT);
      }
      if (Number(row['artifact_no'] ?? 0) < cipher.erased_below) return null;
      throw tamperedError(`the content stored as ${hash} passes for erased, and came later`);
    }
    return stored ?? NO_CONTENT;
  }
}

/** Has another size or hash than any content but the empty one, whose hash is compared as well. */
const NO_CONTENT = Buffer.from('not this content');

/** The contents of one batch, each once, and the cases to lock. Positions begin at 1, as in SQL. */
export class CaseContents {
  readonly #keys: CaseKeys;
  readonly #knownNo: (name: string) => number;
  readonly #places = new Map<string, number>();
  readonly #records: CommitRecord<'commit_content'>[] = [];
  readonly #bytes = new ByteColumn();
  readonly #cases = new Map<string, number>();

  constructor(keys: CaseKeys, knownNo: (name: string) => number) {
    this.#keys = keys;
    this.#knownNo = knownNo;
  }

  /** The names of the contents, in their order. */
  get names(): readonly string[] {
    return [...this.#places.keys()];
  }

  /** The cases of the batch. */
  get cases(): readonly CommitRecord<'commit_case'>[] {
    return [...this.#cases].map(([case_id, key_no]) => ({ case_id, key_no }));
  }

  get records(): readonly CommitRecord<'commit_content'>[] {
    return this.#records;
  }

  lockCase(case_id: string, key_no = 0): void {
    this.#cases.set(case_id, Math.max(key_no, this.#cases.get(case_id) ?? 0));
  }

  /** Adds a content, unless the batch has it already. @returns its position */
  add({ artifact, sha256: hash }: AttachedArtifact): number {
    const { case_id, kind, bytes } = artifact;
    const key = case_id === null ? null : this.#keys.currentKey(case_id);
    if (case_id !== null) this.lockCase(case_id, key?.no);
    const name = `${case_id ?? ''} ${key?.no ?? 0} ${kind} ${hash}`;
    const place = this.#places.get(name);
    if (place !== undefined) return place;
    this.#places.set(name, this.#places.size + 1);
    const known_no = this.#knownNo(name);
    const stored = known_no > 0 ? NOTHING : (key?.cipher.seal(bytes, Buffer.from(hash, 'hex')) ?? bytes);
    const { at: stored_at, bytes: stored_bytes } = this.#bytes.add(stored);
    const [byte_size, key_no] = [bytes.byteLength, key?.no ?? 0];
    this.#records.push({ known_no, case_id, sha256: hash, kind, byte_size, key_no, stored_at, stored_bytes });
    return this.#places.size;
  }

  /** The bytes of all contents that the ledger does not have yet. */
  toBuffer(): Buffer {
    return this.#bytes.toBuffer();
  }
}

const NOTHING = new Uint8Array();

/** The bytes of a content as they are stored, from the columns `bytes` and `rest`; null if they were erased. */
export function storedBytesOf(row: Row): Buffer | null {
  const [first, rest] = [bytesOf(row, 'bytes'), bytesOf(row, 'rest')];
  return first === null || rest === null ? first : Buffer.concat([first, rest]);
}

/** A content of a case, without its bytes. */
export const sealedContentOf = (row: Row, what: string): Omit<SealedContent, 'stored'> => ({
  case_id: textOf(row, 'case_id', what),
  key_no: integerOf(row, 'key_no', what),
  sha256: hexOf(row, 'sha256', what),
});

const COLUMNS = 'a.artifact_no, a.case_id, a.sha256, a.kind, a.byte_size, a.key_no';
const REST = `(SELECT string_agg(c.bytes, ''::bytea ORDER BY c.chunk_no) FROM artifact_chunks c
  WHERE c.artifact_no = a.artifact_no) AS rest`;
const SMALL_CONTENTS = `SELECT ${COLUMNS}, CASE WHEN a.byte_size <= ${SMALL_BYTES_MAX} THEN a.bytes END AS bytes,
  a.byte_size > ${SMALL_BYTES_MAX} AS omitted, NULL AS rest FROM artifacts a WHERE a.artifact_no = ANY ($1::bigint[])`;
/** The columns of a whole content in the table `a`. */
export const CONTENT_COLUMNS = `${COLUMNS}, a.bytes, ${REST}`;
const LARGE_CONTENT = `SELECT ${CONTENT_COLUMNS} FROM artifacts a WHERE a.artifact_no = $1`;
/** The last one: earlier ones may have been erased before the case was used again. */
const CONTENT_BY_HASH = `SELECT ${CONTENT_COLUMNS} FROM artifacts a
  WHERE a.sha256 = $1 AND a.case_id IS NOT DISTINCT FROM $2 ORDER BY a.artifact_no DESC LIMIT 1`;

function kindOf(row: Row): ArtifactKind {
  const kind = ARTIFACT_KINDS.find((name) => name === row['kind']);
  if (kind !== undefined) return kind;
  throw tamperedError(`stored content has no known kind: ${JSON.stringify(row['kind'])}`);
}

/** One after another: each may be large. */
export async function inOrder(
  numbers: readonly number[],
  read: (no: number) => Promise<StoredArtifact>,
): Promise<readonly StoredArtifact[]> {
  const contents: StoredArtifact[] = [];
  for (const number of numbers) contents.push(await read(number));
  return contents;
}

// What a ledger in PostgreSQL says about the keys of its cases (stores/keys/case-keys.ts).

/** The contents of a ledger, with its key folder. @throws LedgerError LEDGER_CONFLICT for the folder of another one */
export async function openContents(pool: ReaderPool, keys: CaseKeys, readOnly: boolean): Promise<PostgresContents> {
  const contents = new PostgresContents(pool, keys);
  await bindKeyFolder(pool, contents, readOnly);
  return contents;
}

/** Compares the key folder with the ledger, and names it. @throws LedgerError LEDGER_CONFLICT */
export async function bindKeyFolder(pool: ReaderPool, { guard }: PostgresContents, readOnly: boolean): Promise<void> {
  const [row = {}] = await pool.read(readOnly ? ORIGIN : NEWEST);
  const isEmpty = (row['leaf_hashes'] ?? null) === null;
  const origin = isEmpty ? null : (hashesOf(row, 'leaf_hashes', 'the first block')[0] ?? '');
  const ledger = { origin, isEmpty };
  if (readOnly) guard.refuseOther(ledger);
  else guard.bind({ ...ledger, newest: contentOf(row) });
}

/** Before a batch: proves the keys of its cases that were not used yet. @throws LedgerError */
export async function proveCaseKeys(
  pool: ReaderPool,
  contents: PostgresContents,
  trees: readonly TreeAppend[],
): Promise<void> {
  const { guard, keys } = contents;
  const case_ids = guard.unproven(trees);
  if (case_ids.length === 0) return;
  if (!guard.isNamed) await bindKeyFolder(pool, contents, false);
  const rows = await pool.read(NEWEST_OF, [case_ids, case_ids.map((case_id) => keys.lastErased(case_id))]);
  for (const [at, case_id] of case_ids.entries()) guard.prove(case_id, contentOf(rows[at] ?? {}));
}

const READ_BYTES_MAX = 64 * 1_024;

const contentOf = (row: Row): SealedContent | null =>
  (row['case_id'] ?? null) === null
    ? null
    : { ...sealedContentOf(row, 'the newest content of a case'), stored: bytesOf(row, 'stored') };

const NEWEST_COLUMNS = `a.case_id, a.key_no, a.sha256, CASE WHEN a.byte_size <= ${READ_BYTES_MAX} THEN a.bytes END AS stored`;
const FIRST_BLOCK = `SELECT b.leaf_hashes FROM log l JOIN blocks b ON b.tree_id = l.tree_id AND b.seq = l.seq
  WHERE l.log_index = 0`;
const ORIGIN = `SELECT (${FIRST_BLOCK}) AS leaf_hashes`;
const NEWEST = `SELECT (${FIRST_BLOCK}) AS leaf_hashes, a.* FROM (SELECT) AS one LEFT JOIN LATERAL (
    SELECT ${NEWEST_COLUMNS} FROM artifacts a WHERE a.key_no > 0 ORDER BY a.artifact_no DESC LIMIT 1
  ) AS a ON true`;
const NEWEST_OF = `SELECT a.* FROM unnest($1::text[], $2::integer[]) WITH ORDINALITY AS c (case_id, erased, place)
  LEFT JOIN LATERAL (
    SELECT ${NEWEST_COLUMNS} FROM artifacts a WHERE a.case_id = c.case_id AND a.key_no > c.erased
    ORDER BY a.key_no DESC LIMIT 1
  ) AS a ON true ORDER BY c.place`;

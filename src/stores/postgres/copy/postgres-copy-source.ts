// Reads a ledger in PostgreSQL for a copy, in pages by key.

import { parseOwnJson } from '../../../core/contract/json.js';
import type { InputMark, ProposalMark } from '../../../core/ledger/readable-ledger.js';
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
import type { CaseKeys } from '../../keys/case-keys.js';
import { tamperedError } from '../../ledger/store-errors.js';
import { isKnownDead } from '../../../system/process-identity.js';
import { ReaderPool, type PostgresPlace, type Row } from '../postgres-connection.js';
import { LOG_PAGE, PostgresReader } from '../postgres-reader.js';
import { PostgresRunRecords } from '../postgres-run-records.js';
import { bytesOf, hexOf, integerOf, integersOf, textOf } from '../values/postgres-values.js';

const PAGE_BLOCKS = 256;
/** Bytes of text, or of contents, after which a page ends. */
const PAGE_BYTES = 4 * 1_024 * 1_024;
const PAGE_ROWS = 1_024;
const PAGE_RECORDED = 64;
const PAGE_UNRECORDED = 1_024;

export interface PostgresCopySourceOptions extends Omit<PostgresPlace, 'readOnly'> {
  readonly keys: CaseKeys;
}

/** Reads a ledger whose writer lock the caller has, on connections of its own. */
export const openPostgresCopySource = ({ keys, ...place }: PostgresCopySourceOptions): LedgerCopySource =>
  copySourceOn(new ReaderPool({ ...place, readOnly: true }), keys);

/** The source closes `pool`. */
export const copySourceOn = (pool: ReaderPool, keys: CaseKeys): LedgerCopySource => new PostgresCopySource(pool, keys);

class PostgresCopySource implements LedgerCopySource {
  readonly #pool: ReaderPool;
  readonly #keys: CaseKeys;
  readonly #runRecords: PostgresRunRecords;

  constructor(pool: ReaderPool, keys: CaseKeys) {
    this.#pool = pool;
    this.#keys = keys;
    this.#runRecords = new PostgresRunRecords(pool);
  }

  head(): Promise<LogHead> {
    return new PostgresReader(this.#pool).head();
  }

  /** A start of the copy would take an effect for interrupted that a worker may still perform. */
  async findObstacle(): Promise<string | null> {
    for (const row of await this.#pool.read(EFFECTS)) {
      const what = 'a worker';
      const identity = {
        host: textOf(row, 'host', what),
        pid: integerOf(row, 'pid', what),
        started: textOf(row, 'started', what),
      };
      if (row['is_dead'] === 't' || isKnownDead(identity)) continue;
      return (
        `a worker that may only be cut off has an unfinished effect of ${row['run_id'] ?? 'a run'}: ` +
        'start a worker once, so that it settles the effect, stop it, and copy then'
      );
    }
    return null;
  }

  async *contents(): CopyPages<CopiedContent> {
    for await (const rows of this.#pages(CONTENTS, -1, PAGE_ROWS, (row) => integerOf(row, 'artifact_no', WHAT))) {
      for (const page of byBytes(rows)) yield await this.#contentsOf(page);
    }
  }

  async #contentsOf(rows: readonly Row[]): Promise<readonly CopiedContent[]> {
    const bytes = await this.#pool.read(BYTES, [rows.map((row) => row['artifact_no'])]);
    const stored = new Map(bytes.map((row) => [row['artifact_no'], row]));
    return rows.map((row) => {
      const no = integerOf(row, 'artifact_no', WHAT);
      const what = `content ${no}`;
      const [case_id, key_no] = [row['case_id'] ?? null, integerOf(row, 'key_no', what)];
      const isErased = case_id !== null && key_no > 0 && 'erased_below' in this.#keys.get(case_id, key_no);
      const found = stored.get(row['artifact_no'] ?? null);
      const first = found === undefined ? null : bytesOf(found, 'bytes');
      if (!isErased && (found === undefined || first === null)) throw tamperedError(`${what} is missing`);
      return {
        no,
        case_id,
        sha256: hexOf(row, 'sha256', what),
        kind: textOf(row, 'kind', what),
        byte_size: integerOf(row, 'byte_size', what),
        key_no,
        stored: isErased || found === undefined ? null : joined(first, bytesOf(found, 'rest')),
      };
    });
  }

  async *blocks(): CopyPages<CopiedBlock> {
    for (let from = 0; ;) {
      const rows = await this.#pool.read(LOG_PAGE, [from, PAGE_BLOCKS, PAGE_BYTES, true]);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows.map(toCopiedBlock);
      from = integerOf(last, 'log_index', 'the log') + 1;
    }
  }

  async *trees(): CopyPages<CopiedTree> {
    for await (const rows of this.#pages(TREES, -1, PAGE_ROWS, (row) => integerOf(row, 'log_index', 'a tree'))) {
      yield rows.map((row) => ({
        tree_id: textOf(row, 'tree_id', 'a tree'),
        log_index: integerOf(row, 'log_index', 'a tree'),
        case_id: row['case_id'] ?? null,
        ended: row['ended'] === 't',
        unfinished: row['unfinished'] === 't',
        wake_at: row['wake_at'] ?? null,
      }));
    }
  }

  async *marks(): CopyPages<CopiedMarks> {
    for (let [scope, name] = ['', '']; ;) {
      const rows = await this.#pool.read(MARKS, [scope, name, PAGE_ROWS]);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield [toCopiedMarks(rows)];
      [scope, name] = [textOf(last, 'scope', 'a mark'), textOf(last, 'name', 'a mark')];
    }
  }

  async *records(): CopyPages<CopiedRecords> {
    const last = (row: Row): number => integerOf(row, 'recorded', 'a recorded tree');
    for await (const rows of this.#pages(RECORDED, -1, PAGE_RECORDED, last)) {
      const trees = rows.map((row) => textOf(row, 'tree_id', 'a recorded tree'));
      const found = await this.#pool.read(RECORDS, [trees]);
      const records = found.map((row) => ({
        tree_id: textOf(row, 'tree_id', 'a run record'),
        run_id: textOf(row, 'run_id', 'a run record'),
        text: textOf(row, 'record', 'a run record'),
      }));
      yield rows.map((row, at) => ({
        tree: { tree_id: trees[at] ?? '', seq: integerOf(row, 'seq', 'a recorded tree') },
        records: records.filter(({ tree_id }) => tree_id === trees[at]),
      }));
    }
  }

  async *unrecorded(): CopyPages<string> {
    let page: string[] = [];
    for await (const { tree_id } of this.#runRecords.unrecorded()) {
      page.push(tree_id);
      if (page.length < PAGE_UNRECORDED) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** @param sql has the key of the last row as $1, and the size of the page as $2 */
  async *#pages(sql: string, start: number, count: number, keyOf: (row: Row) => number): CopyPages<Row> {
    for (let after = start; ;) {
      const rows = await this.#pool.read(sql, [after, count]);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      after = keyOf(last);
    }
  }
}

const WHAT = 'a content';

/** Groups of contents with about PAGE_BYTES each; a larger one is alone. */
function* byBytes(rows: readonly Row[]): Generator<readonly Row[]> {
  let group: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    const size = integerOf(row, 'byte_size', WHAT);
    if (group.length > 0 && bytes + size > PAGE_BYTES) {
      yield group;
      [group, bytes] = [[], 0];
    }
    group.push(row);
    bytes += size;
  }
  if (group.length > 0) yield group;
}

function joined(first: Buffer | null, rest: Buffer | null): Uint8Array | null {
  if (first === null || rest === null) return first;
  return Buffer.concat([first, rest]);
}

function toCopiedBlock(row: Row): CopiedBlock {
  const what = `the block at ${row['log_index'] ?? 'no log index'}`;
  const places = integersOf(row, 'artifact_entries', what);
  const numbers = integersOf(row, 'artifact_nos', what);
  if (places.length !== numbers.length) throw tamperedError(`${what} does not name the entries of its contents`);
  return {
    tree_id: textOf(row, 'tree_id', what),
    seq: integerOf(row, 'seq', what),
    log_index: integerOf(row, 'log_index', what),
    types: textOf(row, 'types', what),
    texts: textOf(row, 'texts', what),
    leaf_hashes: Buffer.from(hexOf(row, 'leaf_hashes', what), 'hex'),
    contents: places.map((entry, at) => ({ entry, no: numbers[at] ?? 0 })),
  };
}

function toCopiedMarks(rows: readonly Row[]): CopiedMarks {
  const [proposals, inputs]: [ProposalMark[], InputMark[]] = [[], []];
  for (const row of rows) {
    const what = 'a mark';
    const [scope, name, seq] = [textOf(row, 'scope', what), textOf(row, 'name', what), integerOf(row, 'seq', what)];
    if (name.startsWith('i')) inputs.push({ tree_id: scope, input_id: inputIdOf(name), seq });
    else {
      proposals.push({
        root_run_id: scope,
        proposal_id: name.slice(1),
        run_id: textOf(row, 'run_id', what),
        step_index: integerOf(row, 'step_index', what),
        payload_sha256: textOf(row, 'payload_sha256', what),
        seq,
      });
    }
  }
  return { proposals, inputs };
}

/** See `inputName`. @throws LedgerError LEDGER_TAMPERED */
function inputIdOf(name: string): string {
  try {
    const input_id: unknown = parseOwnJson(name.slice(1));
    if (typeof input_id === 'string') return input_id;
  } catch {
    // Falls through to the error below: this store did not write such a name.
  }
  throw tamperedError(`a mark has an invalid name: ${name}`);
}

const EFFECTS = `SELECT d.run_id, p.host, p.pid, p.started, p.is_dead FROM leases d
  JOIN workers p ON p.worker_id = d.worker_id WHERE d.kind = 'effect' AND d.from_dead IS NOT TRUE`;
const CONTENTS = `SELECT artifact_no, case_id, sha256, kind, byte_size, key_no FROM artifacts
  WHERE artifact_no > $1 ORDER BY artifact_no LIMIT $2`;
const BYTES = `SELECT a.artifact_no, a.bytes, (SELECT string_agg(c.bytes, ''::bytea ORDER BY c.chunk_no)
    FROM artifact_chunks c WHERE c.artifact_no = a.artifact_no) AS rest
  FROM artifacts a WHERE a.artifact_no = ANY ($1::bigint[])`;
const TREES = `SELECT l.log_index, l.tree_id, t.case_id, t.ended, t.unfinished, t.wake_at
  FROM log l JOIN trees t ON t.tree_id = l.tree_id
  WHERE l.seq = 0 AND l.log_index > $1 ORDER BY l.log_index LIMIT $2`;
const MARKS = `SELECT scope, name, seq, run_id, step_index, payload_sha256 FROM marks
  WHERE (scope, name) > ($1::text COLLATE "C", $2::text COLLATE "C") ORDER BY scope, name LIMIT $3`;
const RECORDED = `SELECT recorded, tree_id, seq FROM recorded_trees
  WHERE recorded > $1 ORDER BY recorded LIMIT $2`;
const RECORDS = `SELECT tree_id, run_id, record FROM run_records WHERE tree_id = ANY ($1::text[])
  ORDER BY tree_id, run_id`;

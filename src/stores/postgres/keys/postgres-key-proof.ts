// What a ledger in PostgreSQL says about the keys of its cases (stores/keys/case-keys.ts).

import type { TreeAppend } from '../../../engine/ports/ledger/ledger-store.js';
import type { CaseKeys, SealedContent } from '../../keys/case-keys.js';
import type { ReaderPool, Row } from '../postgres-connection.js';
import { PostgresContents } from '../postgres-contents.js';
import { bytesOf, hexOf, integerOf, textOf } from '../values/postgres-values.js';

/** The contents of a ledger, with its key folder. @throws LedgerError LEDGER_CONFLICT for the folder of another one */
export async function openContents(pool: ReaderPool, keys: CaseKeys, readOnly: boolean): Promise<PostgresContents> {
  const contents = new PostgresContents(pool, keys);
  await bindKeyFolder(pool, contents, readOnly);
  return contents;
}

/** Compares the key folder with the ledger, and names it. @throws LedgerError LEDGER_CONFLICT */
export async function bindKeyFolder(pool: ReaderPool, { guard }: PostgresContents, readOnly: boolean): Promise<void> {
  const [row = {}] = await pool.read(readOnly ? ORIGIN : NEWEST);
  const hashes = row['leaf_hashes'] === undefined ? null : row['leaf_hashes'];
  const origin = hashes === null ? null : hexOf(row, 'leaf_hashes', 'the first block').slice(0, HASH_CHARS);
  const ledger = { origin, isEmpty: origin === null };
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
  const named = trees.flatMap(({ artifacts }) => artifacts.map(({ artifact }) => artifact.case_id));
  const case_ids = guard.unproven(named.filter((case_id) => case_id !== null));
  if (case_ids.length === 0) return;
  if (!guard.isNamed) await bindKeyFolder(pool, contents, false);
  const rows = await pool.read(NEWEST_OF, [case_ids, case_ids.map((case_id) => keys.lastErased(case_id))]);
  for (const [at, case_id] of case_ids.entries()) guard.prove(case_id, contentOf(rows[at] ?? {}));
}

const HASH_CHARS = 64;
const READ_BYTES_MAX = 64 * 1_024;

function contentOf(row: Row): SealedContent | null {
  if ((row['case_id'] ?? null) === null) return null;
  const what = 'the newest content of a case';
  return {
    case_id: textOf(row, 'case_id', what),
    key_no: integerOf(row, 'key_no', what),
    sha256: hexOf(row, 'sha256', what),
    stored: bytesOf(row, 'stored'),
  };
}

const COLUMNS = `a.case_id, a.key_no, a.sha256, CASE WHEN a.byte_size <= ${READ_BYTES_MAX} THEN a.bytes END AS stored`;
const FIRST_BLOCK = `SELECT b.leaf_hashes FROM log l JOIN blocks b ON b.tree_id = l.tree_id AND b.seq = l.seq
  WHERE l.log_index = 0`;
const ORIGIN = `SELECT (${FIRST_BLOCK}) AS leaf_hashes`;
const NEWEST = `SELECT (${FIRST_BLOCK}) AS leaf_hashes, a.* FROM (SELECT) AS one LEFT JOIN LATERAL (
    SELECT ${COLUMNS} FROM artifacts a WHERE a.key_no > 0 ORDER BY a.artifact_no DESC LIMIT 1
  ) AS a ON true`;
const NEWEST_OF = `SELECT a.* FROM unnest($1::text[], $2::integer[]) WITH ORDINALITY AS c (case_id, erased, place)
  LEFT JOIN LATERAL (
    SELECT ${COLUMNS} FROM artifacts a WHERE a.case_id = c.case_id AND a.key_no > c.erased
    ORDER BY a.key_no DESC LIMIT 1
  ) AS a ON true ORDER BY c.place`;

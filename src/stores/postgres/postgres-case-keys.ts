// The keys of the cases of a ledger in PostgreSQL: contents that are encrypted again (decision 0022), and cases that
// are erased. Each part is one transaction. The row of the case keeps other workers from storing content under a
// replaced or erased key.

import { LedgerError } from '../../core/errors.js';
import type {
  CaseKeyReplacement,
  CaseKeyReplacer,
  CaseKeyTable,
  ResealedPart,
} from '../../engine/ports/ledger/case-key-table.js';
import type { Erasure, ErasureResult } from '../../engine/ports/ledger/ledger-store.js';
import { writerReplacedError } from '../ledger/store-errors.js';
import { inTransaction, type SendStatement } from './postgres-connection.js';
import { CONTENT_COLUMNS, sealedContentOf, storedBytesOf, type PostgresContents } from './postgres-contents.js';
import { CHUNK_BYTES } from './postgres-schema.js';
import { ByteColumn, integerOf } from './postgres-values.js';

/** Contents and bytes that one part encrypts. The first content may be larger. */
const CONTENTS_MAX = 500;
const BYTES_MAX = 8 * 1_024 * 1_024;

/** What the table uses of a store. */
export interface PostgresCaseKeyParts {
  readonly contents: PostgresContents;
  /** Runs statements on the session of the writer. */
  readonly onSession: <T>(work: (send: SendStatement) => Promise<T>) => Promise<T>;
  /** The epoch of the writer. */
  readonly epoch: () => number | null;
}

export const postgresCaseKeyTable = (parts: PostgresCaseKeyParts): CaseKeyTable => {
  const { contents, onSession, epoch } = parts;
  const { keys } = contents;
  const transact = <T>(work: (send: SendStatement) => Promise<T>): Promise<T> =>
    onSession((send) => inEpoch(send, epoch(), () => work(send)));
  return {
    cases: () => keys.cases().filter((case_id) => keys.has(case_id)),
    unfinished: () => keys.unfinishedReplacements(),
    begin: (case_id, by) => transact((send) => beginReplacement(send, contents, case_id, by)),
    reseal: (case_ids) => transact((send) => resealPart(send, contents, case_ids)),
    finish: async (case_ids) => {
      await transact((send) => finishReplacements(send, contents, case_ids));
      for (const case_id of case_ids) keys.destroyReplaced(case_id);
    },
  };
};

/** Runs `work` in one transaction of the writer, whose epoch is not over. */
const inEpoch = <T>(send: SendStatement, epoch: number | null, work: () => Promise<T>): Promise<T> =>
  inTransaction(send, async () => {
    const [meta] = await send({ text: 'SELECT epoch FROM meta' });
    if (epoch === null || meta?.['epoch'] !== String(epoch)) throw writerReplacedError(`epoch ${epoch} is over`);
    return work();
  });

/** No commit of the case is in flight while its row is locked. */
async function lockCase(send: SendStatement, case_id: string): Promise<void> {
  await send({ text: 'INSERT INTO cases (case_id) VALUES ($1) ON CONFLICT DO NOTHING', values: [case_id] });
  await send({ text: 'SELECT FROM cases WHERE case_id = $1 FOR UPDATE', values: [case_id] });
}

/** The note is durable before the transaction commits: content under the old key may follow it, and is readable. */
async function beginReplacement(
  send: SendStatement,
  contents: PostgresContents,
  case_id: string,
  by: CaseKeyReplacer,
): Promise<CaseKeyReplacement> {
  const { keys } = contents;
  await lockCase(send, case_id);
  const count = 'SELECT count(*) AS contents FROM artifacts WHERE case_id = $1 AND key_no > $2';
  const [found = {}] = await send({ text: count, values: [case_id, keys.lastErased(case_id)] });
  const replacement = keys.replace(case_id, integerOf(found, 'contents', 'the count of the contents'), by);
  contents.forget();
  await send({ text: REFUSE_KEY, values: [case_id, replacement.key_no] });
  return replacement;
}

/** The old contents are those that remain, so a part needs no place to continue from. */
async function resealPart(
  send: SendStatement,
  { keys }: PostgresContents,
  case_ids: readonly string[],
): Promise<ResealedPart> {
  const ranges = case_ids.map((case_id) => [keys.lastErased(case_id), keys.currentKey(case_id).no] as const);
  const values = [case_ids, ranges.map(([erased]) => erased), ranges.map(([, current]) => current)];
  const rows = await send({ text: OLD_CONTENTS, values });
  const chosen: number[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += integerOf(row, 'byte_size', 'an old content');
    if (chosen.length > 0 && bytes > BYTES_MAX) break;
    chosen.push(integerOf(row, 'artifact_no', 'an old content'));
  }
  if (chosen.length === 0) return { contents: 0, next: null };
  const column = new ByteColumn();
  const changed: { readonly no: number; readonly key_no: number }[] = [];
  for (const row of await send({ text: WHOLE_CONTENTS, values: [chosen] })) {
    const no = integerOf(row, 'artifact_no', 'an old content');
    const { key_no, stored } = keys.reseal({ ...sealedContentOf(row, `content ${no}`), stored: storedBytesOf(row) });
    column.add(stored);
    changed.push({ no, key_no });
  }
  for (const table of RESEALED) await send({ text: `ALTER TABLE ${table} DISABLE TRIGGER guard_changes` });
  const sealedValues = [changed.map(({ no }) => no), changed.map(({ key_no }) => key_no)];
  await send({ text: RESEAL, values: [...sealedValues, column.at, column.lengths, column.toBuffer()] });
  for (const table of RESEALED) await send({ text: `ALTER TABLE ${table} ENABLE TRIGGER guard_changes` });
  return { contents: changed.length, next: chosen.length < rows.length || rows.length === CONTENTS_MAX ? 0 : null };
}

/** In the order in which commits write them. The only rows that change without being erased, and only here. */
const RESEALED = ['artifacts', 'artifact_chunks'] as const;

/** @throws LedgerError LEDGER_UNAVAILABLE if contents under a replaced key remain */
async function finishReplacements(
  send: SendStatement,
  { keys }: PostgresContents,
  case_ids: readonly string[],
): Promise<void> {
  for (const case_id of case_ids) {
    const { no } = keys.currentKey(case_id);
    // Again: the transaction that began the rotation may not have committed.
    await send({ text: 'SELECT FROM cases WHERE case_id = $1 FOR UPDATE', values: [case_id] });
    await send({ text: REFUSE_KEY, values: [case_id, no - 1] });
    const values = [[case_id], [keys.lastErased(case_id)], [no]];
    const [left] = await send({ text: OLD_CONTENTS, values });
    if (left !== undefined) {
      const message = `contents of ${case_id} are still under a replaced key: rotate the key again, which finishes it`;
      throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message });
    }
    // A snapshot is a cache.
    await send({ text: 'DELETE FROM snapshots WHERE case_id = $1 AND key_no < $2', values: [case_id, no] });
  }
}

/** Other workers store nothing under this key from now on: they read their keys again. */
const REFUSE_KEY = 'UPDATE cases SET erased_key = greatest(erased_key, $2) WHERE case_id = $1';

const OLD_CONTENTS = `SELECT a.artifact_no, a.byte_size FROM artifacts a
  JOIN unnest($1::text[], $2::integer[], $3::integer[]) AS k (case_id, erased, current)
    ON a.case_id = k.case_id AND a.key_no > k.erased AND a.key_no < k.current
  ORDER BY a.artifact_no LIMIT ${CONTENTS_MAX}`;

const WHOLE_CONTENTS = `SELECT ${CONTENT_COLUMNS} FROM artifacts a
  WHERE a.artifact_no = ANY ($1::bigint[]) ORDER BY a.artifact_no`;

/** A content has as many bytes as before, so it has the same chunks. */
const RESEAL = `WITH c AS (
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[]) AS c (no, key_no, at, stored)
  ), changed AS (
    UPDATE artifacts a SET key_no = c.key_no, bytes = substring($5::bytea FROM c.at FOR least(c.stored, ${CHUNK_BYTES}))
    FROM c WHERE a.artifact_no = c.no
  )
  UPDATE artifact_chunks k SET bytes = substring($5::bytea FROM c.at + k.chunk_no * ${CHUNK_BYTES}
    FOR least(c.stored - k.chunk_no * ${CHUNK_BYTES}, ${CHUNK_BYTES}))
  FROM c WHERE k.artifact_no = c.no`;

/**
 * Erases the content of a case: destroys its key, removes its snapshots, and replaces the bytes of its contents by
 * null.
 * The key is destroyed before the transaction commits. So after any failure either the key and all content are there,
 * or the key is destroyed; what remains in the database then cannot be decrypted.
 */
export const eraseCase = (
  send: SendStatement,
  contents: PostgresContents,
  erasure: Erasure,
  epoch: number | null,
): Promise<ErasureResult> =>
  inEpoch(send, epoch, async () => {
    const { case_id, tree_ids } = erasure;
    const { keys } = contents;
    // The next number separates old contents from new.
    await lockCase(send, case_id);
    const [found = {}] = await send({ text: FOUND, values: [case_id, keys.lastErased(case_id)] });
    const what = 'the count of the contents';
    const erased = { contents: integerOf(found, 'contents', what), bytes: integerOf(found, 'bytes', what) };
    for (const text of ERASE_BYTES) await send({ text, values: [case_id] });
    await send({
      text: 'DELETE FROM snapshots WHERE case_id = $1 OR tree_id = ANY ($2::text[])',
      values: [case_id, [...tree_ids]],
    });
    contents.forget();
    if (erased.contents > 0 || keys.has(case_id)) keys.destroy(case_id, integerOf(found, 'below', what), erasure);
    await send({ text: REFUSE_KEY, values: [case_id, keys.lastErased(case_id)] });
    return erased;
  });

/** The contents that no erasure has removed yet, and a number above those of all contents. */
const FOUND = `SELECT count(*) AS contents, coalesce(sum(byte_size), 0) AS bytes,
    nextval('artifact_numbers') AS below
  FROM artifacts WHERE case_id = $1 AND key_no > $2`;

const ERASE_BYTES = [
  `UPDATE artifact_chunks SET bytes = NULL WHERE bytes IS NOT NULL AND artifact_no IN
    (SELECT artifact_no FROM artifacts WHERE case_id = $1)`,
  'UPDATE artifacts SET bytes = NULL WHERE case_id = $1 AND bytes IS NOT NULL',
];

import type { Erasure, ErasureResult } from '../../engine/ports/ledger/ledger-store.js';
import { writerReplacedError } from '../ledger/store-errors.js';
import type { PostgresContents } from './postgres-contents.js';
import { integerOf } from './values/postgres-values.js';
import type { SendStatement } from './writer-session.js';

/**
 * Erases the content of a case: destroys its key, removes its snapshots, and replaces the bytes of its contents by
 * null.
 * The key is destroyed before the transaction commits. So after any failure either the key and all content are there,
 * or the key is destroyed; what remains in the database then cannot be decrypted.
 */
export async function eraseCase(
  send: SendStatement,
  contents: PostgresContents,
  erasure: Erasure,
  epoch: number | null,
): Promise<ErasureResult> {
  const { case_id, tree_ids } = erasure;
  const { keys } = contents;
  await send({ text: 'BEGIN' });
  try {
    const [meta] = await send({ text: 'SELECT epoch FROM meta' });
    if (epoch === null || meta?.['epoch'] !== String(epoch)) throw writerReplacedError(`epoch ${epoch} is over`);
    // No commit of the case is in flight while its row is locked, so the next number separates old contents from new.
    await send({ text: 'INSERT INTO cases (case_id) VALUES ($1) ON CONFLICT DO NOTHING', values: [case_id] });
    await send({ text: 'SELECT FROM cases WHERE case_id = $1 FOR UPDATE', values: [case_id] });
    const [found = {}] = await send({ text: FOUND, values: [case_id, keys.lastErased(case_id)] });
    const what = 'the count of the contents';
    const erased = { contents: integerOf(found, 'contents', what), bytes: integerOf(found, 'bytes', what) };
    const chunks = 'UPDATE artifact_chunks SET bytes = NULL WHERE bytes IS NOT NULL AND artifact_no IN';
    await send({ text: `${chunks} (SELECT artifact_no FROM artifacts WHERE case_id = $1)`, values: [case_id] });
    await send({
      text: 'UPDATE artifacts SET bytes = NULL WHERE case_id = $1 AND bytes IS NOT NULL',
      values: [case_id],
    });
    await send({
      text: 'DELETE FROM snapshots WHERE case_id = $1 OR tree_id = ANY ($2::text[])',
      values: [case_id, [...tree_ids]],
    });
    contents.forget();
    if (erased.contents > 0 || keys.has(case_id)) keys.destroy(case_id, integerOf(found, 'below', what), erasure);
    const destroyed = 'UPDATE cases SET erased_key = greatest(erased_key, $2) WHERE case_id = $1';
    await send({ text: destroyed, values: [case_id, keys.lastErased(case_id)] });
    await send({ text: 'COMMIT' });
    return erased;
  } catch (error) {
    await send({ text: 'ROLLBACK' }).catch(() => undefined);
    throw error;
  }
}

/** The contents that no erasure has removed yet, and a number above those of all contents. */
const FOUND = `SELECT count(*) AS contents, coalesce(sum(byte_size), 0) AS bytes,
    nextval('artifact_numbers') AS below
  FROM artifacts WHERE case_id = $1 AND key_no > $2`;

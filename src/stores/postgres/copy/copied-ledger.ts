// The mark of a ledger that was copied: a table with one row, the name of the copy. While it exists, no process writes
// to the ledger. Readers do not look at it.

import { LedgerError } from '../../../core/errors.js';
import { connect, type PostgresPlace, type Row } from '../postgres-connection.js';

export const COPIED_TABLE = 'copied_ledger';

export const copiedError = (schema: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_COPIED',
    message:
      `the ledger in schema ${schema} was copied, and continues in the copy: use that one, or run ` +
      '`turnpike home reopen` if the copy will never be used',
  });

/** The name of the copy of a ledger; null if it was not copied. @throws LedgerError LEDGER_UNAVAILABLE */
export const readCopied = (place: PostgresPlace): Promise<string | null> =>
  withConnection(place, async (send) => {
    const [found] = await send(`SELECT to_regclass('${COPIED_TABLE}') IS NOT NULL AS copied`);
    if (found?.['copied'] !== 't') return null;
    const [row] = await send(`SELECT target FROM ${COPIED_TABLE}`);
    return row?.['target'] ?? 'another ledger';
  });

/** Marks a ledger whose writer lock the caller has, or removes the mark: `target` is null. */
export const writeCopied = (place: PostgresPlace, target: string | null): Promise<void> =>
  withConnection(place, async (send) => {
    await send('BEGIN');
    await send(`DROP TABLE IF EXISTS ${COPIED_TABLE}`);
    if (target !== null) await send(`CREATE TABLE ${COPIED_TABLE} (target) AS SELECT $1::text`, [target]);
    await send('COMMIT');
  });

type Send = (text: string, values?: readonly string[]) => Promise<readonly Row[]>;

async function withConnection<T>(place: PostgresPlace, work: (send: Send) => Promise<T>): Promise<T> {
  const client = await connect(place);
  try {
    await client.query('SET client_min_messages TO error');
    return await work(async (text, values = []) => (await client.query<Row>({ text, values: [...values] })).rows);
  } finally {
    await client.end().catch(() => undefined);
  }
}

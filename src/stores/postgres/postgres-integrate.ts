import { InvariantError, LedgerError } from '../../core/errors.js';
import type { Integration } from '../../engine/ports/ledger/log-store.js';
import { errorCode } from '../../system/error-code.js';
import { ByteColumn } from './values/byte-column.js';
import { asLedgerError, isServerAnswer, type ReaderPool } from './postgres-connection.js';

const INTEGRATE = 'SELECT integrate_appends($1, $2, $3, $4, $5, $6, $7, $8, $9) AS integrated';
/** SQLSTATE of an integration that does not continue the log (postgres-functions.ts). */
const NOT_NEXT = 'TP001';

/** See `LogStore.integrate`. Any connection may do it: the function compares the size of the log first. */
export async function integrateAppends(
  pool: Pick<ReaderPool, 'send'>,
  { from, appends, head }: Integration,
): Promise<boolean> {
  const leaves = new ByteColumn();
  for (const { leaf_hashes } of appends) leaves.add(Buffer.from(leaf_hashes.join(''), 'hex'));
  const values = [
    from,
    appends.map(({ tree_id }) => tree_id),
    appends.map(({ seq }) => seq),
    appends.map(({ leaf_hashes }) => leaf_hashes.length),
    leaves.at,
    leaves.toBuffer(),
    head.size,
    Buffer.from(head.root, 'hex'),
    Buffer.from(head.frontier.join(''), 'hex'),
  ];
  try {
    const [row] = await pool.send(INTEGRATE, values);
    return row?.['integrated'] === 't';
  } catch (cause) {
    if (errorCode(cause) === NOT_NEXT) throw new InvariantError('an append is not what is integrated next', cause);
    if (isServerAnswer(cause) || cause instanceof LedgerError) throw asLedgerError(cause, 'the log was not extended');
    const message = 'the connection broke before the server answered whether it extended the log';
    throw new LedgerError({ code: 'LEDGER_COMMIT_UNKNOWN', message, cause });
  }
}

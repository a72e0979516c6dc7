import { InvariantError, LedgerError } from '../../core/errors.js';
import type { Integration } from '../../engine/ports/ledger/log-store.js';
import { errorCode } from '../../system/error-code.js';
import { ByteColumn } from './values/byte-column.js';
import { asLedgerError, isServerAnswer, type ReaderPool } from './postgres-connection.js';

const INTEGRATE = `SELECT integrate_appends(p_size_before => $1, p_trees => $2, p_seqs => $3, p_counts => $4,
  p_leaf_at => $5, p_leaves => $6, p_size => $7, p_root => $8, p_frontier => $9) AS integrated`;
/** SQLSTATE of an integration that does not continue the log (sql/integrate.sql). */
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

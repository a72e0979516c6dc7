// What workers do for each other: leases of workers that are gone, and timers of any tree.

import type { ClaimedLease, Lease } from '../../../engine/ports/ledger/shared-store.js';
import { isKnownDead } from '../../../system/process-identity.js';
import type { ReaderPool, SendStatement } from '../postgres-connection.js';
import { WORKER_LOCK } from '../postgres-schema.js';
import { integerOf, textOf, type Row } from '../postgres-values.js';

const OTHER_WORKERS = `SELECT worker_id, host, pid, started, backend_pid FROM workers
  WHERE worker_id <> $1 AND (over_at IS NULL OR NOT is_dead AND EXISTS (
    SELECT FROM leases d WHERE d.worker_id = workers.worker_id))`;
const END_DEAD = `UPDATE workers SET over_at = coalesce(over_at, clock_timestamp()), is_dead = true
  WHERE worker_id = $1`;
/** Ends the session of a dead process, if a proxy keeps it open. Only that session holds the lock of its worker. */
const END_SESSION = `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1
  AND classid = ${WORKER_LOCK} AND objid = $2 AND granted`;
const END_LOST = 'SELECT end_lost_workers($1)';
const TAKE_OVER = `UPDATE leases d SET worker_id = $1, from_dead = coalesce(d.from_dead, f.is_dead)
  FROM (
    SELECT c.run_id, c.kind, p.is_dead FROM leases c JOIN workers p USING (worker_id)
    WHERE p.over_at IS NOT NULL AND (p.is_dead OR p.over_at <= clock_timestamp() - $2::integer * interval '1 ms')
      AND c.tree_id <> ALL ($4::text[])
    LIMIT $3 FOR UPDATE OF c SKIP LOCKED
  ) AS f
  WHERE d.run_id = f.run_id AND d.kind = f.kind AND EXISTS (
    SELECT FROM workers p WHERE p.worker_id = $1 AND p.over_at IS NULL)`;
const CLAIMED = `SELECT d.tree_id, d.run_id, d.kind, d.from_dead AS is_dead FROM leases d
  WHERE d.worker_id = $1 AND d.from_dead IS NOT NULL AND d.tree_id <> ALL ($3::text[]) AND EXISTS (
    SELECT FROM workers p WHERE p.worker_id = $1 AND p.over_at IS NULL)
  ORDER BY d.tree_id, d.run_id LIMIT $2`;

/** See `SharedLedgerStore.claimLeases`. The statements run on the session of the worker. */
export async function claimLeases(
  send: SendStatement,
  worker_id: number,
  graceMs: number,
  limit: number,
  except: readonly string[],
): Promise<readonly ClaimedLease[]> {
  for (const row of await send({ text: OTHER_WORKERS, values: [worker_id] })) await endIfDead(send, row);
  await send({ text: END_LOST, values: [worker_id] });
  await send({ text: TAKE_OVER, values: [worker_id, graceMs, limit, except] });
  return (await send({ text: CLAIMED, values: [worker_id, limit, except] })).map(toClaimedLease);
}

async function endIfDead(send: SendStatement, row: Row): Promise<void> {
  if (!isProcessDead(row)) return;
  await send({ text: END_SESSION, values: [row['backend_pid'], row['worker_id']] });
  await send({ text: END_DEAD, values: [row['worker_id']] });
}

/** Whether the process of a row of workers is known to be dead. */
export const isProcessDead = (row: Row): boolean =>
  isKnownDead({
    host: textOf(row, 'host', 'a worker'),
    pid: integerOf(row, 'pid', 'a worker'),
    started: textOf(row, 'started', 'a worker'),
  });

const toClaimedLease = (row: Row): ClaimedLease => ({
  tree_id: textOf(row, 'tree_id', 'a lease'),
  run_id: textOf(row, 'run_id', 'a lease'),
  kind: row['kind'] === 'effect' ? 'effect' : 'caller',
  isDead: row['is_dead'] === 't',
});

const RELEASE = `DELETE FROM leases d USING unnest($2::text[], $3::text[]) AS r (kind, run_id)
  WHERE d.run_id = r.run_id AND d.kind = r.kind AND d.worker_id = $1`;

const valuesOf = (worker_id: number, leases: readonly Lease[]): unknown[] => [
  worker_id,
  leases.map(({ kind }) => kind),
  leases.map(({ run_id }) => run_id),
];

/** See `SharedLedgerStore.releaseLeases`. */
export async function releaseLeases(send: SendStatement, worker_id: number, leases: readonly Lease[]): Promise<void> {
  if (leases.length > 0) await send({ text: RELEASE, values: valuesOf(worker_id, leases) });
}

/** Workers stay listed. Any that is over can have the leases until another worker claims them. */
const RETURN = `UPDATE leases d SET worker_id = f.worker_id
  FROM (SELECT worker_id FROM workers WHERE over_at IS NOT NULL ORDER BY is_dead DESC, over_at LIMIT 1) AS f,
    unnest($2::text[], $3::text[]) AS r (kind, run_id)
  WHERE d.run_id = r.run_id AND d.kind = r.kind AND d.worker_id = $1 AND d.from_dead IS NOT NULL`;

/** See `SharedLedgerStore.returnLeases`. */
export async function returnLeases(send: SendStatement, worker_id: number, leases: readonly Lease[]): Promise<void> {
  await send({ text: RETURN, values: valuesOf(worker_id, leases) });
}

const OWN = `SELECT count(*) AS own FROM leases d JOIN unnest($2::text[], $3::text[]) AS r (kind, run_id)
  ON d.run_id = r.run_id AND d.kind = r.kind WHERE d.worker_id = $1`;

/** See `SharedLedgerStore.hasLeases`. */
export async function hasLeases(send: SendStatement, worker_id: number, leases: readonly Lease[]): Promise<boolean> {
  const [row = {}] = await send({ text: OWN, values: valuesOf(worker_id, leases) });
  return integerOf(row, 'own', 'the number of leases') === leases.length;
}

const IS_ACTIVE = 'SELECT FROM workers WHERE worker_id = $1 AND over_at IS NULL';

/** Whether no other worker has declared the worker over. */
export const isActive = async (send: SendStatement, worker_id: number): Promise<boolean> =>
  (await send({ text: IS_ACTIVE, values: [worker_id] })).length === 1;

const CLAIM_DUE = `UPDATE trees SET wake_at = $2 WHERE tree_id IN (
    SELECT t.tree_id FROM trees t WHERE NOT t.ended AND t.wake_at COLLATE "C" <= $1 AND t.tree_id <> ALL ($4::text[])
    ORDER BY t.wake_at COLLATE "C" LIMIT $3 FOR UPDATE SKIP LOCKED)
  RETURNING tree_id`;

/** See `SharedLedgerStore.claimDueTrees`. */
export async function claimDueTrees(
  send: SendStatement,
  now: string,
  until: string,
  limit: number,
  except: readonly string[],
): Promise<readonly string[]> {
  const rows = await send({ text: CLAIM_DUE, values: [now, until, limit, except] });
  return rows.map((row) => textOf(row, 'tree_id', 'a tree'));
}

const LENGTHS = {
  name: 'turnpike_lengths',
  text: `SELECT t.head_seq FROM unnest($1::text[]) WITH ORDINALITY AS a (tree_id, ord)
  LEFT JOIN trees t ON t.tree_id = a.tree_id ORDER BY a.ord`,
};

/** See `SharedLedgerStore.treeLengths`. */
export async function treeLengths(pool: ReaderPool, tree_ids: readonly string[]): Promise<readonly number[]> {
  const rows = await pool.read(LENGTHS, [[...tree_ids]]);
  return rows.map((row) => (row['head_seq'] === null ? 0 : integerOf(row, 'head_seq', 'a tree')));
}

// What workers do for each other: duties of workers that are gone, and timers of any tree.

import type { ClaimedDuty, Duty, SharedBatch } from '../../../engine/ports/ledger/shared-store.js';
import { isKnownDead } from '../../../system/process-identity.js';
import type { ReaderPool, Row } from '../postgres-connection.js';
import { quotaParameter } from './postgres-quotas.js';
import { PERFORMER_LOCK } from '../postgres-shared-functions.js';
import { integerOf, textOf } from '../values/postgres-values.js';
import type { SendStatement } from '../writer-session.js';

/** @param parameters those of commit_batch @returns the parameters of commit_shared */
export function sharedParameters(batch: SharedBatch, parameters: readonly unknown[]): unknown[] {
  const { performer, trees } = batch;
  const taken = trees.flatMap((append, at) => append.taken.map((duty) => ({ ...duty, tree: at + 1 })));
  const released = trees.flatMap((append, at) => append.released.map((run_id) => ({ run_id, tree: at + 1 })));
  return [
    performer,
    taken.map(({ tree }) => tree),
    taken.map(({ kind }) => kind),
    taken.map(({ run_id }) => run_id),
    released.map(({ tree }) => tree),
    released.map(({ run_id }) => run_id),
    ...parameters.slice(2, -1),
    quotaParameter(batch),
  ];
}

const STANDING = `SELECT performer_id, host, pid, started, backend_pid FROM performers
  WHERE performer_id <> $1 AND (over_at IS NULL OR NOT is_dead AND EXISTS (
    SELECT FROM duties d WHERE d.performer_id = performers.performer_id))`;
const END_DEAD = `UPDATE performers SET over_at = coalesce(over_at, clock_timestamp()), is_dead = true
  WHERE performer_id = $1`;
/** Ends the session of a dead process, if a proxy keeps it open. Only that session holds the lock of its performer. */
const END_SESSION = `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1
  AND classid = ${PERFORMER_LOCK} AND objid = $2 AND granted`;
const END_LOST = 'SELECT end_lost_performers($1)';
const TAKE_OVER = `UPDATE duties d SET performer_id = $1, from_dead = coalesce(d.from_dead, f.is_dead)
  FROM (
    SELECT c.run_id, c.kind, p.is_dead FROM duties c JOIN performers p USING (performer_id)
    WHERE p.over_at IS NOT NULL AND (p.is_dead OR p.over_at <= clock_timestamp() - $2::integer * interval '1 ms')
      AND c.tree_id <> ALL ($4::text[])
    LIMIT $3 FOR UPDATE OF c SKIP LOCKED
  ) AS f
  WHERE d.run_id = f.run_id AND d.kind = f.kind AND EXISTS (
    SELECT FROM performers p WHERE p.performer_id = $1 AND p.over_at IS NULL)`;
const CLAIMED = `SELECT d.tree_id, d.run_id, d.kind, d.from_dead AS is_dead FROM duties d
  WHERE d.performer_id = $1 AND d.from_dead IS NOT NULL AND d.tree_id <> ALL ($3::text[]) AND EXISTS (
    SELECT FROM performers p WHERE p.performer_id = $1 AND p.over_at IS NULL)
  ORDER BY d.tree_id, d.run_id LIMIT $2`;

/** See `SharedLedgerStore.claimDuties`. The statements run on the session of the worker. */
export async function claimDuties(
  send: SendStatement,
  performer: number,
  graceMs: number,
  limit: number,
  except: readonly string[],
): Promise<readonly ClaimedDuty[]> {
  for (const row of await send({ text: STANDING, values: [performer] })) await endIfDead(send, row);
  await send({ text: END_LOST, values: [performer] });
  await send({ text: TAKE_OVER, values: [performer, graceMs, limit, except] });
  return (await send({ text: CLAIMED, values: [performer, limit, except] })).map(toClaimedDuty);
}

async function endIfDead(send: SendStatement, row: Row): Promise<void> {
  const what = 'a performer';
  const identity = {
    host: textOf(row, 'host', what),
    pid: integerOf(row, 'pid', what),
    started: textOf(row, 'started', what),
  };
  if (!isKnownDead(identity)) return;
  await send({ text: END_SESSION, values: [row['backend_pid'], row['performer_id']] });
  await send({ text: END_DEAD, values: [row['performer_id']] });
}

const toClaimedDuty = (row: Row): ClaimedDuty => ({
  tree_id: textOf(row, 'tree_id', 'a duty'),
  run_id: textOf(row, 'run_id', 'a duty'),
  kind: row['kind'] === 'effect' ? 'effect' : 'caller',
  isDead: row['is_dead'] === 't',
});

const RELEASE = `DELETE FROM duties d USING unnest($2::text[], $3::text[]) AS r (kind, run_id)
  WHERE d.run_id = r.run_id AND d.kind = r.kind AND d.performer_id = $1`;

/** See `SharedLedgerStore.releaseDuties`. */
export async function releaseDuties(send: SendStatement, performer: number, duties: readonly Duty[]): Promise<void> {
  const values = [performer, duties.map(({ kind }) => kind), duties.map(({ run_id }) => run_id)];
  await send({ text: RELEASE, values });
}

/** Performers stay listed. Any that is over can have the duties until another worker claims them. */
const RETURN = `UPDATE duties d SET performer_id = f.performer_id
  FROM (SELECT performer_id FROM performers WHERE over_at IS NOT NULL ORDER BY is_dead DESC, over_at LIMIT 1) AS f,
    unnest($2::text[], $3::text[]) AS r (kind, run_id)
  WHERE d.run_id = r.run_id AND d.kind = r.kind AND d.performer_id = $1 AND d.from_dead IS NOT NULL`;

/** See `SharedLedgerStore.returnDuties`. */
export async function returnDuties(send: SendStatement, performer: number, duties: readonly Duty[]): Promise<void> {
  const values = [performer, duties.map(({ kind }) => kind), duties.map(({ run_id }) => run_id)];
  await send({ text: RETURN, values });
}

const OWN = `SELECT count(*) AS own FROM duties d JOIN unnest($2::text[], $3::text[]) AS r (kind, run_id)
  ON d.run_id = r.run_id AND d.kind = r.kind WHERE d.performer_id = $1`;

/** See `SharedLedgerStore.hasDuties`. */
export async function hasDuties(send: SendStatement, performer: number, duties: readonly Duty[]): Promise<boolean> {
  const values = [performer, duties.map(({ kind }) => kind), duties.map(({ run_id }) => run_id)];
  const [row = {}] = await send({ text: OWN, values });
  return integerOf(row, 'own', 'the number of duties') === duties.length;
}

const IS_STANDING = 'SELECT FROM performers WHERE performer_id = $1 AND over_at IS NULL';

/** Whether no other worker has declared the performer over. */
export const isStanding = async (send: SendStatement, performer: number): Promise<boolean> =>
  (await send({ text: IS_STANDING, values: [performer] })).length === 1;

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

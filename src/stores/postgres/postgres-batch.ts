// A batch as the parameters of commit_batch (sql/commit.sql): its records as arrays, and one buffer for all bytes of a
// kind, which the driver sends as they are.

import { InvariantError, LedgerError } from '../../core/errors.js';
import type { Batch, Integration, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import type { SharedBatch } from '../../engine/ports/ledger/shared-store.js';
import { errorCode } from '../../system/error-code.js';
import { recordArray, type CommitRecord } from './commit-records.js';
import { asLedgerError, isServerAnswer, type ReaderPool } from './postgres-connection.js';
import { ByteColumn } from './postgres-values.js';
import { markRow } from './postgres-marks.js';
import type { CaseContents, SealedSnapshot } from './postgres-contents.js';
import { quotasJson } from './workers/postgres-quotas.js';

/** What commit_batch and commit_shared have in common, by the names of the parameters. */
export type CommitParameters = ReturnType<typeof commitParameters>;

export function commitParameters(
  { trees }: Pick<Batch, 'trees'>,
  contents: CaseContents,
  sealed: readonly SealedSnapshot[],
) {
  const columns = { texts: new ByteColumn(), leaves: new ByteColumn(), snapshots: new ByteColumn() };
  // Before the contents and cases, which it collects.
  const appends = trees.map((append) => toAppend(append, contents, columns));
  const snapshots = sealed.map((snapshot) => toSnapshot(snapshot, columns.snapshots));
  return {
    p_appends: recordArray('commit_append', appends),
    p_contents: recordArray('commit_content', contents.records),
    p_marks: recordArray('commit_mark', marksOf(trees)),
    p_snapshots: recordArray('commit_snapshot', snapshots),
    p_cases: recordArray('commit_case', contents.cases),
    p_texts: columns.texts.toBuffer(),
    p_leaves: columns.leaves.toBuffer(),
    p_content_bytes: contents.toBuffer(),
    p_snapshot_bytes: columns.snapshots.toBuffer(),
  };
}

/** Calls commit_batch. */
export const commitQuery = (epoch: number, parameters: CommitParameters) =>
  namedCall('turnpike_commit', 'commit_batch', { p_epoch: epoch, p_all: true, ...parameters, p_quotas: null });

/** Calls commit_shared. */
export function sharedCommitQuery(batch: SharedBatch, parameters: CommitParameters) {
  const leases = batch.trees.flatMap(({ tree_id, taken }, at) =>
    taken.map(({ kind, run_id }) => ({ append: at + 1, kind, run_id, tree_id })),
  );
  const releases = batch.trees.flatMap(({ released }, at) => released.map((run_id) => ({ append: at + 1, run_id })));
  const quotas = quotasJson(batch);
  return namedCall('turnpike_commit_shared', 'commit_shared', {
    p_worker: batch.worker_id,
    p_leases: recordArray('commit_lease', leases),
    p_releases: recordArray('commit_release', releases),
    ...parameters,
    p_quotas: quotas === null ? null : JSON.stringify(quotas),
  });
}

/** Calls a function with parameters by name. Each session plans the statement once. */
const namedCall = (name: string, call: string, parameters: Readonly<Record<string, unknown>>) => ({
  name,
  text: (CALLS[call] ??= callText(call, Object.keys(parameters))),
  values: Object.values(parameters),
});

/** The statements by the function that they call: the names and order of its parameters never change. */
const CALLS: Record<string, string> = {};

const callText = (call: string, parameters: readonly string[]): string =>
  `SELECT * FROM ${call}(${parameters.map((parameter, at) => `${parameter} => $${at + 1}`).join(', ')})`;

function toAppend(
  { tree_id, from, entries, opened, ended, recoveryHint, artifacts }: TreeAppend,
  contents: CaseContents,
  { texts, leaves }: Readonly<Record<'texts' | 'leaves', ByteColumn>>,
): CommitRecord<'commit_append'> {
  const text = texts.add(Buffer.from(entries.map((entry) => entry.text).join('\n')));
  const hashes = leaves.add(Buffer.from(entries.map(({ leaf_hash }) => leaf_hash).join(''), 'hex'));
  return {
    tree_id,
    from_seq: from,
    entry_count: entries.length,
    case_id: opened?.case_id ?? null,
    ended,
    unfinished: recoveryHint?.unfinished ?? null,
    wake_at: recoveryHint?.wake_at ?? null,
    types: entries.map(({ entry }) => entry.type).join(' '),
    texts_at: text.at,
    texts_bytes: text.bytes,
    leaves_at: hashes.at,
    artifact_entries: artifacts.length === 0 ? null : artifacts.map(({ entry }) => entry),
    artifact_contents: artifacts.length === 0 ? null : artifacts.map((attached) => contents.add(attached)),
  };
}

const marksOf = (trees: readonly TreeAppend[]): readonly CommitRecord<'commit_mark'>[] =>
  trees.flatMap(({ proposals, inputs }, at) =>
    [...proposals, ...inputs].map((mark) => ({ append: at + 1, ...markRow(mark) })),
  );

function toSnapshot(
  { append, snapshot, case_id, key_no, content_sha256, stored }: SealedSnapshot,
  bytes: ByteColumn,
): CommitRecord<'commit_snapshot'> {
  const { seq, mac } = snapshot;
  const place = bytes.add(stored);
  const position = { stored_at: place.at, stored_bytes: place.bytes };
  return { append: append + 1, seq, mac, case_id, key_no, content_sha256, ...position };
}

// The integration of what commits have left pending.

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

// A batch as the parameters of commit_batch (sql/commit.sql): its records as arrays, and one buffer for all bytes of a
// kind, which the driver sends as they are.

import type { Batch, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import type { SharedBatch } from '../../engine/ports/ledger/shared-store.js';
import { recordArray, type CommitRecord } from './commit-records.js';
import { ByteColumn } from './values/byte-column.js';
import { markRow } from './postgres-marks.js';
import type { CaseContents, SealedSnapshot } from './postgres-contents.js';
import { quotasJson } from './workers/postgres-quotas.js';

/** What commit_batch and commit_shared have in common, by the names of the parameters. */
export interface CommitParameters {
  readonly p_appends: string;
  readonly p_contents: string;
  readonly p_marks: string;
  readonly p_snapshots: string;
  readonly p_cases: string;
  readonly p_texts: Buffer;
  readonly p_leaves: Buffer;
  readonly p_content_bytes: Buffer;
  readonly p_snapshot_bytes: Buffer;
}

export function commitParameters(
  { trees }: Pick<Batch, 'trees'>,
  contents: CaseContents,
  sealed: readonly SealedSnapshot[],
): CommitParameters {
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
  text: `SELECT * FROM ${call}(${Object.keys(parameters)
    .map((parameter, at) => `${parameter} => $${at + 1}`)
    .join(', ')})`,
  values: Object.values(parameters),
});

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

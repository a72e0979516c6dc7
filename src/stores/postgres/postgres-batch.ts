// The parameters of commit_batch (postgres-functions.ts): arrays with one element for each append, content, mark or
// snapshot, and one buffer for all bytes of a kind, which the driver sends as they are.

import type { Batch, InputMark, ProposalMark, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import { ByteColumn } from './values/byte-column.js';
import { markColumns } from './postgres-marks.js';
import type { CaseContents, SealedSnapshot } from './postgres-contents.js';

const HASH_BYTES = 32;

/** @returns the parameters of commit_batch, in their order */
export function commitParameters(
  { epoch, trees }: Batch,
  allOrNothing: boolean,
  contents: CaseContents,
  snapshots: readonly SealedSnapshot[],
): readonly unknown[] {
  return [
    epoch,
    allOrNothing,
    ...appendParameters(trees, contents),
    ...contents.parameters(),
    ...markParameters(trees),
    ...snapshotParameters(snapshots),
    contents.caseIds,
    contents.caseKeys,
    null,
  ];
}

function appendParameters(trees: readonly TreeAppend[], contents: CaseContents): readonly unknown[] {
  const texts = new ByteColumn();
  const leaves = new ByteColumn();
  const [refsAt, refs]: [number[], number[]] = [[], []];
  const [refEntries, refContents]: [number[], number[]] = [[], []];
  for (const { entries, artifacts } of trees) {
    texts.add(Buffer.from(entries.map(({ text }) => text).join('\n')));
    leaves.add(Buffer.from(entries.map(({ leaf_hash }) => leaf_hash).join(''), 'hex'));
    refsAt.push(refEntries.length + 1);
    refs.push(artifacts.length);
    for (const attached of artifacts) {
      refEntries.push(attached.entry);
      refContents.push(contents.add(attached));
    }
  }
  return [
    trees.map(({ tree_id }) => tree_id),
    trees.map(({ from }) => from),
    trees.map(({ entries }) => entries.length),
    trees.map(({ opened }) => opened?.case_id ?? null),
    trees.map(({ ended }) => ended),
    trees.map(({ recoveryHint }) => recoveryHint?.unfinished ?? null),
    trees.map(({ recoveryHint }) => recoveryHint?.wake_at ?? null),
    trees.map(({ entries }) => entries.map(({ entry }) => entry.type).join(' ')),
    texts.lengths,
    texts.at,
    leaves.at,
    texts.toBuffer(),
    leaves.toBuffer(),
    refsAt,
    refs,
    refEntries,
    refContents,
  ];
}

function markParameters(trees: readonly TreeAppend[]): readonly unknown[] {
  const [places, marks]: [number[], (InputMark | ProposalMark)[]] = [[], []];
  for (const [at, { proposals, inputs }] of trees.entries()) {
    marks.push(...proposals, ...inputs);
    while (places.length < marks.length) places.push(at + 1);
  }
  return [places, ...markColumns(marks)];
}

function snapshotParameters(snapshots: readonly SealedSnapshot[]): readonly unknown[] {
  const bytes = new ByteColumn();
  for (const { stored } of snapshots) bytes.add(stored);
  return [
    snapshots.map(({ append }) => append + 1),
    snapshots.map(({ snapshot }) => snapshot.seq),
    snapshots.map(({ snapshot }) => snapshot.mac),
    snapshots.map(({ case_id }) => case_id),
    snapshots.map(({ key_no }) => key_no),
    bytes.at,
    bytes.lengths,
    Buffer.concat(
      snapshots.map(({ content_sha256 }) => content_sha256),
      snapshots.length * HASH_BYTES,
    ),
    bytes.toBuffer(),
  ];
}

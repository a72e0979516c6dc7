// Moves the beginning of a ledger to an archive file (decision 0021). Nothing leaves the ledger before the file is
// durable, was read again, and holds all that leaves.

import type { LedgerVerdict } from '../../ledger/verdict.js';
import { LedgerError, UsageError } from '../../errors.js';
import { checkAnchor } from '../../ledger/check-anchor.js';
import { archiveNote, checkArchives } from '../../ledger/check-archives.js';
import { signCheckpoint } from '../../ledger/checkpoint.js';
import { EMPTY_HEAD } from '../../ledger/merkle.js';
import type { NoteSigner } from '../../ledger/signed-note.js';
import type { ArchiveDraft } from '../../ports/archive-file.js';
import type { HeadAnchor, LedgerStore, LogHead } from '../../ports/ledger-store.js';
import { boundaryBelow, type Boundary, type Holding } from './archive-boundary.js';
import { openEvidence } from './open-evidence.js';
import { verifyEvidence } from './verify-evidence.js';
import { writeEvidence } from './write-evidence.js';

/** A ledger whose writer's lock is taken, and which nobody else uses. */
export interface Archivable {
  readonly store: LedgerStore;
  readonly epoch: number;
  readonly anchor: HeadAnchor;
  readonly signer: NoteSigner;
}

export interface Archived {
  /** The entries that were archived: from the first to the one before the last number. None where the two are one. */
  readonly from: number;
  readonly to: number;
  readonly trees: number;
  /** Of the file; null where none was written. */
  readonly sha256: string | null;
  /** What keeps the boundary below what was asked for. */
  readonly held: Holding | null;
  /** Whether the room that was in use before was given back: what is archived is, in either case. */
  readonly tidied: boolean;
}

/** @throws LedgerError where the ledger is not what it was: then nothing of it may be moved */
export async function checkArchivable({ store, anchor }: Pick<Archivable, 'store' | 'anchor'>): Promise<void> {
  await checkArchives(store, anchor);
  await checkAnchor(store, anchor);
}

/**
 * Archives as much as can be up to `before`, of what the last checkpoint vouches for. Run records must have been
 * written: a tree without them stays.
 * @throws LedgerError, UsageError; then nothing has left the ledger
 */
export async function archiveLedger(
  ledger: Archivable,
  before: number | null,
  draft: () => Promise<ArchiveDraft>,
): Promise<Archived> {
  const { store, anchor } = ledger;
  const vouched = (await anchor.read())?.size ?? 0;
  if (before !== null && before > vouched) {
    throw usage(`the last checkpoint vouches for ${vouched} entries: more than those cannot be archived`);
  }
  const from = (await store.archives.parts()).at(-1)?.size ?? 0;
  if (before !== null && before < from) throw usage(`the first ${from} entries are archived already`);
  const boundary = await boundaryBelow(store, before ?? vouched);
  const { head, trees, held } = boundary;
  if (head.size === from) {
    return { from, to: from, trees: 0, sha256: null, held, tidied: await tidied(store) };
  }
  const file = await draft();
  try {
    const sha256 = await written(ledger, boundary, file);
    await settled(ledger, boundary, file, sha256);
    return { from, to: head.size, trees: trees.length, sha256, held, tidied: await tidied(store) };
  } finally {
    await file.close();
  }
}

/** Writes the file, and reads it again. @returns its hash */
async function written({ store, signer }: Archivable, { head }: Boundary, file: ArchiveDraft): Promise<string> {
  const note = signCheckpoint(head, signer);
  await writeEvidence(store, { ...head, note }, signer, (line) => file.write(line));
  const { file: lines, sha256 } = await file.read();
  const evidence = await openEvidence(lines, signer);
  const found = await evidence.head();
  const begin: LogHead | undefined = (await store.archives.parts()).at(-1);
  const fits =
    found.size === head.size && found.root === head.root && evidence.begin.root === (begin ?? EMPTY_HEAD).root;
  const verdict = await verifyEvidence(evidence, { replay: false });
  // What was erased stays erased in the archive: it is as whole as the ledger was.
  if (fits && verdict.verdict !== 'refused') return sha256;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message: `nothing was archived: ${whyNot(verdict)}` });
}

function whyNot(verdict: LedgerVerdict): string {
  const [first] = verdict.verdict === 'refused' ? verdict.problems : [];
  const what = first === undefined ? '' : ` (entry ${first.log_index ?? '?'}: ${first.message})`;
  return `what was read is not what the ledger was${what}; run \`turnpike ledger verify\``;
}

/** From here on the entries are in the file: it gets its name, and then they leave the ledger. */
async function settled(
  { store, epoch, anchor, signer }: Archivable,
  { head, trees, cases }: Boundary,
  file: ArchiveDraft,
  sha256: string,
): Promise<void> {
  // Twice, so that neither slot of the head file is of a time before: its entries will not be there to compare.
  const latest = await store.head();
  await anchor.write(latest);
  await anchor.write(latest);
  await file.settle();
  const part = { ...head, sha256, note: archiveNote(head, sha256, signer) };
  await store.archives.remove({ epoch, part, trees, cases });
}

const tidied = (store: LedgerStore): Promise<boolean> =>
  store.archives.tidy().then(
    () => true,
    () => false,
  );

const usage = (message: string): UsageError => new UsageError({ code: 'USAGE', message });

// The beginning of a log that was moved to archive files: what can be known of it without those. The store says how far
// it goes and what the rest goes on from; a note that the ledger's key has signed for just this must say the same. A
// checkpoint that somebody else has of the log will not do: it names no file.

import { LedgerError } from '../../errors.js';
import type { ArchivedPart } from '../../ports/ledger/archives.js';
import type { ExternalHeadStore, LedgerStore, LogHead } from '../../ports/ledger/ledger-store.js';
import { checkpointText } from '../proof/checkpoint.js';
import type { LedgerFinding } from './ledger-problem.js';
import { isHead } from '../proof/merkle.js';
import { signNote, type NoteSigner } from '../proof/signed-note.js';

/** What may open a note; null where heads are not signed. */
export type NoteOpener = ((note: string) => Pick<LogHead, 'size' | 'root'> | null) | null;

/** The note that lets the beginning of a log be archived: a checkpoint with one line more, which names the file. */
export const signArchiveNote = (
  { size, root }: Pick<LogHead, 'size' | 'root'>,
  sha256: string,
  signer: NoteSigner,
): string => signNote(`${checkpointText({ origin: signer.name, size, root })}${fileLine(sha256)}\n`, signer);

const fileLine = (sha256: string): string => `archive sha256:${sha256}`;

/** What is wrong with what a store says is archived. */
export function* checkArchivedParts(parts: readonly ArchivedPart[], openNote: NoteOpener): Iterable<LedgerFinding> {
  let previousSize = 0;
  for (const part of parts) {
    const { size } = part;
    if (!isHead(part) || size <= previousSize) {
      yield { rule: 'archive.head', message: `what the log goes on from at size ${size} is no head of a log` };
    } else if (openNote !== null && !isSignedPart(part, openNote)) {
      const message = `that ${size} entries were archived, the key of this ledger has not signed`;
      yield { rule: 'archive.unsigned', message };
    }
    previousSize = size;
  }
}

/** The lines of a note are those that were signed, as far as the empty one. */
function isSignedPart({ size, root, sha256, note }: ArchivedPart, openNote: NonNullable<NoteOpener>): boolean {
  const head = note === null ? null : openNote(note);
  return head?.size === size && head.root === root && note?.split('\n')[3] === fileLine(sha256);
}

/**
 * Holds what a store says is archived against the key of the ledger, and against where its entries begin.
 * @throws LedgerError LEDGER_TAMPERED
 */
export async function checkArchives(store: LedgerStore, headStore: ExternalHeadStore): Promise<void> {
  const parts = await store.archives.parts();
  const [finding] = checkArchivedParts(parts, headStore.opens ?? null);
  if (finding !== undefined) throw tamperedError(finding.message);
  const begin = parts.at(-1)?.size ?? 0;
  for await (const { log_index } of store.log(begin)) {
    if (log_index === begin) return;
    throw tamperedError(`the entries begin at ${log_index}, and ${begin} were archived`);
  }
}

const tamperedError = (message: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `${message}: restore the ledger from a backup, and run \`turnpike ledger verify\``,
  });

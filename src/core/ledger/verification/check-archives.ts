// Checks the archived beginning of a log without its archive files. The store reports how many entries are archived and
// the head from which the log continues. A note that the ledger's key signed for exactly these values must confirm it.
// A checkpoint of the log that a client or a witness has is not enough: it names no archive file.

import { nameInLedger } from '../../contract/entry-name.js';
import { LedgerError } from '../../errors.js';
import type { ArchivedPart } from '../readable-ledger.js';
import type { ReadableHead, ReadableLedger, LogHead } from '../readable-ledger.js';
import { checkpointText } from '../proof/checkpoint.js';
import type { LedgerFinding } from './ledger-problem.js';
import { isHead } from '../proof/merkle.js';
import { signNote, type NoteSigner } from '../proof/signed-note.js';

/** Verifies and opens a note; null if heads are not signed. */
export type NoteOpener = ((note: string) => Pick<LogHead, 'size' | 'root'> | null) | null;

/**
 * Signs the note that permits archiving the beginning of the log: a checkpoint with one more line, which names the
 * file.
 */
export const signArchiveNote = (
  { size, root }: Pick<LogHead, 'size' | 'root'>,
  sha256: string,
  signer: NoteSigner,
): string => signNote(`${checkpointText({ origin: signer.name, size, root })}${fileLine(sha256)}\n`, signer);

const fileLine = (sha256: string): string => `archive sha256:${sha256}`;

/** Reports what is wrong with the store's list of archived parts. */
export function* checkArchivedParts(parts: readonly ArchivedPart[], openNote: NoteOpener): Iterable<LedgerFinding> {
  let previousSize = 0;
  for (const part of parts) {
    const { size } = part;
    if (!isHead(part) || size <= previousSize) {
      yield { rule: 'archive.head', message: `the head of the archived part that ends at size ${size} is invalid` };
    } else if (openNote !== null && !isSignedPart(part, openNote)) {
      const message = `the key of this ledger has not signed the archived part that ends at size ${size}`;
      yield { rule: 'archive.unsigned', message };
    }
    previousSize = size;
  }
}

/** A note's lines before its empty line are the signed ones. */
function isSignedPart({ size, root, sha256, note }: ArchivedPart, openNote: NonNullable<NoteOpener>): boolean {
  const head = note === null ? null : openNote(note);
  return head?.size === size && head.root === root && note?.split('\n')[3] === fileLine(sha256);
}

/**
 * Verifies the store's list of archived parts with the ledger's key, and compares it with the first entry of the store.
 * @throws LedgerError LEDGER_TAMPERED
 */
export async function checkArchives(store: ReadableLedger, headStore: ReadableHead): Promise<void> {
  const parts = await store.archives.parts();
  const [finding] = checkArchivedParts(parts, headStore.openNote ?? null);
  if (finding !== undefined) throw tamperedError(finding.message);
  const begin = parts.at(-1)?.size ?? 0;
  for await (const { log_index } of store.log(begin)) {
    if (log_index === begin) return;
    throw tamperedError(`the log begins at entry ${nameInLedger(log_index)}, but ${begin} entries were archived`);
  }
}

const tamperedError = (message: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `${message}: restore the ledger from a backup, and run \`turnpike ledger verify\``,
  });

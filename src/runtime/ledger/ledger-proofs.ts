// Creates proofs about a ledger from its store. The store is not trusted: its data must lead to the root of the signed
// checkpoint, or no proof is made.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { LedgerError, usageError } from '../../core/errors.js';
import type { Checkpoint } from '../../core/ledger/proof/checkpoint.js';
import { leafHash } from '../../core/ledger/proof/merkle.js';
import {
  consistencyRanges,
  verifyConsistency,
  inclusionRanges,
  verifyInclusion,
  rangeHashes,
  type LeafRange,
} from '../../core/ledger/proof/merkle-proof.js';
import { keyNotesOf } from '../../core/ledger/proof/key-history.js';
import { consistencyProofFile, entryProofFile } from './proof-file.js';
import type { NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import type { ExternalHead, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { JoinedLog } from './joined-log.js';

type ProofLog = Pick<JoinedLog, 'begin' | 'log'>;
type SignedHead = ExternalHead & { readonly note: string };

/** The head with its signed note. @throws UsageError if it is not signed */
export function requireSignedHead(head: ExternalHead | null): SignedHead {
  if (head?.note !== undefined) return { ...head, note: head.note };
  throw usageError('the heads of this ledger are not signed: open it once for writing');
}

/** The file that proves that an entry is in the log. @throws UsageError for an entry above the checkpoint */
export async function proveEntry(log: ProofLog, head: ExternalHead | null, index: number): Promise<string> {
  const signed = requireSignedHead(head);
  const { size, root, note } = signed;
  if (index >= size) {
    const message = `the last checkpoint covers ${size} entries, numbered from 0: it has no entry ${nameInLedger(index)}`;
    throw usageError(message);
  }
  refuseArchived(log, index, `entry ${nameInLedger(index)}`);
  const text = await readEntryText(log, index);
  const proof = await proveRanges(log, signed, inclusionRanges(index, size));
  if (!verifyInclusion({ index, size, root, leaf_hash: leafHash(text), proof })) throw mismatchError();
  return entryProofFile({ text, index, proof, note });
}

/** The file that proves that the ledger extends an earlier checkpoint. @throws LedgerError if it does not */
export async function proveConsistency(
  log: ProofLog,
  head: ExternalHead | null,
  older: Checkpoint & { readonly note: string },
  key: NoteVerifier,
): Promise<string> {
  const newer = requireSignedHead(head);
  const proof = await proveExtension(log, older, newer);
  return consistencyProofFile({ older: older.note, newer: newer.note, ...keyNotesOf(key), proof: [...proof] });
}

/** The consistency proof between two heads of one log. @throws LedgerError if the log does not lead to both */
export async function proveExtension(
  log: ProofLog,
  older: Pick<LogHead, 'size' | 'root'>,
  newer: Pick<LogHead, 'size' | 'root'>,
): Promise<readonly string[]> {
  if (older.size > newer.size) throw mismatchError();
  refuseArchived(log, older.size, `the checkpoint at size ${older.size}`);
  const proof = await proveRanges(log, newer, consistencyRanges(older.size, newer.size));
  if (!verifyConsistency({ older, newer, proof })) throw mismatchError();
  return proof;
}

/**
 * The hashes of these ranges. It reads all hashes, also if the proof needs few of them, to verify the root of the head.
 * @throws LedgerError if the root differs
 */
async function proveRanges(
  log: ProofLog,
  { size, root }: ExternalHead,
  ranges: readonly LeafRange[],
): Promise<readonly string[]> {
  const hashes = await rangeHashes([...ranges, { start: 0, end: size }], readLeaves(log, size), log.begin);
  if (hashes.at(-1) !== root) throw mismatchError();
  return hashes.slice(0, -1);
}

async function* readLeaves({ log, begin }: ProofLog, size: number): AsyncIterable<string> {
  let count = begin.size;
  for await (const { leaf_hash } of log(begin.size)) {
    yield leaf_hash;
    count += 1;
  }
  if (count < size) throw mismatchError();
}

/** Of the entries before the beginning of the log only the combined hash is known. */
function refuseArchived({ begin }: ProofLog, size: number, what: string): void {
  if (size >= begin.size) return;
  const message = `${what} lies in an archive, which ends at ${begin.size}: name the archives with --archive`;
  throw new LedgerError({ code: 'LEDGER_ARCHIVED', message });
}

async function readEntryText(log: ProofLog, index: number): Promise<string> {
  for await (const { log_index, text } of log.log(index)) if (log_index === index) return text;
  throw mismatchError();
}

/** The log does not lead to the root of a signed checkpoint. */
export const mismatchError = (): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: 'the ledger is not the one that the checkpoint vouches for: run `turnpike ledger verify`',
  });

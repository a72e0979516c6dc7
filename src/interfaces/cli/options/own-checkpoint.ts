// Reads checkpoints that the ledger of the home directory has signed, and writes proofs that begin or end at them.

import { resolve } from 'node:path';
import { writePrivateFile } from '../../../system/files/private-file.js';
import { readSmallFile } from '../../../system/files/small-file.js';
import { errorCode } from '../../../system/error-code.js';
import { LedgerError, usageError } from '../../../core/errors.js';
import { openCheckpoint, type Checkpoint } from '../../../core/ledger/proof/checkpoint.js';
import { NOTE_BYTES_MAX, type NoteVerifier } from '../../../core/ledger/proof/signed-note.js';
import { readLedgerVerifier } from '../../../home/ledger-key.js';
import { explainFork } from '../../../runtime/ledger/recorded-restores.js';
import { quoteArgument } from '../arguments.js';
import type { CommandArguments } from '../command.js';
import type { Io } from '../io.js';
import { homeOf, type OpenLedger } from './folders.js';

export interface OwnCheckpoint {
  readonly older: Checkpoint;
  readonly note: string;
  readonly key: NoteVerifier;
}

/** The checkpoint in a file. @throws UsageError unless the key of this ledger has signed it */
export function readOwnCheckpoint(file: string, args: CommandArguments, io: Io): OwnCheckpoint {
  const path = resolve(io.cwd, file);
  const note = readSmallFile(path, { bytesMax: NOTE_BYTES_MAX });
  if (note === null) throw usageError(`${path} does not exist`);
  const key = readLedgerVerifier(homeOf(args, io).ledgerKey);
  const older = key === null ? null : openCheckpoint(note, key);
  if (key !== null && older !== null) return { older, note: Buffer.from(note).toString('utf8'), key };
  throw args.usageError(`${quoteArgument(file)} is not a checkpoint signed with the key of this ledger`);
}

/**
 * Runs `work` about an older checkpoint of the ledger.
 * @throws LedgerError LEDGER_TAMPERED if the ledger does not extend it; the message names the restore that explains it
 */
export async function explainingFork<T>(
  store: OpenLedger['store'],
  older: Pick<Checkpoint, 'size' | 'root'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'LEDGER_TAMPERED') throw error;
    const message = await explainFork(store, older);
    throw message === null ? error : new LedgerError({ code: 'LEDGER_TAMPERED', message, cause: error });
  }
}

/** A proof may contain an entry, so the file is private like the ledger. */
export function writeProofFile(path: string, proof: string): void {
  try {
    writePrivateFile(path, proof);
  } catch (error) {
    throw usageError(`cannot write ${path}: ${errorCode(error)}`);
  }
}

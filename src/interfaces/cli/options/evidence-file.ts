// Opens an evidence bundle for a command that can also work on a home directory.

import { usageError, LedgerError } from '../../../core/errors.js';
import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { openLineFile } from '../../../system/files/open-line-file.js';
import { readHistoryFile } from '../../../stores/keys/key-history-file.js';
import { readSmallFile } from '../../../system/files/small-file.js';
import { keysOf, readKeyHistory } from '../../../core/ledger/proof/key-history.js';
import { noteVerifier, type NoteVerifier, NOTE_BYTES_MAX } from '../../../core/ledger/proof/signed-note.js';
import type { EvidenceBundle } from '../../../runtime/ledger/evidence-bundle.js';
import { openEvidence } from '../../../runtime/ledger/open-evidence.js';
import { countBundleReads, countLines } from '../../../runtime/ledger/count-reads.js';
import { quoteArgument } from '../arguments.js';
import type { ArgumentsOf, CommandOption, CommandArguments } from '../command.js';
import type { Io } from '../io.js';
import { progressFor } from '../progress-bar.js';
import { escapeText } from '../text/terminal.js';
import { hashFile } from '../../../system/files/hash-file.js';
import { integratedLog } from '../../../runtime/ledger/integrated-log.js';
import { EMPTY_HEAD } from '../../../core/ledger/proof/merkle.js';
import type { LineFile } from '../../../engine/ports/ledger/line-file.js';
import {
  checkArchiveChain,
  joinLogs,
  sortArchives,
  type JoinedLog,
  type OpenedArchive,
} from '../../../runtime/ledger/joined-log.js';
import { readLedgerVerifier } from '../../../home/ledger-key.js';
import { homeOf, type OpenLedger } from './folders.js';
import { writePrivateFile } from '../../../system/files/private-file.js';
import { errorCode } from '../../../system/error-code.js';
import { openCheckpoint, type Checkpoint } from '../../../core/ledger/proof/checkpoint.js';
import { explainFork } from '../../../runtime/ledger/recorded-restores.js';

const KEY_BYTES_MAX = 1_024;

/** The key that must have signed, and where the keys are that it has replaced or that have replaced it. */
export const KEY_OPTIONS = [
  {
    name: 'key',
    value: 'KEY',
    help: 'the public key (name+hash+base64) that must have signed, or a file that contains it',
  },
  {
    name: 'key-history',
    value: 'FILE',
    help: 'key-history.list of the key folder: also accept earlier and later keys of this log',
  },
] as const satisfies readonly CommandOption[];

type KeyArguments = ArgumentsOf<typeof KEY_OPTIONS>;

/**
 * The key of `--key`, or null if it was not given.
 * @throws UsageError for an invalid key
 */
export function readTrustedKey(
  { values: { key: text, keyHistory: history } }: KeyArguments,
  io: Io,
): NoteVerifier | null {
  if (text === undefined && history !== undefined) throw usageError('--key-history needs --key: a key that you trust');
  if (text === undefined) return null;
  const inFile = text.includes('+') ? null : readSmallFile(resolve(io.cwd, text), { bytesMax: KEY_BYTES_MAX });
  const key = noteVerifier(inFile === null ? text : Buffer.from(inFile).toString('utf8').trim());
  if (key !== null) return history === undefined ? key : withHistory(key, resolve(io.cwd, history));
  throw usageError(`--key: ${quoteArgument(text)} is neither a public key of a ledger nor a file that contains one`);
}

/** @throws UsageError unless the file is a history that contains the key */
function withHistory(key: NoteVerifier, path: string): NoteVerifier {
  const history = readKeyHistory(readHistoryFile(path));
  if (history === null) throw usageError(`--key-history: ${path} contains no rotation`);
  if (typeof history === 'string') throw usageError(`--key-history: ${history}`);
  if (keysOf(history.verifier).some(({ vkey }) => vkey === key.vkey)) return history.verifier;
  throw usageError(`--key-history: the key of --key is not in ${path}`);
}

/**
 * Opens the bundle in a file for `work`. Without `--key`, the command trusts the bundle's own key and says so.
 * @throws LedgerError LEDGER_TAMPERED for an incomplete or changed bundle; UsageError
 */
export async function withEvidenceBundle<T>(
  name: string,
  args: KeyArguments,
  io: Io,
  work: (bundle: EvidenceBundle) => Promise<T>,
) {
  const trusted = readTrustedKey(args, io);
  const path = resolve(io.cwd, name);
  const progress = progressFor(args, io);
  const label = `reading ${escapeText(basename(path))}`;
  const file = await openLineFile(path);
  try {
    const opened = await openEvidence(countLines(file, progress, label, statSync(path).size), trusted);
    const bundle = countBundleReads(opened, progress, label);
    if (trusted === null) {
      const key = `${bundle.key.name}+${bundle.key.key_hash}`;
      await io.stderr.writeLine(
        `verified with the key in the bundle itself, ${key}: compare it with a key from another source (--key)`,
      );
    }
    return await work(bundle);
  } finally {
    await file.close();
  }
}

/** Whether the operand of a command that takes a run id or a file name is a file name. */
export const isFileName = (operand: string): boolean => !/^(?:run|ses)_[\w.]+$/.test(operand);

export const ARCHIVE_OPTION = {
  name: 'archive',
  value: 'FILE',
  multiple: true,
  help: 'also read this output of `ledger archive`; may be repeated',
} as const satisfies CommandOption;

/**
 * Opens the archives that the arguments name, with the key of the home, for `work`.
 * @throws LedgerError LEDGER_TAMPERED for an incomplete archive or one of another key; UsageError
 */
export async function withOpenArchives<T>(
  args: ArgumentsOf<readonly [typeof ARCHIVE_OPTION]>,
  io: Io,
  work: (archives: readonly OpenedArchive[]) => Promise<T>,
): Promise<T> {
  const names = args.values.archive;
  const key = names.length === 0 ? null : readLedgerVerifier(homeOf(args, io).ledgerKey);
  if (names.length > 0 && key === null)
    throw usageError('this home directory has no ledger key, so it has no archives');
  const files: LineFile[] = [];
  const archives: OpenedArchive[] = [];
  try {
    for (const name of names) {
      const path = resolve(io.cwd, name);
      const file = await openLineFile(path);
      files.push(file);
      const label = `reading ${escapeText(basename(path))}`;
      const counted = countLines(file, progressFor(args, io), label, statSync(path).size);
      const evidence = await openEvidence(counted, key).catch((error: unknown) => {
        if (!(error instanceof LedgerError)) throw error;
        throw new LedgerError({ code: error.code, message: `${name}: ${error.message}`, cause: error });
      });
      progressFor(args, io).begin({ label: `hashing ${escapeText(basename(path))}`, unit: 'bytes', total: null });
      archives.push({ name, sha256: await hashFile(path), evidence });
    }
    return await work(archives);
  } finally {
    for (const file of files) await file.close();
  }
}

/**
 * The log together with its named archives.
 * @throws LedgerError LEDGER_TAMPERED for archives of another log
 */
export async function joinWholeLog(
  { store }: Pick<OpenLedger, 'store'>,
  archives: readonly OpenedArchive[],
): Promise<JoinedLog> {
  const parts = await store.archives.parts();
  const chain = sortArchives(archives);
  for await (const { message } of checkArchiveChain(chain, parts)) {
    throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
  }
  return joinLogs(chain, integratedLog(store), parts.at(-1) ?? EMPTY_HEAD);
}

interface OwnCheckpoint {
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

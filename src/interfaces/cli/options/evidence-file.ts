// Opens an evidence bundle for a command that can also work on a home directory.

import { usageError } from '../../../core/errors.js';
import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { openLineFile } from '../../../system/files/open-line-file.js';
import { readHistoryFile } from '../../../stores/keys/key-history-file.js';
import { readSmallFile } from '../../../system/files/small-file.js';
import { keysOf, readKeyHistory } from '../../../core/ledger/proof/key-history.js';
import { noteVerifier, type NoteVerifier } from '../../../core/ledger/proof/signed-note.js';
import type { EvidenceBundle } from '../../../runtime/ledger/evidence-bundle.js';
import { openEvidence } from '../../../runtime/ledger/open-evidence.js';
import { countBundleReads, countLines } from '../../../runtime/ledger/count-reads.js';
import { quoteArgument } from '../arguments.js';
import type { CommandArguments, CommandOption } from '../command.js';
import { type Io } from '../io.js';
import { progressFor } from '../progress-bar.js';
import { escapeText } from '../text/terminal.js';

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

/**
 * The key of `--key`, or null if it was not given.
 * @throws UsageError for an invalid key
 */
export function readTrustedKey(args: CommandArguments, io: Io): NoteVerifier | null {
  const text = args.text('key');
  const history = args.text('key-history');
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
  args: CommandArguments,
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

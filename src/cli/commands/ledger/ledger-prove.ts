import { resolve } from 'node:path';
import { writePrivateFile } from '../../../adapters/files/private-file.js';
import { readSmallFile } from '../../../adapters/files/small-file.js';
import { errorCode } from '../../../adapters/system/error-code.js';
import { openCheckpoint } from '../../../ledger/proof/checkpoint.js';
import { LedgerError, usageError } from '../../../errors.js';
import { integratedLog } from '../../../ledger/integrated-log.js';
import { EMPTY_HEAD } from '../../../ledger/proof/merkle.js';
import { NOTE_BYTES_MAX } from '../../../ledger/proof/signed-note.js';
import {
  checkArchiveChain,
  sortArchives,
  joinLogs,
  type JoinedLog,
  type OpenedArchive,
} from '../../../runtime/evidence/joined-log.js';
import { explainFork } from '../../../runtime/home/backup/record-restore.js';
import { readLedgerVerifier } from '../../../runtime/home/ledger-key.js';
import { proveEntry, proveConsistency } from '../../../runtime/ledger/ledger-proofs.js';
import { ARCHIVE_OPTION, withOpenArchives } from '../../options/archives.js';
import { quoteArgument, commandUsageError } from '../../arguments.js';
import type { CommandArguments, CliCommand, ExitCode } from '../../command.js';
import { homeOf, withLedger, type OpenLedger } from '../../options/folders.js';
import { exitOneIfTampered } from '../../exit-code.js';
import { type Io } from '../../io.js';

/** `turnpike ledger prove`: writes an inclusion or consistency proof for anyone who has the public key. */
export const ledgerProve: CliCommand = {
  name: 'ledger prove',
  access: 'read',
  summary: 'Write a proof that an entry is in the ledger, or that the ledger extends a checkpoint',
  operands: { usage: '[SEQ]', min: 0, max: 1 },
  options: [
    { name: 'from', value: 'FILE', help: 'prove that the ledger extends the signed checkpoint in FILE' },
    ARCHIVE_OPTION,
    { name: 'out', value: 'FILE', help: 'write the proof to FILE instead of standard output' },
  ],
  notes: [
    'SEQ is the index of an entry in the log, from 0, as `ledger verify` prints it. The proof contains the entry, so',
    'every recipient can read it. `ledger check-proof` verifies the proof with nothing but the public key',
    '(keys/ledger.vkey).',
  ],
  async run(args, io) {
    const [seq] = args.operands;
    const from = args.text('from');
    if ((seq === undefined) === (from === undefined)) throw commandUsageError(ledgerProve, 'give either SEQ or --from');
    return exitOneIfTampered(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const proof = await withOpenArchives(args, io, async (archives) => {
          const log = await joinWholeLog(ledger, archives);
          return seq === undefined
            ? proveFromCheckpoint(ledger, log, from ?? '', args, io)
            : proveEntryAt(ledger, log, seq);
        });
        const out = args.text('out');
        if (out === undefined) await io.stdout.write(proof);
        else writeOutput(resolve(io.cwd, out), proof);
        return 0;
      }),
    );
  },
};

/** The proof contains the entry, so the file is private like the ledger. */
function writeOutput(path: string, proof: string): void {
  try {
    writePrivateFile(path, proof);
  } catch (error) {
    throw usageError(`cannot write ${path}: ${errorCode(error)}`);
  }
}

/**
 * The log together with its named archives.
 * @throws LedgerError LEDGER_TAMPERED for archives of another log
 */
async function joinWholeLog({ store }: OpenLedger, archives: readonly OpenedArchive[]): Promise<JoinedLog> {
  const parts = await store.archives.parts();
  const chain = sortArchives(archives);
  for await (const { message } of checkArchiveChain(chain, parts)) {
    throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
  }
  return joinLogs(chain, integratedLog(store), parts.at(-1) ?? EMPTY_HEAD);
}

async function proveEntryAt({ anchor }: OpenLedger, log: JoinedLog, seq: string): Promise<string> {
  if (!/^(?:0|[1-9]\d{0,14})$/.test(seq))
    throw commandUsageError(ledgerProve, `SEQ must be the index of an entry, not ${quoteArgument(seq)}`);
  return proveEntry(log, await anchor.read(), Number(seq));
}

async function proveFromCheckpoint(
  { anchor, store }: OpenLedger,
  log: JoinedLog,
  file: string,
  args: CommandArguments,
  io: Io,
): Promise<string> {
  const path = resolve(io.cwd, file);
  const note = readSmallFile(path, { bytesMax: NOTE_BYTES_MAX });
  if (note === null) throw usageError(`${path} does not exist`);
  const key = readLedgerVerifier(homeOf(args, io).ledgerKey);
  const older = key === null ? null : openCheckpoint(note, key);
  if (key === null || older === null)
    throw commandUsageError(
      ledgerProve,
      `${quoteArgument(file)} is not a checkpoint signed with the key of this ledger`,
    );
  try {
    return await proveConsistency(
      log,
      await anchor.read(),
      { ...older, note: Buffer.from(note).toString('utf8') },
      key,
    );
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'LEDGER_TAMPERED') throw error;
    const message = await explainFork(store, older);
    throw message === null ? error : new LedgerError({ code: 'LEDGER_TAMPERED', message, cause: error });
  }
}

import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { readSmallFile } from '../../adapters/small-file.js';
import { openCheckpoint } from '../../ledger/checkpoint.js';
import { LedgerError } from '../../errors.js';
import { integratedLog } from '../../ledger/integrated.js';
import { EMPTY_HEAD } from '../../ledger/merkle.js';
import { NOTE_BYTES_MAX } from '../../ledger/signed-note.js';
import {
  chainFindings,
  inOrder,
  joinedLog,
  type JoinedLog,
  type OpenArchive,
} from '../../runtime/evidence/joined-log.js';
import { readLedgerVerifier } from '../../runtime/ledger-key.js';
import { proveEntry, proveGoingOn } from '../../runtime/ledger-proofs.js';
import { ARCHIVE_OPTION, withArchives } from '../archives.js';
import { quoted, wrong } from '../arguments.js';
import type { Args, Command, ExitCode } from '../command.js';
import { homeOf, withLedger, type OpenLedger } from '../folders.js';
import { tamperedIsOne } from '../exit-code.js';
import { usage, type Io } from '../io.js';

/** `turnpike ledger prove`: a file that convinces whoever has the public key. */
export const ledgerProve: Command = {
  name: 'ledger prove',
  summary: 'Write a proof that an entry is in the ledger, or that the ledger goes on from a checkpoint',
  operands: { usage: '[SEQ]', min: 0, max: 1 },
  options: [
    { name: 'from', value: 'FILE', help: 'prove that the ledger goes on from the signed checkpoint in FILE' },
    ARCHIVE_OPTION,
    { name: 'out', value: 'FILE', help: 'write the proof to FILE instead of standard output' },
  ],
  notes: [
    'SEQ is the place of an entry in the log, from 0, as `ledger verify` names it. The proof holds the entry, so whoever',
    'gets it reads it. It is checked by `ledger check-proof` with the public key (keys/ledger.vkey) and nothing else.',
  ],
  async run(args, io) {
    const [seq] = args.operands;
    const from = args.text('from');
    if ((seq === undefined) === (from === undefined)) throw wrong(ledgerProve, 'name either SEQ or --from');
    return tamperedIsOne(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const proof = await withArchives(args, io, async (archives) => {
          const log = await wholeLog(ledger, archives);
          return seq === undefined ? fromCheckpoint(ledger, log, from ?? '', args, io) : ofEntry(ledger, log, seq);
        });
        const out = args.text('out');
        if (out === undefined) await io.stdout.write(proof);
        else await writeFile(resolve(io.cwd, out), proof);
        return 0;
      }),
    );
  },
};

/** The log with the archives of it that were named. @throws LedgerError LEDGER_TAMPERED for what are none */
async function wholeLog({ store }: OpenLedger, archives: readonly OpenArchive[]): Promise<JoinedLog> {
  const parts = await store.archives.parts();
  const chain = inOrder(archives);
  for await (const { message } of chainFindings(chain, parts)) {
    throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
  }
  return joinedLog(chain, integratedLog(store), parts.at(-1) ?? EMPTY_HEAD);
}

async function ofEntry({ anchor }: OpenLedger, log: JoinedLog, seq: string): Promise<string> {
  if (!/^(?:0|[1-9]\d{0,14})$/.test(seq)) throw wrong(ledgerProve, `${quoted(seq)} is no place in the log`);
  return proveEntry(log, await anchor.read(), Number(seq));
}

async function fromCheckpoint(
  { anchor }: OpenLedger,
  log: JoinedLog,
  file: string,
  args: Args,
  io: Io,
): Promise<string> {
  const path = resolve(io.cwd, file);
  const note = readSmallFile(path, { bytesMax: NOTE_BYTES_MAX });
  if (note === null) throw usage(`there is no file ${path}`);
  const key = readLedgerVerifier(homeOf(args, io).ledgerKey);
  const older = key === null ? null : openCheckpoint(note, key);
  if (older === null)
    throw wrong(ledgerProve, `${quoted(file)} is no checkpoint that the key of this ledger has signed`);
  return proveGoingOn(log, await anchor.read(), { ...older, note: Buffer.from(note).toString('utf8') });
}

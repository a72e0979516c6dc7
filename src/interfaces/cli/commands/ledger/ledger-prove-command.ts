import { resolve } from 'node:path';
import type { JoinedLog } from '../../../../runtime/ledger/joined-log.js';
import { proveEntry, proveConsistency } from '../../../../runtime/ledger/ledger-proofs.js';
import { ARCHIVE_OPTION, joinWholeLog, withOpenArchives } from '../../options/archive-options.js';
import { commandUsageError } from '../../arguments.js';
import type { CommandArguments, CliCommand, ExitCode } from '../../command.js';
import { explainingFork, readOwnCheckpoint, writeProofFile } from '../../options/own-checkpoint.js';
import { ENTRY_NOTES, findLogIndex } from '../../options/entry-name-argument.js';
import { withLedger, type OpenLedger } from '../../options/folders.js';
import { exitOneIfTampered } from '../../exit-code.js';
import { type Io } from '../../io.js';

/** `turnpike ledger prove`: writes an inclusion or consistency proof for anyone who has the public key. */
export const ledgerProve: CliCommand = {
  name: 'ledger prove',
  access: 'read',
  summary: 'Write a proof that an entry is in the ledger, or that the ledger extends a checkpoint',
  operands: { usage: '[ENTRY]', min: 0, max: 1 },
  options: [
    { name: 'from', value: 'FILE', help: 'prove that the ledger extends the signed checkpoint in FILE' },
    ARCHIVE_OPTION,
    { name: 'out', value: 'FILE', help: 'write the proof to FILE instead of standard output' },
  ],
  notes: [
    ...ENTRY_NOTES,
    'The proof contains the entry, so every recipient can read it. `ledger check-proof` verifies the proof with nothing',
    'but the public key (keys/ledger.vkey).',
  ],
  async run(args, io) {
    const [entry] = args.operands;
    const from = args.text('from');
    if ((entry === undefined) === (from === undefined))
      throw commandUsageError(ledgerProve, 'give either ENTRY or --from');
    return exitOneIfTampered(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const proof = await withOpenArchives(args, io, async (archives) => {
          const log = await joinWholeLog(ledger, archives);
          return entry === undefined
            ? proveFromCheckpoint(ledger, log, from ?? '', args, io)
            : proveEntryAt(ledger, log, entry);
        });
        const out = args.text('out');
        if (out === undefined) await io.stdout.write(proof);
        else writeProofFile(resolve(io.cwd, out), proof);
        return 0;
      }),
    );
  },
};

async function proveEntryAt({ externalHeadStore, store }: OpenLedger, log: JoinedLog, text: string): Promise<string> {
  const log_index = await findLogIndex(text, { ...log, trees: () => store.trees() });
  return proveEntry(log, await externalHeadStore.read(), log_index);
}

async function proveFromCheckpoint(
  { externalHeadStore, store }: OpenLedger,
  log: JoinedLog,
  file: string,
  args: CommandArguments,
  io: Io,
): Promise<string> {
  const { older, note, key } = readOwnCheckpoint(file, ledgerProve, args, io);
  return explainingFork(store, older, async () =>
    proveConsistency(log, await externalHeadStore.read(), { ...older, note }, key),
  );
}

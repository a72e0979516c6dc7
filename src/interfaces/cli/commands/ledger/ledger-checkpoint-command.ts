import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { readLedgerVerifier } from '../../../../home/ledger-key.js';
import { requireSignedHead } from '../../../../runtime/ledger/ledger-proofs.js';
import { NO_OPERANDS, type CliCommand, type ExitCode } from '../../command.js';
import { homeOf, withLedger } from '../../options/folders.js';
import { jsonLine } from '../../text/terminal.js';

/** `turnpike ledger checkpoint`: prints a signed checkpoint of the ledger. */
export const ledgerCheckpoint: CliCommand = {
  name: 'ledger checkpoint',
  access: 'read',
  summary: 'Print the last signed checkpoint; a copy stored elsewhere exposes any later change of what it covers',
  operands: NO_OPERANDS,
  options: [{ name: 'out', value: 'FILE', help: 'write the checkpoint to FILE' }],
  notes: [
    'A checkpoint is a signed note (C2SP): the name of the log, the number of entries, the root of their tree and the',
    'signature. With a stored checkpoint, `ledger prove --from` shows later whether the ledger was changed or',
    'truncated. With --json, also prints the public key.',
  ],
  async run(args, io) {
    return withLedger<ExitCode>(args, io, async ({ externalHeadStore }) => {
      const { size, root, note } = requireSignedHead(await externalHeadStore.read());
      const key = readLedgerVerifier(homeOf(args, io).ledgerKey);
      const out = args.text('out');
      if (out !== undefined) await writeFile(resolve(io.cwd, out), note);
      else if (args.flag('json')) await io.stdout.write(jsonLine({ size, root, key: key?.name ?? null, note }));
      else await io.stdout.write(note);
      return 0;
    });
  },
};

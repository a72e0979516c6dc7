import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { readLedgerVerifier } from '../../../runtime/home/ledger-key.js';
import { requireSignedHead } from '../../../runtime/ledger/ledger-proofs.js';
import { NO_OPERANDS, type CliCommand, type ExitCode } from '../../command.js';
import { homeOf, withLedger } from '../../options/folders.js';
import { jsonLine } from '../../text/terminal.js';

/** `turnpike ledger checkpoint`: prints a signed checkpoint of the ledger. */
export const ledgerCheckpoint: CliCommand = {
  name: 'ledger checkpoint',
  summary: 'Print the last signed checkpoint: keep it elsewhere, and nobody can take back what lies below it',
  operands: NO_OPERANDS,
  options: [{ name: 'out', value: 'FILE', help: 'write it to FILE' }],
  notes: [
    'A checkpoint is a signed note (C2SP): name of the log, number of entries, root of their tree, signature. Whoever',
    'keeps one can show later that the ledger was changed or cut: `ledger prove --from`. With --json also the public key.',
  ],
  async run(args, io) {
    return withLedger<ExitCode>(args, io, async ({ anchor }) => {
      const { size, root, note } = requireSignedHead(await anchor.read());
      const key = readLedgerVerifier(homeOf(args, io).ledgerKey);
      const out = args.text('out');
      if (out !== undefined) await writeFile(resolve(io.cwd, out), note);
      else if (args.flag('json')) await io.stdout.write(jsonLine({ size, root, key: key?.name ?? null, note }));
      else await io.stdout.write(note);
      return 0;
    });
  },
};

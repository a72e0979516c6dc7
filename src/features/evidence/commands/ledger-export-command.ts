import { usageError } from '../../../core/errors.js';
import { createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import { once } from 'node:events';
import { withholdByLanes } from '../../../runtime/content/lane-withholding.js';
import { writeEvidence } from '../write-evidence.js';
import { readLedgerSigner } from '../../../home/ledger-key.js';
import { requireSignedHead } from '../../../runtime/ledger/ledger-proofs.js';
import { defineCommand, type CliCommand, type ExitCode } from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import { homeOf, withLedger, type OpenLedger } from '../../../interfaces/cli/options/folders.js';
import { countText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike ledger export`: writes one file with all that a third party needs to verify the ledger. */
export const ledgerExport: CliCommand = defineCommand({
  name: 'ledger export',
  access: 'read',
  summary: 'Write an evidence bundle: ledger, content, policies, machines, checkpoint and key in one verifiable file',
  operands: { usage: 'FILE', min: 1, max: 1 },
  options: [{ name: 'entries', help: 'write only the entries, one per line, unchanged and unsigned' }],
  notes: [
    '`ledger verify FILE --key KEY` and `replay FILE` verify FILE without any other data. FILE contains the entries',
    'from the first one that is not archived to the last checkpoint, and everything that agents and tools have',
    'written. Content that was erased, and content of lanes that withhold it (withholds_content), appears only as',
    'hashes. Protect FILE like the ledger.',
  ],
  async run(args, io) {
    const path = resolve(io.cwd, args.operands[0] ?? '');
    const { entries: entriesOnly, json } = args.values;
    const signer = readLedgerSigner(homeOf(args, io).ledgerKey);
    return exitOneIfTampered(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const write = async (writeLine: (line: string) => Promise<void>) => {
          if (entriesOnly) return writeEntries(ledger, writeLine);
          if (signer === null) throw usageError('this home directory has no signing key: open it once for writing');
          return writeEvidence(
            withholdByLanes(ledger.store),
            requireSignedHead(await ledger.externalHeadStore.read()),
            signer,
            writeLine,
          );
        };
        const written = await writeNewFile(path, write);
        const { entries, artifacts } = written;
        const message = `wrote ${entries} entries and ${countText(artifacts, 'artifact')} to ${path}\n`;
        await io.stdout.write(json ? jsonLine(written) : message);
        return 0;
      }),
    );
  },
});

async function writeEntries({ store }: OpenLedger, writeLine: (line: string) => Promise<void>) {
  let entries = 0;
  for await (const { text } of store.log()) {
    await writeLine(`${text}\n`);
    entries += 1;
  }
  return { entries, artifacts: 0, runs: 0 };
}

/** Readable by its owner only; never replaces a file. */
async function writeNewFile<T>(
  path: string,
  work: (writeLine: (line: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
  await once(file, 'open').catch((error: unknown) => {
    throw usageError(`cannot write ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  });
  const done = await work(async (line) => {
    if (!file.write(line)) await once(file, 'drain');
  });
  file.end();
  await finished(file);
  return done;
}

import { resolve } from 'node:path';
import { usageError } from '../../../core/errors.js';
import { measureCoverage, signCoverage, type MeasuredCoverage, type NotedHead } from '../policy-coverage.js';
import { readLedgerSigner } from '../../../home/ledger-key.js';
import { requireSignedHead } from '../../../runtime/ledger/ledger-proofs.js';
import { commandUsageError } from '../../../interfaces/cli/arguments.js';
import { NO_OPERANDS, type CliCommand, type CommandArguments, type ExitCode } from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { ARCHIVE_OPTION, joinWholeLog, withOpenArchives } from '../../../interfaces/cli/options/archive-options.js';
import { homeOf, withLedger, type OpenLedger } from '../../../interfaces/cli/options/folders.js';
import { explainingFork, readOwnCheckpoint, writeProofFile } from '../../../interfaces/cli/options/own-checkpoint.js';
import { coverageText } from '../../../interfaces/cli/text/coverage-text.js';
import { createPainter, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike policy coverage`: counts how often each element of the pinned policies decided. */
export const policyCoverage: CliCommand = {
  name: 'policy coverage',
  access: 'read',
  summary: 'Count how often each grant, rule, lane, prohibition and approval decided; show what never did',
  operands: NO_OPERANDS,
  options: [
    { name: 'from', value: 'FILE', help: 'count from this signed checkpoint (default: from the first entry)' },
    { name: 'to', value: 'FILE', help: 'count to this signed checkpoint (default: the last one)' },
    { name: 'sign', value: 'FILE', help: 'also write a signed statement of the counts and both checkpoints to FILE' },
    ARCHIVE_OPTION,
  ],
  notes: [
    'A checkpoint is the output of `ledger checkpoint`. The command folds the run trees as recorded, and counts the',
    'decisions between the two checkpoints for each version of the policy that the trees have pinned. An allow counts',
    'for everything that it needed; a denial for the element that its rule names, and for the lane. `ledger check-proof`',
    'verifies the statement with nothing but the public key (keys/ledger.vkey). Needs no lock.',
  ],
  async run(args, io) {
    return exitOneIfTampered(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const range = await readRange(ledger, args, io);
        const coverage = await withOpenArchives(args, io, async (archives) =>
          explainingFork(ledger.store, range.from ?? range.to, async () =>
            measureCoverage(await joinWholeLog(ledger, archives), range.from, range.to),
          ),
        );
        writeStatement(range, coverage, args, io);
        const { not_recomputed, needs, policies } = coverage;
        const counted = { not_recomputed, ...(needs === undefined ? {} : { needs }), policies };
        const report = { from: placeOf(range.from), to: placeOf(range.to), ...counted };
        await io.stdout.write(
          args.flag('json') ? jsonLine(report) : coverageText({ ...range, ...counted }, createPainter(io.colours)),
        );
        return coverage.not_recomputed === 0 ? 0 : 4;
      }),
    );
  },
};

interface CoverageRange {
  readonly from: NotedHead | null;
  readonly to: NotedHead;
}

/** @throws UsageError for a checkpoint that the ledger's key has not signed, or a range that ends before it begins */
async function readRange({ externalHeadStore }: OpenLedger, args: CommandArguments, io: Io): Promise<CoverageRange> {
  const [from, given] = ['from', 'to'].map((name): NotedHead | null => {
    const file = args.text(name);
    if (file === undefined) return null;
    const { older, note } = readOwnCheckpoint(file, policyCoverage, args, io);
    return { ...older, note };
  });
  const to = given ?? requireSignedHead(await externalHeadStore.read());
  if (from != null && from.size > to.size)
    throw commandUsageError(
      policyCoverage,
      `--from has ${from.size} entries, more than the ${to.size} that are counted to`,
    );
  return { from: from ?? null, to };
}

const placeOf = (head: NotedHead | null) => (head === null ? null : { size: head.size, root: head.root });

function writeStatement(range: CoverageRange, coverage: MeasuredCoverage, args: CommandArguments, io: Io): void {
  const file = args.text('sign');
  if (file === undefined) return;
  const signer = readLedgerSigner(homeOf(args, io).ledgerKey);
  if (signer === null) throw usageError('this home directory has no signing key: open it once for writing');
  writeProofFile(resolve(io.cwd, file), signCoverage(range, coverage, signer));
}

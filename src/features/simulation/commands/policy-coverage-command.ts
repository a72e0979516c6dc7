import { usageError } from '../../../core/errors.js';
import { measureCoverage, signCoverage, type MeasuredCoverage, type NotedHead } from '../policy-coverage.js';
import { readLedgerSigner } from '../../../home/ledger-key.js';
import { requireSignedHead } from '../../../runtime/ledger/ledger-proofs.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { PATH_TYPE } from '../../../interfaces/cli/option-types.js';
import {
  ARCHIVE_OPTION,
  joinWholeLog,
  withOpenArchives,
  explainingFork,
  readOwnCheckpoint,
  writeProofFile,
} from '../../../interfaces/cli/options/evidence-file.js';
import { homeOf, withLedger, type OpenLedger } from '../../../interfaces/cli/options/folders.js';
import { coverageText } from '../../../interfaces/cli/text/coverage-text.js';
import { createPainter, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const OPTIONS = [
  { name: 'from', value: 'FILE', help: 'count from this signed checkpoint (default: from the first entry)' },
  { name: 'to', value: 'FILE', help: 'count to this signed checkpoint (default: the last one)' },
  {
    name: 'sign',
    value: 'FILE',
    type: PATH_TYPE,
    help: 'also write a signed statement of the counts and both checkpoints to FILE',
  },
  ARCHIVE_OPTION,
] as const satisfies readonly CommandOption[];

type CoverageArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike policy coverage`: counts how often each element of the pinned policies decided. */
export const policyCoverage: CliCommand = defineCommand({
  name: 'policy coverage',
  access: 'read',
  summary: 'Count how often each grant, rule, lane, prohibition and approval decided; show what never did',
  operands: NO_OPERANDS,
  options: OPTIONS,
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
          args.values.json ? jsonLine(report) : coverageText({ ...range, ...counted }, createPainter(io.colours)),
        );
        return coverage.not_recomputed === 0 ? 0 : 4;
      }),
    );
  },
});

interface CoverageRange {
  readonly from: NotedHead | null;
  readonly to: NotedHead;
}

/** @throws UsageError for a checkpoint that the ledger's key has not signed, or a range that ends before it begins */
async function readRange({ externalHeadStore }: OpenLedger, args: CoverageArguments, io: Io): Promise<CoverageRange> {
  const readHead = (file: string | undefined): NotedHead | null => {
    if (file === undefined) return null;
    const { older, note } = readOwnCheckpoint(file, args, io);
    return { ...older, note };
  };
  const from = readHead(args.values.from);
  const to = readHead(args.values.to) ?? requireSignedHead(await externalHeadStore.read());
  if (from !== null && from.size > to.size)
    throw args.usageError(`--from has ${from.size} entries, more than the ${to.size} that are counted to`);
  return { from, to };
}

const placeOf = (head: NotedHead | null) => (head === null ? null : { size: head.size, root: head.root });

function writeStatement(range: CoverageRange, coverage: MeasuredCoverage, args: CoverageArguments, io: Io): void {
  const { sign: file } = args.values;
  if (file === undefined) return;
  const signer = readLedgerSigner(homeOf(args, io).ledgerKey);
  if (signer === null) throw usageError('this home directory has no signing key: open it once for writing');
  writeProofFile(file, signCoverage(range, coverage, signer));
}

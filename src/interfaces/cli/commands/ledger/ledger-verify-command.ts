import { archivedText, nameBoth, nameInLedger, nameInTree } from '../../../../core/contract/entry-name.js';
import type { LedgerProblem } from '../../../../core/ledger/verification/ledger-problem.js';
import type {
  LedgerVerdict,
  UncheckedContent,
  WithheldSummary,
} from '../../../../core/ledger/verification/ledger-verdict.js';
import { verifyEvidence } from '../../../../runtime/ledger/open-evidence.js';
import { defineCommand, type CliCommand, type CommandArguments, type ExitCode } from '../../command.js';
import { ARCHIVE_OPTION, withOpenArchives, KEY_OPTIONS, withEvidenceBundle } from '../../options/evidence-file.js';
import { exitOneIfTampered } from '../../exit-code.js';
import { withLedger } from '../../options/folders.js';
import type { Io } from '../../io.js';
import { STORE_OPTION } from '../../store/shared-home.js';
import { countText, escapeText, jsonLine } from '../../text/terminal.js';

/** `turnpike ledger verify`: checks that the ledger is unchanged. */
export const ledgerVerify: CliCommand = defineCommand({
  name: 'ledger verify',
  access: 'read',
  accessWith: [{ given: 'operands', access: 'none' }],
  summary: 'Verify that the ledger is unchanged and complete; print every entry that is not',
  operands: { usage: '[FILE]', min: 0, max: 1 },
  options: [
    { name: 'no-replay', help: 'do not replay the state machines: faster, but finds less' },
    ...KEY_OPTIONS,
    ARCHIVE_OPTION,
    STORE_OPTION,
  ],
  notes: [
    'Needs no lock, changes nothing, and reads the whole ledger. Each line names an entry, the violated rule and the',
    'kind of damage: altered, missing, duplicated, reordered, inserted, cut, or incomplete (an expected entry is',
    'absent). With FILE, verifies the output of `ledger export` or `ledger archive`, and needs no home directory. With',
    '--archive, verifies the archives and the ledger as one log; without it, does not check archived entries. Exits 1',
    'if something is wrong, and 4 if nothing is wrong but entries are archived, or content was erased or withheld: the',
    'command then lists what it could not check, and cannot replay the decisions that depend on it.',
  ],
  async run(args, io) {
    const [file] = args.operands;
    const { noReplay, archive, store } = args.values;
    const how = { replay: !noReplay };
    if (file !== undefined && archive.length > 0) throw args.usageError('--archive cannot be combined with FILE');
    if (file !== undefined && store !== undefined) throw args.usageError('--store cannot be combined with FILE');
    // A ledger that is too damaged to read is a result of this command, not an error.
    return exitOneIfTampered(io, () =>
      file === undefined
        ? withLedger<ExitCode>(args, io, async ({ reader, externalHeadStore }) => {
            // Every ledger that was ever opened has a head file. Without it, a truncated ledger could not be detected.
            const headMissing = (await externalHeadStore.read()) === null;
            return withOpenArchives(args, io, async (archives) =>
              printVerdict(await reader.verify({ ...how, archives }), headMissing, args, io),
            );
          })
        : withEvidenceBundle<ExitCode>(file, args, io, async (bundle) =>
            printVerdict(await verifyEvidence(bundle, how), false, args, io),
          ),
    );
  },
});

/** Prints what a verification has found. @returns its exit code */
export async function printVerdict(
  verdict: LedgerVerdict,
  headMissing: boolean,
  args: CommandArguments,
  { stdout }: Io,
): Promise<ExitCode> {
  const code = headMissing ? 1 : VERDICT_EXIT_CODES[verdict.verdict];
  if (args.values.json) {
    await stdout.write(jsonLine(headMissing ? { ...verdict, ok: false, head_file: 'missing' } : verdict));
    return code;
  }
  for (const problem of verdict.ok ? [] : verdict.problems) await stdout.write(`${escapeText(lineOf(problem))}\n`);
  if (headMissing)
    await stdout.write('the ledger: the head file is missing: restore the home directory from a backup\n');
  if (verdict.verdict !== 'refused' && !headMissing) {
    const { entries, trees, root, archived } = verdict;
    const headline = verdict.ok ? 'ok' : isOnlyArchived(verdict) ? 'in part' : 'by hash alone';
    await stdout.write(`${headline}: ${entries} entries of ${countText(trees, 'run tree')}, root ${root}\n`);
    if (!verdict.ok) await printWithheld(verdict.withheld, stdout);
    if (archived !== undefined) await stdout.write(`${archivedNotice(archived)}\n`);
  }
  return code;
}

export const VERDICT_EXIT_CODES: Readonly<Record<LedgerVerdict['verdict'], ExitCode>> = {
  verified: 0,
  refused: 1,
  by_hash_alone: 4,
};

/** Counts and lists what could not be checked. */
export async function printWithheld(
  { contents, trees, not_checked, unsupported = [] }: WithheldSummary,
  stdout: Pick<Io['stdout'], 'write'>,
): Promise<void> {
  for (const { tree_id, log_index, needs } of unsupported)
    await stdout.write(`${escapeText(`not checked: ${tree_id} from ${nameInLedger(log_index)} on: ${needs}`)}\n`);
  if (contents === 0) return;
  await stdout.write(
    `not checked: ${countText(contents, 'content')}, erased or withheld; ` +
      `${countText(trees, 'run tree')} replayed only up to there\n`,
  );
  for (const content of not_checked) await stdout.write(`${escapeText(uncheckedLine(content))}\n`);
  const more = contents - not_checked.length;
  if (more > 0) await stdout.write(`and ${countText(more, 'more content')}\n`);
}

const uncheckedLine = ({ log_index, tree_id, seq, kind, withheld, sha256 }: UncheckedContent): string =>
  `not checked: ${nameBoth(log_index, tree_id, seq)}: ${kind} ${sha256}: ` +
  (withheld === 'erased' ? 'erased' : 'its lane withholds it');

/** The entries at hand were checked whole: only those before them were not. */
const isOnlyArchived = ({ withheld }: { readonly withheld: WithheldSummary }): boolean =>
  withheld.contents === 0 && withheld.trees === 0 && withheld.unsupported === undefined;

/** What was not checked because it is archived, and how to check it. */
export const archivedNotice = (archived: number): string =>
  `not checked: ${archivedText(archived)}: \`turnpike ledger verify --archive FILE\` checks them too`;

function lineOf({ log_index, tree_id, seq, rule, kind, message }: LedgerProblem): string {
  const inTree = tree_id === null ? null : seq === null ? tree_id : nameInTree(tree_id, seq);
  const inLedger = log_index === null ? 'the ledger' : nameInLedger(log_index);
  return `${inLedger}${inTree === null ? '' : ` (${inTree})`}: ${rule}: ${kind}: ${message}`;
}

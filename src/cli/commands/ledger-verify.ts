import type { LedgerProblem } from '../../ledger/ledger-problem.js';
import type { LedgerVerdict, Withheld } from '../../ledger/verify.js';
import { verifyEvidence } from '../../runtime/evidence/verify-evidence.js';
import type { Args, Command, ExitCode } from '../command.js';
import { ARCHIVE_OPTION, withArchives } from '../archives.js';
import { wrong } from '../arguments.js';
import { KEY_OPTION, withEvidence } from '../evidence-file.js';
import { tamperedIsOne } from '../exit-code.js';
import { withLedger } from '../folders.js';
import type { Io } from '../io.js';
import { counted, escaped, jsonLine } from '../terminal.js';

/** `turnpike ledger verify`: is the ledger what was once written? */
export const ledgerVerify: Command = {
  name: 'ledger verify',
  summary: 'Check that the ledger is what was written, and complete; name every entry that is not',
  operands: { usage: '[FILE]', min: 0, max: 1 },
  options: [{ name: 'no-replay', help: 'do not ask the machines: faster, and finds less' }, KEY_OPTION, ARCHIVE_OPTION],
  notes: [
    'Needs no lock, changes nothing, and reads the whole ledger. Each line: the entry, the rule, and what was done to it:',
    'altered, missing, duplicated, reordered, inserted, cut, or incomplete where something should have been written.',
    'With FILE, what `ledger export` or `ledger archive` wrote is checked, and no home is needed. With --archive, the ledger',
    'from the first entry in the archives on, as one log; without it, what is archived is not looked at. Exits 1 when',
    'something is wrong.',
  ],
  async run(args, io) {
    const [file] = args.operands;
    const how = { replay: !args.flag('no-replay') };
    if (file !== undefined && args.list('archive').length > 0) throw wrong(ledgerVerify, '--archive goes with a home');
    // Too damaged to be read is a finding here, as it is a breakdown everywhere else.
    return tamperedIsOne(io, () =>
      file === undefined
        ? withLedger<ExitCode>(args, io, async ({ reader, anchor }) => {
            // Beside a ledger that was ever opened there is a head file: without it, nothing vouches for its end.
            const headMissing = (await anchor.read()) === null;
            return withArchives(args, io, async (archives) =>
              tell(await reader.verify({ ...how, archives }), headMissing, args, io),
            );
          })
        : withEvidence<ExitCode>(file, args, io, async (bundle) =>
            tell(await verifyEvidence(bundle, how), false, args, io),
          ),
    );
  },
};

async function tell(verdict: LedgerVerdict, headMissing: boolean, args: Args, { stdout }: Io): Promise<ExitCode> {
  const ok = verdict.ok && !headMissing;
  if (args.flag('json')) {
    await stdout.write(jsonLine(headMissing ? { ...verdict, ok, head_file: 'missing' } : verdict));
    return ok ? 0 : 1;
  }
  for (const problem of verdict.ok ? [] : verdict.problems) await stdout.write(`${escaped(lineOf(problem))}\n`);
  if (headMissing) await stdout.write('the ledger: the head file is missing: restore the home from a backup\n');
  if (verdict.ok && !headMissing) {
    const { entries, trees, root, withheld, archived } = verdict;
    await stdout.write(`ok: ${entries} entries of ${counted(trees, 'run tree')}, root ${root}\n`);
    if (withheld !== undefined) await stdout.write(noteOf(withheld));
    if (archived !== undefined) await stdout.write(`${notLookedAt(archived)}\n`);
  }
  return ok ? 0 : 1;
}

const noteOf = ({ contents, trees }: Withheld): string =>
  `note: ${counted(contents, 'content')} by hash alone, erased or withheld; ` +
  `the machines were asked about ${counted(trees, 'run tree')} only up to there\n`;

/** Of the entries before those that were looked at. */
export const notLookedAt = (archived: number): string =>
  `note: entries 0 to ${archived - 1} are archived, and were not looked at`;

function lineOf({ log_index, tree_id, seq, rule, kind, message }: LedgerProblem): string {
  const place = tree_id === null ? '' : ` (${tree_id}${seq === null ? '' : ` seq ${seq}`})`;
  return `${log_index === null ? 'the ledger' : `entry ${log_index}`}${place}: ${rule}: ${kind}: ${message}`;
}

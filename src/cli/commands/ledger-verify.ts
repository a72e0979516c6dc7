import { LedgerError } from '../../errors.js';
import type { LedgerProblem } from '../../ledger/ledger-problem.js';
import { NO_OPERANDS, type Command } from '../command.js';
import { errorLine } from '../exit-code.js';
import { withLedger } from '../folders.js';
import { counted, escaped, jsonLine } from '../terminal.js';

/** `turnpike ledger verify`: is the ledger what was once written? */
export const ledgerVerify: Command = {
  name: 'ledger verify',
  summary: 'Check that the ledger is what was written, and complete; name every entry that is not',
  operands: NO_OPERANDS,
  options: [{ name: 'no-replay', help: 'do not ask the machines: faster, and finds less' }],
  notes: [
    'Needs no lock, changes nothing, and reads the whole ledger. Each line: the entry, the rule, and what was done to it:',
    'altered, missing, duplicated, reordered, inserted, cut, or incomplete where something should have been written.',
    'Exits 1 when something is wrong with it.',
  ],
  async run(args, io) {
    try {
      return await withLedger(args, io, async ({ reader, anchor }) => {
        // Beside a ledger that was ever opened there is a head file: without it, nothing vouches for the ledger's end.
        const headMissing = (await anchor.read()) === null;
        const verdict = await reader.verify({ replay: !args.flag('no-replay') });
        const problems = verdict.ok ? [] : verdict.problems;
        if (args.flag('json')) {
          await io.stdout.write(jsonLine(headMissing ? { ...verdict, ok: false, head_file: 'missing' } : verdict));
        } else {
          for (const problem of problems) await io.stdout.write(`${escaped(lineOf(problem))}\n`);
          if (headMissing)
            await io.stdout.write('the ledger: the head file is missing: restore the home from a backup\n');
          if (verdict.ok && !headMissing) {
            const { entries, trees, root } = verdict;
            await io.stdout.write(`ok: ${entries} entries of ${counted(trees, 'run tree')}, root ${root}\n`);
          }
        }
        return verdict.ok && !headMissing ? 0 : 1;
      });
    } catch (error) {
      // Too damaged to be read is a finding here, as it is a breakdown everywhere else.
      if (!(error instanceof LedgerError) || error.code !== 'LEDGER_TAMPERED') throw error;
      await io.stderr.say(errorLine(error));
      return 1;
    }
  },
};

function lineOf({ log_index, tree_id, seq, rule, kind, message }: LedgerProblem): string {
  const place = tree_id === null ? '' : ` (${tree_id}${seq === null ? '' : ` seq ${seq}`})`;
  return `${log_index === null ? 'the ledger' : `entry ${log_index}`}${place}: ${rule}: ${kind}: ${message}`;
}
